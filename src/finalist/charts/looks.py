"""Several looks at one study, side by side: the picture of the first screen."""

from collections.abc import Mapping, Sequence
from typing import Any

from finalist.charts.theme import INK, AnyChart, candidate_colour, data, finish, own_colours
from finalist.errors import ChartError

#: A candidate at one look: name, state, how far it is behind, and the ends of that.
Seen = tuple[str, str, float, float | None, float | None]
_WIDTH, _STEP = 110, 20
_GREY = "#B8C0C8"


def looks_chart(looks: Mapping[str, Sequence[Seen]], order: Sequence[str]) -> AnyChart:
    """Show how far each candidate is behind the one in front, at each look; those out are grey.

    Parameters
    ----------
    looks : mapping of str to sequence
        Under its heading, each candidate as (name, state, behind, low, high); its state is
        "winner", "ahead", "possible" or "out".
    order : sequence of str
        The names from top to bottom; their places decide their colours.

    Examples
    --------
    >>> one = [("a", "winner", 0.0, None, None), ("b", "out", 1.0, 0.5, 1.5)]
    >>> chart = looks_chart({"after 9 results": one}, ["a", "b"])
    >>> [panel["title"]["text"] for panel in chart.to_dict()["hconcat"]]
    ['after 9 results']
    """
    import altair as alt

    if not looks:
        raise ChartError("there is no look to draw; give one at least.")
    ends = [0.0]
    for seen in looks.values():
        for _, state, behind, low, high in seen:
            ends += [behind] if state == "out" or low is None or high is None else [low, high]
    domain = [min(ends), max(ends)]
    colour = {name: candidate_colour(place) for place, name in enumerate(order)}
    panels = []
    for number, (heading, seen) in enumerate(looks.items()):
        rows: list[dict[str, Any]] = [_row(one, colour, domain) for one in seen]
        axis = alt.Axis(title=None, domain=False, ticks=False, labels=number == 0, labelLimit=140)
        y = alt.Y("name:N", sort=list(order), axis=axis)
        x = alt.X("low:Q", scale=alt.Scale(domain=domain, nice=False), axis=None)
        look = own_colours()
        lines = alt.Chart().mark_rule(strokeWidth=5, strokeCap="round", opacity=0.5)
        dots = alt.Chart().mark_circle(size=70, opacity=1)
        layers = [
            lines.encode(x=x, x2="high:Q", y=y, color=look),
            dots.encode(x=alt.X("behind:Q"), y=y, color=look),
        ]
        winner = [row for row in rows if row["state"] == "winner"]
        if winner:
            text = alt.Chart(data(winner)).mark_text(
                align="left", dx=10, color=INK, fontSize=13, fontWeight=600, text="winner"
            )
            layers.append(text.encode(x="behind:Q", y=y))
        panel = alt.layer(*layers, data=data(rows))
        heading_ = alt.TitleParams(text=heading, anchor="start", fontSize=13, offset=6)
        panels.append(panel.properties(width=_WIDTH, height={"step": _STEP}, title=heading_))
    return finish(alt.hconcat(*panels, spacing=18), "", [])


def _row(one: Seen, colour: Mapping[str, str], domain: Sequence[float]) -> dict[str, Any]:
    name, state, behind, low, high = one
    out = state == "out"
    at = min(max(behind, domain[0]), domain[1])
    return {
        "name": name,
        "state": state,
        "behind": at,
        "low": at if out or low is None else low,
        "high": at if out or high is None else high,
        "colour": _GREY if out else colour[name],
    }
