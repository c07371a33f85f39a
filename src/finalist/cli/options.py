"""Arguments and options that several commands have."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import wraps
from inspect import Parameter, signature
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


ArmsFile = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="Table of candidates: .csv, .tsv, .txt, .xlsx, .ods, .parquet; or .npy.",
        exists=True,
        dir_okay=False,
        readable=True,
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
        "--set", metavar="NAME=VALUE", help="A setting of the strategy, as alpha=0.1; repeat."
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
    typer.Option(
        "--theta-file",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="The parameter in a file: numbers, or the columns of TABLE with a single row.",
    ),
]
CandidatesOption = Annotated[
    Path | None,
    typer.Option(
        "--candidates",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="What the winner is chosen from, by measuring those of TABLE; the same columns.",
    ),
]
CandidateColumnOption = Annotated[
    str | None,
    typer.Option(
        "--candidate-column",
        metavar="COLUMN",
        help="Column of the old results that names candidates.",
        show_default="candidate, arm, name or the only text",
    ),
]
ResultColumnOption = Annotated[
    str | None,
    typer.Option(
        "--result-column",
        metavar="COLUMN",
        help="Column of the old results with the numbers.",
        show_default="result, reward or the only numbers",
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
        help="Add a last feature, 'intercept', that is 1: results have a level of their own.",
    ),
]
DelimiterOption = Annotated[
    str | None,
    typer.Option(
        "--delimiter", metavar="MARK", help="Between cells: ',', ';' or tab.", show_default="found"
    ),
]
DecimalOption = Annotated[
    str | None,
    typer.Option(
        "--decimal", metavar="MARK", help="Decimal sign: '.' or ','.", show_default="found"
    ),
]
EncodingOption = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="NAME", help="Of a text file: utf-8, ...", show_default="found"
    ),
]
SheetOption = Annotated[
    str | None,
    typer.Option(
        "--sheet", metavar="NAME", help="Sheet, by name or number.", show_default="the first"
    ),
]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=ROLE",
        help="What a column is: name, number, category, yes/no, ignore, noise, cost or measurable; "
        "repeat.",
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
        "model. It is evaluated as Python: write it yourself.",
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
        help="Whether results have a level of their own; without, they are 0 where all numbers "
        "are.",
    ),
]


#: How values of options are called in help.
_METAVARS = {"top": "M", "misspecification": "C"}
_TYPES: dict[str, type] = {"number": float, "whole": int, "flag": bool, "text": str}


def _enum(setting: Setting) -> Any:
    return StrEnum(setting.name, [(word.replace("-", "_"), word) for word in setting.choices])


def _option(setting: Setting) -> Any:
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


#: Sigma and cost come with the arms: a column, or an option of the command's own.
_SETTINGS = {name: one for name, one in SETTINGS.items() if one.kind != "each"}
DeltaOption, ObjectiveOption = (_option(SETTINGS[name]) for name in ("delta", "objective"))


@dataclass(frozen=True)
class ProblemOptions:
    """The problem, as options that `new`, `plan` and `simulate` have in common."""

    words: dict[str, Any]
    candidates: CandidatesOption = None
    measurable_column: MeasurableOption = None
    sigma_column: SigmaColumnOption = None
    cost_column: CostColumnOption = None
    intercept: InterceptOption = False
    delimiter: DelimiterOption = None
    decimal: DecimalOption = None
    encoding: EncodingOption = None
    sheet: SheetOption = None


@dataclass(frozen=True)
class TableOptions(ProblemOptions):
    """The problem, with how a table of candidates becomes features: for `new` and `plan`."""

    intercept: ConstantOption = True
    column: ColumnOption = None
    model: ModelOption = "straight"
    formula: FormulaOption = None
    drop_incomplete: DropOption = False


def with_problem(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `problem` of a command by its settings, and the options of its type."""
    kind: type[ProblemOptions] = signature(command).parameters["problem"].annotation
    real = issubclass(kind, TableOptions)
    options = {
        name: Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=one.usual if real else one.default,
            annotation=_option(one),
        )
        for name, one in _SETTINGS.items()
    }
    files = fields(kind)[1:]
    options |= {
        field.name: Parameter(
            field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )
        for field in files
    }

    @wraps(command)
    def run(**given: Any) -> None:
        words = {name: given.pop(name) for name in _SETTINGS}
        problem = kind(words, **{field.name: given.pop(field.name) for field in files})
        command(problem=problem, **given)

    own = signature(command)
    parameters = [
        parameter
        for old in own.parameters.values()
        for parameter in (
            options.values()
            if old.name == "problem"
            else [old.replace(kind=Parameter.KEYWORD_ONLY)]
        )
    ]
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run
