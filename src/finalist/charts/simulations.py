"""What came out of simulated runs: when they decided, and how good what they named is."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from finalist.charts.theme import PALETTE, AnyChart, data, finish
from finalist.errors import ChartError
from finalist.shapes import Float, Int
from finalist.text import counted

if TYPE_CHECKING:
    from finalist.planning import Plan

_WIDTH, _HEIGHT = 520, 300
#: What strategies of a plan are called; others have their names.
_CALLED = {"gauntlet": "this study", "uniform": "equal shares"}


def decisions_chart(
    pulls: Int[np.ndarray, " decided"], runs: int, title: str, subtitle: Sequence[str]
) -> AnyChart:
    """Show the share of runs that have decided, over the measurements.

    Parameters
    ----------
    pulls : (n,) array of int
        The measurements of the runs that decided.
    runs : int
        All of them.

    Examples
    --------
    >>> chart = decisions_chart(np.array([20, 10]), 4, "When", [])
    >>> [(row["pulls"], row["share"]) for row in chart.to_dict()["data"]["values"]]
    [(10, 0.0), (10, 0.25), (20, 0.5)]
    """
    import altair as alt

    ended = sorted(pulls.tolist())
    rows = [{"pulls": n, "share": (i + 1) / runs} for i, n in enumerate(ended)]
    rows = [{**row, "share": 0.0} for row in rows[:1]] + rows
    far = bool(ended) and ended[-1] > 50 * max(ended[0], 1)
    scale = alt.Scale(type="log" if far and ended[0] > 0 else "linear", zero=False)
    x = alt.X("pulls:Q", title="Measurements", scale=scale)
    return finish(_steps(rows, x, "Share of the runs that have decided"), title, subtitle)


def regrets_chart(
    regrets: Mapping[str, Float[np.ndarray, " runs"]], title: str, subtitle: Sequence[str]
) -> AnyChart:
    """Show how often what is named is at most so much worse than the best: the simple regret.

    A curve begins at the share of runs that named the best one.

    Parameters
    ----------
    regrets : mapping
        By strategy, how much worse each run's name is than the best; at most six.

    Examples
    --------
    >>> chart = regrets_chart({"g": np.array([0.0, 0.3, 0.0, 0.1])}, "What is named", [])
    >>> rows = chart.to_dict()["layer"][0]["data"]["values"]
    >>> [(row["regret"], row["share"]) for row in rows][:3]
    [(0.0, 0.5), (0.1, 0.75), (0.3, 1.0)]
    """
    import altair as alt

    if not 0 < len(regrets) <= len(PALETTE):
        raise ChartError(f"{len(regrets)} curves; draw 1 to {len(PALETTE)}.")
    if not all(len(some) > 0 and np.isfinite(some).all() for some in regrets.values()):
        raise ChartError("there is no regret to show. Pass that of runs which name a candidate.")
    end = 1.08 * max(float(some.max()) for some in regrets.values()) or 1.0
    named = [f"{name}: {np.mean(some == 0.0):.1%} name the best" for name, some in regrets.items()]
    rows = [
        {"regret": worse, "share": share, "label": label}
        for label, some in zip(named, regrets.values(), strict=True)
        for worse, share in _shares(some, end)
    ]
    scale = alt.Scale(domain=[0.0, end], nice=False)
    x = alt.X("regret:Q", title="Worse than the best by at most", scale=scale)
    colour = alt.Color("label:N", sort=named, title=None)
    colour = colour.scale(domain=named, range=list(PALETTE[: len(named)]))
    colour = colour.legend(orient="top", direction="vertical", labelLimit=_WIDTH, labelFontSize=12)
    dashes = [[1, 0], *[[7, 5]] * (len(named) - 1)]  # the first is seen below the others
    dash = alt.StrokeDash("label:N", legend=None).scale(domain=named, range=dashes)
    line = _steps(rows, x, "Share of the runs").encode(color=colour, strokeDash=dash)
    dots = alt.Chart(data([row for row in rows if row["regret"] == 0.0]))
    dots = dots.mark_point(size=70, opacity=1, strokeWidth=2).encode(
        x="regret:Q", y="share:Q", color=colour
    )
    chart = alt.layer(line, dots).properties(width=_WIDTH, height=_HEIGHT)
    return finish(chart, title, subtitle)


def _shares(regrets: Float[np.ndarray, " runs"], end: float) -> list[tuple[float, float]]:
    """Return the steps of the share of runs up to each regret, from 0 to the end of the axis."""
    values, counts = np.unique(regrets, return_counts=True)
    if values[0] > 0.0:
        values, counts = np.append(0.0, values), np.append(0, counts)
    shares = np.cumsum(counts) / len(regrets)
    return [*zip(values.tolist(), shares.tolist(), strict=True), (end, 1.0)]


def ends_chart(plan: "Plan") -> AnyChart:
    """Show how good what a plan with a budget expects to be named is, beside other strategies.

    Examples
    --------
    >>> import finalist as fl
    >>> plan = fl.plan(fl.Arms.unstructured(3), sigma=1.0, gap=1.0, budget=30, draws=4)
    >>> ends_chart(plan).to_dict()["title"]["text"]
    'What 30 measurements would name'
    """
    from finalist.planning.result import MEASUREMENTS

    rows = [(_CALLED.get(row.name, row.name), row.behind) for row in plan.named]
    known = {name: behind for name, behind in rows if behind is not None}
    if plan.budget is None or not known:
        raise ChartError("this plan names no single candidate after a budget. Give budget=.")
    money = plan.unit != MEASUREMENTS
    what = f"a budget of {plan.budget:,}" if money else counted(plan.budget, "measurement")
    words = [f"{plan.draws} simulated studies each, with the same truths."]
    return regrets_chart(known, f"What {what} would name", words)


def _steps(rows: list[dict[str, Any]], x: Any, y_title: str) -> Any:
    """Draw shares as a line of steps."""
    import altair as alt

    y = alt.Y("share:Q", title=y_title).scale(domain=[0, 1]).axis(format="%")
    line = alt.Chart(data(rows)).mark_line(
        interpolate="step-after", color=PALETTE[0], strokeWidth=2
    )
    return line.encode(x=x, y=y).properties(width=_WIDTH, height=_HEIGHT)
