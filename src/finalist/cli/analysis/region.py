"""`finalist region`: arms that stand for all points of a box or a ball."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from finalist.cli import inputs, output
from finalist.cli.options import DeltaOption, Format, FormatOption
from finalist.cli.study.common import DbOption, opened
from finalist.errors import ArmsError
from finalist.files import printable

if TYPE_CHECKING:
    from finalist.region import Net, Region

HELP = """Make the candidates of a region: of a box or a ball.

\b
Example:
  finalist region box --low 150,10 --high 250,60 --names celsius,minutes -o candidates.csv
  finalist new oven candidates.csv --measurable-column measurable --epsilon 0.08 --sigma 1
  finalist region box --low 150,10 --high 250,60 --names celsius,minutes --study oven

The mean is a linear or quadratic function of the coordinates. The candidates are the points of a
grid. All can win, but only the few points of the G-optimal design over the whole region are
measured. --study says how far the winner of a study of these candidates is from the best point of
the region: give the same region, and a --delta larger than that of the study, because the points
between those of the grid need a share. --epsilon prints the command that begins such a study.
--format csv has the table of candidates; --format json has the keys

\b
  shape, basis, low, high, names, per_axis, points, measured, design (value,
  lower_bound, gap, arms: list of name, weight), question (epsilon, delta, check),
  found (name, point, epsilon, loss, within, delta, pulls, refine, sentence)

Values that were not asked for are null.
"""


Shape = Literal["box", "ball"]
#: The bases that need no code.
BasisName = Literal["linear", "quadratic"]


def region(
    shape: Annotated[Shape, typer.Argument(help="The region.")],
    low: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="The low ends of a box.")
    ] = None,
    high: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="The high ends of a box.")
    ] = None,
    dimension: Annotated[
        int | None, typer.Option(metavar="D", help="Coordinates of a ball, whose radius is 1.")
    ] = None,
    basis: Annotated[
        BasisName | None,
        typer.Option(help="The model.", show_default="quadratic for a box, linear for a ball"),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Names of the coordinates.", show_default="x1,x2,..."),
    ] = None,
    per_axis: Annotated[
        int, typer.Option(metavar="N", help="Points of the grid along each coordinate.")
    ] = 21,
    measure: Annotated[
        Literal["design", "all"], typer.Option(help="Measure where the design says, or everywhere.")
    ] = "design",
    epsilon: Annotated[
        float | None,
        typer.Option(help="How far the answer may be from the best point.", show_default="none"),
    ] = None,
    delta: DeltaOption = 0.05,
    study: Annotated[
        str | None, typer.Option(metavar="NAME", help="Say what this study has found.")
    ] = None,
    db: DbOption = None,
    form: FormatOption = Format.table,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the candidates here."),
    ] = None,
) -> None:
    """Make the net, write it, judge a study."""
    output.check_files(out, None)
    made = _region(shape, low, high, dimension, basis, names)
    with output.working("Making the net..."):
        net = made.net(per_axis, measure)
        content = _as_dict(made, net, None if epsilon is None else net.question(epsilon, delta))
    if study is not None:
        with opened(db, study) as open_study:
            content["found"] = net.verdict(open_study, delta).to_dict()
    if form is Format.json:
        text = output.to_json(content)
    elif form is Format.csv:
        text = _csv(net)
    else:
        text = _table(content, out)
    if out is not None:
        output.deliver(_csv(net), out)
    typer.echo(text, nl=False)


def _region(
    shape: Shape,
    low: str | None,
    high: str | None,
    dimension: int | None,
    basis: BasisName | None,
    names: str | None,
) -> "Region":
    from finalist.region import Region

    called = None if names is None else [name.strip() for name in names.split(",")]
    words: dict[str, Any] = {"names": called}
    if basis is not None:
        words["basis"] = basis
    if shape == "ball":
        if dimension is None or low is not None or high is not None:
            raise ArmsError("a ball needs --dimension, and no --low and --high; its radius is 1.")
        return Region.ball(dimension, **words)
    if low is None or high is None or dimension is not None:
        raise ArmsError("a box needs --low and --high, a number for each coordinate: --low 0,0")
    lows, highs = inputs.read_numbers("--low", low), inputs.read_numbers("--high", high)
    return Region.box(lows, highs, **words)


def _as_dict(made: "Region", net: "Net", question: dict[str, Any] | None) -> dict[str, Any]:
    space, design, arms = made.space, net.design, net.arms
    weights = net.weights
    return {
        "shape": space.shape,
        "basis": space.basis,
        "low": space.low.tolist(),
        "high": space.high.tolist(),
        "names": list(space.names),
        "per_axis": list(net.per_axis),
        "points": len(arms),
        "measured": int(arms.measurable.sum()),
        "design": {
            "value": design.value,
            "lower_bound": design.lower_bound,
            "gap": design.gap,
            "arms": None
            if weights is None
            else [
                {"name": name, "weight": weight}
                for name, weight in zip(arms.names, weights.tolist(), strict=True)
                if weight > 0
            ],
        },
        "question": question,
        "found": None,
    }


def _csv(net: "Net") -> str:
    arms = net.arms
    marks = ["yes" if one else "no" for one in arms.measurable]
    rows = zip(arms.names, arms.features.tolist(), marks, strict=True)
    header = ["name", *arms.feature_names, "measurable"]
    return output.to_csv(header, ([name, *row, mark] for name, row, mark in rows))


def _table(content: dict[str, Any], out: Path | None) -> str:
    design, found = content["design"], content["found"]
    facts = [
        ("points", f"{content['points']:,}", "that can win"),
        ("measured", f"{content['measured']:,}", "points to measure"),
        (
            "largest variance",
            output.number(design["value"]),
            "of an estimated mean in the region, sigma = 1, 1 measurement; "
            f"{output.number(design['lower_bound'])} or more for any design",
        ),
    ]
    parts: list[Any] = []
    if design["arms"] is not None:
        rows = [[arm["name"], f"{arm['weight']:.6f}"] for arm in design["arms"]]
        parts += output.arms_table(["Measured", "Weight"], rows, everything=False)
    parts.append(output.facts_table(facts))
    if found is not None:
        parts.append(printable(found["sentence"]))
    text = output.to_text(*parts)
    return text if content["question"] is None else text + _next(content["question"], out)


def _next(question: dict[str, Any], out: Path | None) -> str:
    """Return the command that begins a study of these arms."""
    file = "candidates.csv" if out is None else str(out)
    words = ["new", "NAME", file, "--measurable-column", "measurable", "--sigma", "SIZE"]
    for word in ("epsilon", "delta", "check"):
        words += [f"--{word}", f"{question[word]:g}"]
    return f"Next:\n  {printable(shlex.join(['finalist', *words]))}\n"
