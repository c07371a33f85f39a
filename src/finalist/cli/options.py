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


ArmsFile = Annotated[
    Path,
    typer.Argument(
        metavar="ARMS",
        help="File of arms, .csv or .parquet.",
        exists=True,
        dir_okay=False,
        readable=True,
    ),
]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print the result.")]
OutputOption = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write the result here, do not print it."),
]
ChartOption = Annotated[
    Path | None,
    typer.Option("--chart", metavar="FILE", help="Draw the result; .png, .svg or .pdf."),
]
AllOption = Annotated[bool, typer.Option("--all", help="Show every arm, however many.")]
SigmaOption = Annotated[float, typer.Option("--sigma", help="Size of the noise.")]
DeltaOption = Annotated[
    float, typer.Option("--delta", help="Accepted probability of a wrong answer.")
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
