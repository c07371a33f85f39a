"""Arguments and options that several commands have."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer


class Format(StrEnum):
    """How a result is printed."""

    table = "table"
    json = "json"
    csv = "csv"


class Printed(StrEnum):
    """How the result of a command without rows is printed."""

    table = "table"
    json = "json"


class Objective(StrEnum):
    """Which mean is best."""

    max = "max"
    min = "min"


class NoiseName(StrEnum):
    """What a strategy assumes about the noise."""

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
    typer.Option(
        "-o", "--output", metavar="FILE", help="Write the result here instead of printing it."
    ),
]
ChartOption = Annotated[
    Path | None,
    typer.Option("--chart", metavar="FILE", help="Draw the result; .png, .svg or .pdf."),
]
AllOption = Annotated[bool, typer.Option("--all", help="Show every arm, however many.")]
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
    NoiseName, typer.Option("--noise", help="What the strategy assumes about the noise.")
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
BudgetOption = Annotated[
    int | None,
    typer.Option(
        "--budget", metavar="N", help="The largest number of pulls in all.", show_default="none"
    ),
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
        help="Column of ARMS with yes or no: which can be measured.",
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
        "--cost-column",
        metavar="COLUMN",
        help="Column of ARMS with the cost of a pull of each arm.",
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
        help="The largest distance of means from a linear function of the features.",
    ),
]


@dataclass(frozen=True)
class ProblemOptions:
    """The problem, as options that `new`, `plan` and `simulate` have in common."""

    delta: DeltaOption = 0.05
    epsilon: EpsilonOption = 0.0
    top: TopOption = 1
    objective: ObjectiveOption = Objective.max
    noise: NoiseOption = NoiseName.gaussian
    candidates: CandidatesOption = None
    measurable_column: MeasurableOption = None
    sigma_column: SigmaColumnOption = None
    cost_column: CostColumnOption = None
    intercept: InterceptOption = False
    batch_intercept: BatchInterceptOption = False
    misspecification: MisspecificationOption = 0.0


def with_problem(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `problem` of a command by the options of `ProblemOptions`."""
    options = {
        field.name: Parameter(
            field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )
        for field in fields(ProblemOptions)
    }

    @wraps(command)
    def run(**given: Any) -> None:
        problem = ProblemOptions(**{name: given.pop(name) for name in options})
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
