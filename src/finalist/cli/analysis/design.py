"""`finalist design`: the optimal design of a file of arms."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from finalist.cli import inputs, output
from finalist.cli.groups import AnswerOptions, ProblemOptions, ReadingOptions, with_options
from finalist.cli.options import (
    ArmsFile,
    CostColumnOption,
    DirectionsOption,
    Format,
    InterceptOption,
    MeasurableOption,
    SigmaColumnOption,
)

if TYPE_CHECKING:
    import numpy as np

    from finalist.arms import Arms
    from finalist.design import Design

HELP = """Say how to share measurements among the candidates.

\b
Example:
  finalist design candidates.csv --criterion xy --pulls 96

Prints the candidates to measure, the heaviest first; the weights are shares of the measurements.
Name the columns of TABLE that are not features: --sigma-column, --cost-column, --measurable-column.
--format csv has the same rows in full precision; --format json has all, in the order of the file,
under the keys

\b
  criterion, value, lower_bound, gap, tol, status, solved, iterations,
  features, rank, rows, distinct_arms, merged (lists of names that are one
  arm), pulls, arms (list of name, aliases, weight, pulls)

Values that are infinite or were not asked for are null.
"""


_MEANING = {
    "g": "largest variance of a candidate's estimated result",
    "d": "largest variance of a candidate's estimated result",
    "xy": "largest variance of a difference of two candidates",
    "v": "mean variance of the candidates' estimated results",
    "directions": "largest variance over the directions given",
}


@with_options
def design(
    arms_file: ArmsFile,
    *,
    criterion: Annotated[
        Literal["g", "d", "xy", "v"] | None,
        typer.Option(
            help="What to minimise: the largest variance of a candidate (g; d has the same "
            "optimum), "
            "of a difference of two candidates (xy), or the mean over candidates (v). By "
            "default xy.",
        ),
    ] = None,
    directions: DirectionsOption = None,
    measurable_column: MeasurableOption = None,
    sigma_column: SigmaColumnOption = None,
    cost_column: CostColumnOption = None,
    intercept: InterceptOption = False,
    reading: ReadingOptions,
    tol: Annotated[float, typer.Option(help="Stop within this factor of the optimum.")] = 1e-6,
    max_seconds: Annotated[
        float | None, typer.Option(metavar="S", help="Stop after about S seconds.")
    ] = None,
    pulls: Annotated[
        int | None, typer.Option(metavar="N", help="Also round the design to N pulls.")
    ] = None,
    answer: AnswerOptions,
) -> None:
    """Read, solve, round, print."""
    if criterion is not None and directions is not None:
        raise typer.BadParameter("give --criterion or --directions, not both.")
    answer.check()
    import numpy as np

    from finalist.design import optimal_design, round_design

    given = ProblemOptions(
        {}, None, measurable_column, sigma_column, cost_column, intercept, reading
    )
    table = inputs.load_arms(arms_file, given)
    arms = table.arms
    goal: Any = criterion or "xy"
    if directions is not None:
        goal = np.array(inputs.read_vectors(directions, arms))
    with output.working("Solving the design..."):
        result = optimal_design(
            arms,
            goal,
            tol,
            max_seconds=max_seconds,
            sigma=1.0 if table.sigma is None else table.sigma,
            cost=1.0 if table.cost is None else table.cost,
        )
    counts = None if pulls is None else round_design(result, pulls)
    if answer.form is Format.json:
        text = output.to_json(_as_dict(arms, result, tol, pulls, counts))
    else:
        rows = _rows(arms, result, counts, answer.everything)
        header = ["name", "weight"] + ([] if counts is None else ["pulls"])
        if answer.form is Format.csv:
            text = output.to_csv(header, rows)
        else:
            noise = "sigma = 1" if table.sigma is None else "sigma of each candidate"
            unit = f"{noise}, {'1 pull' if table.cost is None else '1 unit of cost'}"
            text = _table(arms, result, header, rows, answer.everything, unit)
    output.deliver(text, answer.out)
    if answer.chart is not None:
        _draw(arms, result, counts, answer.chart)


def _rows(
    arms: "Arms", result: "Design", counts: "np.ndarray | None", everything: bool
) -> list[list[Any]]:
    """Return name, weight and pulls, the heaviest first; only the support unless `everything`."""
    weights = result.weights.tolist()
    order = sorted(range(len(weights)), key=lambda i: -weights[i])
    return [
        [arms.names[i], weights[i], *([] if counts is None else [int(counts[i])])]
        for i in order
        if everything or weights[i] > 0
    ]


def _as_dict(
    arms: "Arms", result: "Design", tol: float, pulls: int | None, counts: "np.ndarray | None"
) -> dict[str, Any]:
    weights = result.weights.tolist()
    each = [None] * len(arms) if counts is None else counts.tolist()
    return {
        "criterion": result.criterion,
        "value": result.value,
        "lower_bound": result.lower_bound,
        "gap": result.gap,
        "tol": tol,
        "status": result.status,
        "solved": result.solved,
        "iterations": result.iterations,
        "features": list(arms.feature_names),
        "rank": arms.rank,
        "rows": sum(map(len, arms.aliases)),
        "distinct_arms": len(arms),
        "merged": [list(names) for names in arms.aliases if len(names) > 1],
        "pulls": pulls,
        "arms": [
            {"name": names[0], "aliases": list(names), "weight": weight, "pulls": count}
            for names, weight, count in zip(arms.aliases, weights, each, strict=True)
        ],
    }


def _table(
    arms: "Arms",
    result: "Design",
    header: list[str],
    rows: list[list[Any]],
    everything: bool,
    unit: str,
) -> str:
    cells = [[name, f"{weight:.6f}", *(f"{n:,}" for n in rest)] for name, weight, *rest in rows]
    named = sum(map(len, arms.aliases))
    d = len(arms.feature_names)
    facts = [
        ("value", output.number(result.value), f"{_MEANING[result.criterion]}, {unit}"),
        ("lower bound", output.number(result.lower_bound), "no design has a smaller value"),
        ("gap", f"{result.gap:.1e}", "the value is at most 1 + gap times the best possible"),
        (
            "status",
            "solved" if result.solved else "not solved",
            "" if result.solved else result.status,
        ),
        ("dimensions", f"{arms.rank} of {d}", "of the features that the candidates span"),
        (
            "candidates",
            f"{len(arms):,} of {named:,}",
            f"distinct candidates; {output.merged(arms.aliases)}",
        ),
    ]
    table = output.arms_table([name.capitalize() for name in header], cells, everything)
    return output.to_text(*table, output.facts_table(facts))


#: Pulls in the picture of two features if --pulls is not given.
_PLANE_PULLS = 100


def _draw(arms: "Arms", result: "Design", counts: "np.ndarray | None", path: Path) -> None:
    """Draw the weights; beside them, for two features, the plane with its cones."""
    from finalist.charts import design_plane_chart, fits_plane, weights_chart

    label = {"directions": "Optimal design for the directions", "v": "V-optimal design"}
    title = label.get(result.criterion, f"{result.criterion.upper()}-optimal design")
    with output.working("Drawing..."):
        if fits_plane(arms, result.weights):
            pulls = _PLANE_PULLS if counts is None else int(counts.sum())
            picture = design_plane_chart(arms, result, pulls, sigma=1.0, title=title)
        else:
            picture = weights_chart(arms.names, result.weights, counts, title=title)
        output.draw(picture, path)
