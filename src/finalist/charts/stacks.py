"""How strategies divide their pulls among a few arms, as stacked bars."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from finalist.charts.theme import MUTED, PALETTE, AnyChart, data, finish, labels
from finalist.errors import ChartError

_WIDTH = 400


def shares_chart(
    groups: Mapping[str, Mapping[str, Float[np.ndarray, " K"]]],
    names: Sequence[str],
    title: str,
    subtitle: Sequence[str],
) -> AnyChart:
    """Show each arm's share of the pulls as stacked bars, a panel for each group.

    Strategies are in the order of the largest group.

    Parameters
    ----------
    groups : mapping of str to mapping of str to (K,) array
        Shares by strategy, by the title of the panel.
    names : sequence of str
        The arms, at most six.

    Examples
    --------
    >>> groups = {"Here": {"G": np.array([0.5, 0.5]), "Oracle": np.array([0.1, 0.9])}}
    >>> rows = shares_chart(groups, ["a", "b"], "Shares", []).to_dict()["data"]["values"]
    >>> rows[-1]["note"], rows[0]["note"]
    ('b 90.0%', '2 arms, 50.0% each')
    """
    import altair as alt

    if not groups or not all(groups.values()):
        raise ChartError("there are no shares to show. Pass at least one strategy.")
    if len(names) > len(PALETTE):
        raise ChartError(
            f"stacked bars have {len(PALETTE)} colours, not enough for {len(names)} arms."
        )
    arms = labels(names)
    largest = max(groups, key=lambda heading: len(groups[heading]))
    rows: list[dict[str, Any]] = [
        {
            "group": heading,
            "strategy": label,
            "arm": arm,
            "rank": i,
            "share": float(shares[i]),
            "note": _note(arms, shares),
        }
        for heading, group in groups.items()
        for label, shares in group.items()
        for i, arm in enumerate(arms)
    ]
    y = alt.Y(
        "strategy:N",
        sort=list(groups[largest]),
        axis=alt.Axis(title=None, domain=False, ticks=False),
    )
    base = alt.Chart().encode(y=y)
    colours = alt.Scale(domain=arms, range=list(PALETTE[: len(arms)]))
    legend = alt.Legend(title="Arm", orient="bottom", direction="horizontal", symbolType="square")
    bars = base.mark_bar(height={"band": 0.7}).encode(
        x=alt.X(
            "sum(share):Q",
            scale=alt.Scale(domain=[0.0, 1.0], nice=False),
            axis=alt.Axis(title="Share of all pulls", format="~%", tickCount=5),
        ),
        color=alt.Color("arm:N", sort=arms, scale=colours, legend=legend),
        order="rank:O",
    )
    text = base.mark_text(align="left", color=MUTED, fontSize=11.5).encode(
        x=alt.value(_WIDTH + 6), text="note:N"
    )
    panels = (bars + text.transform_filter("datum.rank == 0")).properties(
        width=_WIDTH, height={"step": 24}
    )
    chart = panels.facet(
        facet=alt.Facet(
            "group:N",
            sort=list(groups),
            title=None,
            header=alt.Header(labelAnchor="start", labelPadding=8),
        ),
        columns=1,
        data=data(rows),
        spacing=26,
    ).resolve_scale(y="independent", x="shared")
    return finish(chart, title, subtitle)


def _note(arms: Sequence[str], shares: Float[np.ndarray, " K"]) -> str:
    """Say which arm gets most of the pulls, or how many arms get about the same."""
    top = int(shares.argmax())
    if shares[top] > 0.5:
        return f"{arms[top]} {shares[top]:.1%}"
    some = shares[shares > 0.01]
    if some.max() - some.min() < 0.002:
        return f"{len(some)} arms, {some.mean():.1%} each"
    return f"{len(some)} arms, {some.min():.1%} to {some.max():.1%}"
