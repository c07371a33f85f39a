"""The picture of the first screen: `python -m docs.welcome` (of an example with a fixed seed).

Three looks at one study with simulated results: the candidates in the order of their names, how far
each is behind the one in front, and who is ruled out. Written to web/static for both themes.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt

from finalist.charts.theme import (
    INK,
    AnyChart,
    candidate_colour,
    data,
    finish,
    own_colours,
    to_svg,
)
from finalist.study import Study
from finalist.web.example import SIZE, candidates, settings, simulate
from finalist.web.pages.standing import Row, VerdictCard, standing
from finalist.web.render import HERE

SEED = 6
#: A candidate at one look: name, state, how far it is behind, and the ends of that.
Seen = tuple[str, str, float, float | None, float | None]
_WIDTH, _STEP = 110, 20
_GREY = "#B8C0C8"


def looks() -> dict[str, VerdictCard]:
    """Return how the example stands after its first batch, in the middle and at its end."""
    found: dict[str, VerdictCard] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        Study.create(f"{folder}/a.db", "a", candidates(), **settings(SEED)) as study,
    ):
        while study.ask(SIZE):
            simulate(study)
            status = study.status(forecast=False)
            found[f"after {status.pulls} results"] = standing(study.snapshot(), status)
    words = list(found)
    return {word: found[word] for word in (words[0], words[len(words) // 2], words[-1])}


def _seen(row: Row) -> Seen:
    state = "out" if row.ruled else row.state
    return row.name, state, row.behind or 0.0, row.low, row.high


def looks_chart(looks: Mapping[str, Sequence[Seen]], order: Sequence[str]) -> AnyChart:
    """Show how far each candidate is behind the one in front, at each look; those out are grey.

    Parameters
    ----------
    looks : mapping of str to sequence
        Under its heading, each candidate as (name, state, behind, low, high); its state is
        "winner", "ahead", "possible" or "out".
    order : sequence of str
        The names from top to bottom; their places decide their colours.

    """
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


def main() -> None:
    """Draw it for both themes."""
    seen = {word: [_seen(row) for row in one.rows] for word, one in looks().items()}
    chart = looks_chart(seen, list(candidates().names))
    for theme in ("light", "dark"):
        path: Path = HERE / "static" / f"welcome-{theme}.svg"
        path.write_text(to_svg(chart, theme) + "\n", encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
