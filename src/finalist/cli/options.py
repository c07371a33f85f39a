"""Arguments and options that several commands have."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from finalist.settings import SETTINGS, Setting


class Format(StrEnum):
    """How a result is printed."""

    table = "table"
    json = "json"
    csv = "csv"


class Printed(StrEnum):
    """How the result of a command without rows is printed."""

    table = "table"
    json = "json"


def _found(flag: str, metavar: str, words: str, usual: str = "found") -> Any:
    """Return an option for something that is found out unless it is said."""
    return typer.Option(flag, metavar=metavar, help=words, show_default=usual)


def _file(*flags: str, metavar: str, words: str) -> Any:
    """Return an argument, or an option if it has flags, that names a file there is."""
    kind: Any = typer.Option if flags else typer.Argument
    return kind(*flags, metavar=metavar, exists=True, dir_okay=False, readable=True, help=words)


ArmsFile = Annotated[
    Path,
    _file(
        metavar="TABLE",
        words="Table of candidates: .csv, .tsv, .txt, .xlsx, .ods, .parquet; or .npy.",
    ),
]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print the result.")]
PrintedOption = Annotated[Printed, typer.Option("--format", help="How to print the result.")]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="Write the result here instead of printing it."
    ),
]
ChartOption = Annotated[
    Path | None,
    typer.Option("--chart", metavar="FILE", help="Draw the result; .png, .svg or .pdf."),
]
AllOption = Annotated[bool, typer.Option("--all", help="Show every candidate, however many.")]
#: Required unless a column or --noise bernoulli gives it; see `inputs.noise_size`.
SigmaOption = Annotated[
    float | None,
    typer.Option(
        "--sigma",
        metavar="SIZE",
        help="Size of the noise: the standard deviation of one measurement.",
        show_default="none",
    ),
]
#: Of commands that can estimate it from results, or plan with a guess.
MaybeSigmaOption = Annotated[
    str | None,
    typer.Option(
        "--sigma",
        metavar="SIZE",
        help="Standard deviation of one measurement, or 'unknown'.",
        show_default="none",
    ),
]
StrategyOption = Annotated[
    str,
    typer.Option("--strategy", metavar="NAME", help="The strategy; a wrong name lists them all."),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of all random numbers.")]
JobsOption = Annotated[
    int, typer.Option("--jobs", metavar="N", help="Processes; -1 means one per core.")
]
MaxPullsOption = Annotated[
    int, typer.Option("--max-pulls", metavar="N", help="Stop a run that needs more, undecided.")
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A setting of the strategy, as alpha=0.1. May be repeated.",
    ),
]
FolderOption = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder for all files; created if missing.")
]
ThetaOption = Annotated[
    str | None,
    typer.Option("--theta", metavar="T1,T2,...", help="The parameter, a number per feature."),
]
ThetaFileOption = Annotated[
    Path | None,
    _file(
        "--theta-file",
        metavar="FILE",
        words="The parameter in a file: numbers, or the columns of TABLE with a single row.",
    ),
]
CandidatesOption = Annotated[
    Path | None,
    _file(
        "--candidates",
        metavar="FILE",
        words="What the winner is chosen from, by measuring those of TABLE; the same columns.",
    ),
]
DirectionsOption = Annotated[
    Path | None,
    _file(
        "--directions",
        metavar="FILE",
        words="Minimise the largest variance over these directions instead: a file with the "
        "columns of TABLE, one direction per row.",
    ),
]
OldResultsFile = Annotated[
    Path, _file(metavar="FILE", words="Old results: .csv, .xlsx, .ods, .parquet or text.")
]
CandidateColumnOption = Annotated[
    str | None,
    _found(
        "--candidate-column",
        "COLUMN",
        "Column of the old results that names candidates.",
        "candidate, arm, name or the only text",
    ),
]
ResultColumnOption = Annotated[
    str | None,
    _found(
        "--result-column",
        "COLUMN",
        "Column of the old results with the numbers.",
        "result, reward or the only numbers",
    ),
]
MeasurableOption = Annotated[
    str | None,
    typer.Option(
        "--measurable-column",
        metavar="COLUMN",
        help="Column of TABLE with yes or no: which can be measured.",
    ),
]
SigmaColumnOption = Annotated[
    str | None,
    typer.Option(
        "--sigma-column", metavar="COLUMN", help="Column of TABLE with the noise of each candidate."
    ),
]
CostColumnOption = Annotated[
    str | None,
    typer.Option(
        "--cost-column",
        metavar="COLUMN",
        help="Column of TABLE with the cost of a measurement of each candidate.",
    ),
]
InterceptOption = Annotated[
    bool,
    typer.Option(
        "--intercept",
        help="Add a constant to the model: a last feature, 'intercept', that is 1.",
    ),
]


DelimiterOption = Annotated[
    str | None, _found("--delimiter", "MARK", "Between cells: ',', ';' or tab.")
]
DecimalOption = Annotated[str | None, _found("--decimal", "MARK", "Decimal sign: '.' or ','.")]
EncodingOption = Annotated[str | None, _found("--encoding", "NAME", "Of a text file: utf-8, ...")]
SheetOption = Annotated[
    str | None, _found("--sheet", "NAME", "Sheet, by name or number.", "the first")
]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=ROLE",
        help="What a column is: name, number, category, yes/no, ignore, noise, cost or measurable. "
        "May be repeated.",
        show_default="guessed, and shown",
    ),
]
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        help="How results follow from the columns: straight, bending (an optimum in between), "
        "surface (bending, with products) or separate (each candidate on its own).",
    ),
]
FormulaOption = Annotated[
    str | None,
    typer.Option(
        "--formula",
        metavar="TEXT",
        help="Features by a formula of the columns, 'dose + I(dose**2) + C(kind)', instead of a "
        "model. It is evaluated as Python: do not use one that you do not understand.",
    ),
]
DropOption = Annotated[
    bool,
    typer.Option("--drop-incomplete", help="Leave out candidates with empty cells."),
]
ConstantOption = Annotated[
    bool,
    typer.Option(
        "--intercept/--no-intercept",
        help="Whether the model has a constant; without one, the expected result is 0 where all "
        "numbers are 0.",
    ),
]


#: How values of options are called in help.
_METAVARS = {"top": "M", "misspecification": "C"}
_TYPES: dict[str, type] = {"number": float, "whole": int, "flag": bool, "text": str}


def _enum(setting: Setting) -> Any:
    return StrEnum(setting.name, [(word.replace("-", "_"), word) for word in setting.choices])


def option_of(setting: Setting) -> Any:
    """Return a setting as the type of an option."""
    kind: Any = _TYPES.get(setting.kind) or _enum(setting)
    metavar = "N" if setting.kind == "whole" else None
    option = typer.Option(
        f"--{setting.name.replace('_', '-')}",
        metavar=_METAVARS.get(setting.name, metavar),
        help=f"{setting.help}.",
        show_default="none" if setting.optional else True,
    )
    return Annotated[kind | None if setting.optional else kind, option]


DeltaOption, ObjectiveOption = (option_of(SETTINGS[name]) for name in ("delta", "objective"))
