"""Arguments and options that several commands have."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How a result is printed."""

    table = "table"
    json = "json"
    csv = "csv"


class Printed(StrEnum):
    """How the result of a command that has no table of rows is printed."""

    table = "table"
    json = "json"


class Objective(StrEnum):
    """Which mean is best."""

    max = "max"
    min = "min"


class NoiseName(StrEnum):
    """What a strategy assumes of the noise."""

    gaussian = "gaussian"
    sub_gaussian = "sub-gaussian"
    bernoulli = "bernoulli"


ArmsFile = Annotated[
    Path,
    typer.Argument(
        metavar="ARMS",
        help="File of arms, .csv, .parquet or .npy.",
        exists=True,
        dir_okay=False,
        readable=True,
    ),
]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print the result.")]
PrintedOption = Annotated[Printed, typer.Option("--format", help="How to print the result.")]
OutputOption = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write the result here, do not print it."),
]
ChartOption = Annotated[
    Path | None,
    typer.Option("--chart", metavar="FILE", help="Draw the result; .png, .svg or .pdf."),
]
AllOption = Annotated[bool, typer.Option("--all", help="Show every arm, however many.")]
#: Has to be given, unless a column or --noise bernoulli says it; see `inputs.noise_size`.
SigmaOption = Annotated[
    float | None,
    typer.Option(
        "--sigma",
        metavar="SIZE",
        help="Size of the noise: the standard deviation of one measurement.",
        show_default="none",
    ),
]
DeltaOption = Annotated[
    float, typer.Option("--delta", help="Accepted probability of a wrong answer.")
]
EpsilonOption = Annotated[
    float, typer.Option("--epsilon", help="An arm within this distance of the best is good enough.")
]
ObjectiveOption = Annotated[
    Objective, typer.Option("--objective", help="Whether the largest or the smallest mean is best.")
]
NoiseOption = Annotated[
    NoiseName, typer.Option("--noise", help="What the strategy assumes of the noise.")
]
StrategyOption = Annotated[
    str,
    typer.Option(
        "--strategy", metavar="NAME", help="The strategy; a wrong name lists all there are."
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of all random numbers.")]
JobsOption = Annotated[
    int, typer.Option("--jobs", metavar="N", help="Processes; -1 is one for every core.")
]
MaxPullsOption = Annotated[
    int, typer.Option("--max-pulls", metavar="N", help="Stop a run that needs more, undecided.")
]
BudgetOption = Annotated[
    int | None,
    typer.Option("--budget", metavar="N", help="The most pulls in all.", show_default="none"),
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
        help="The parameter in a file: numbers, or the columns of ARMS with a single row.",
    ),
]
TopOption = Annotated[
    int, typer.Option("--top", metavar="M", help="How many of the best arms to find.")
]
CandidatesOption = Annotated[
    Path | None,
    typer.Option(
        "--candidates",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="What the winner is chosen from, by measuring ARMS; the same columns.",
    ),
]
MeasurableOption = Annotated[
    str | None,
    typer.Option(
        "--measurable-column",
        metavar="COLUMN",
        help="Column of ARMS that says yes or no: which can be measured.",
    ),
]
SigmaColumnOption = Annotated[
    str | None,
    typer.Option(
        "--sigma-column", metavar="COLUMN", help="Column of ARMS with the noise of each arm."
    ),
]
CostColumnOption = Annotated[
    str | None,
    typer.Option(
        "--cost-column", metavar="COLUMN", help="Column of ARMS with the cost of a pull of each."
    ),
]
BatchInterceptOption = Annotated[
    bool,
    typer.Option(
        "--batch-intercept", help="All rewards of a batch share a constant: plates, days."
    ),
]
InterceptOption = Annotated[
    bool,
    typer.Option(
        "--intercept",
        help="Give all arms a last feature, 'intercept', that is 1: results have a level.",
    ),
]
MisspecificationOption = Annotated[
    float,
    typer.Option(
        "--misspecification",
        metavar="C",
        help="How far, at most, means are from a linear function of the features.",
    ),
]
