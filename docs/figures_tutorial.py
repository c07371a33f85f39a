"""Pictures of docs/tutorial.md, made by the code as it is: `make docs-figures`."""

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import finalist as fl
from finalist.charts.curves import Curve, curves_chart
from finalist.charts.theme import ACCENT, INK, PALETTE, data, finish, save
from finalist.web.pages.pictures import draw

PAGE = Path(__file__).with_name("tutorial.md")
TRIALS, RUNS = 100_000, 100
#: Of the two studies of the dome.
SEED = 1


def page() -> dict[str, Any]:
    """Return the names that the page defines: pictures and numbers come from the same functions."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    return names


def leads_picture(names: dict[str, Any], folder: Path) -> None:
    rng, trial, lead = np.random.default_rng(1), names["trial"], names["lead"]
    winner, margin = lead(trial(names["plots"], 6, TRIALS, rng).mean(axis=2))
    _, luck = lead(trial(names["close"], 6, TRIALS, rng).mean(axis=2))
    right = winner == names["best"]
    edges = np.arange(0, 27, 2)
    curves = []
    for label, some in (
        ("right winner", margin[right]),
        ("wrong winner", margin[~right]),
        ("best by 0.1 only", luck),
    ):
        share = 100 * np.histogram(some, edges)[0] / len(some)
        middles = (edges[:-1] + edges[1:]) / 2
        curves.append(Curve(label, tuple(middles.tolist()), tuple(share.tolist())))
    chart = curves_chart(
        curves,
        "Lead of the best mean over the second, quarter pounds (in steps of 2)",
        "Share of the trials, %",
        title="By its lead you cannot tell a winner",
        subtitle=[
            f"{TRIALS:,} trials with six plots of each of 12 treatments; plots of Yates (1935).",
            f"{right.mean():.0%} of the winners are right. The true lead is 2.0, or 0.1.",
        ],
        log=False,
    )
    save(chart, folder / "tutorial-leads.png")


def decided_picture(names: dict[str, Any], folder: Path) -> None:
    import altair as alt

    def share(plots: np.ndarray) -> list[tuple[float, float]]:
        """Return how many of the trials have their winner after so many plots."""
        done = np.sort(plots)
        return [(float(n), 100 * (i + 1) / len(done)) for i, n in enumerate(done)]

    rng, oats = np.random.default_rng(2), names["oats"]
    words = {"rewards": oats.draw, "runs": RUNS, "seed": 2}
    gauntlet = fl.simulate(oats.arms, names["theta"], sigma=None, **words)
    uniform = fl.simulate(oats.arms, names["theta"], "uniform", sigma=21.2, **words)
    once = []
    for n in (6, 12, 24, 48, 96, 192):
        y = names["trial"](names["plots"], n, 2000, rng)
        _, sure = names["tested"](y.sum(axis=2), (y**2).sum(axis=(1, 2)), np.full(2000, n))
        once.append((12.0 * n, 100 * float(sure.mean())))
    groups = {
        "gauntlet": share(gauntlet.samples),
        "one look, n fixed before": once,
        "uniform, looked at all the time": share(uniform.samples),
    }
    rows = [
        {"plots": x, "share": y, "what": what} for what, some in groups.items() for x, y in some
    ]
    colours = alt.Scale(domain=list(groups), range=[ACCENT, PALETTE[0], PALETTE[2]])
    base = alt.Chart(data(rows)).encode(
        x=alt.X(
            "plots:Q",
            scale=alt.Scale(type="log", domain=[60, 12_000], nice=False),
            axis=alt.Axis(title="Plots in all", grid=False, values=[100, 300, 1000, 3000, 10_000]),
        ),
        y=alt.Y("share:Q", axis=alt.Axis(title="Trials that have named a winner, %", tickCount=5)),
        color=alt.Color("what:N", scale=colours, legend=alt.Legend(title=None, orient="top")),
    )
    steps = base.transform_filter(f"datum.what != '{list(groups)[1]}'").mark_line(
        strokeWidth=2.5, interpolate="step-after"
    )
    looks = base.transform_filter(f"datum.what == '{list(groups)[1]}'").mark_point(
        filled=True, size=80, opacity=1.0
    )
    subtitle = [
        f"Oats of Yates (1935), delta = 0.05, {RUNS} trials for a curve and 2,000 for a dot.",
        "A dot is a plan of its own: it answers so often, and otherwise not at all.",
    ]
    chart = (steps + looks).properties(width=520, height=320)
    save(finish(chart, "When is the winner known?", subtitle), folder / "tutorial-decided.png")


def dome_pictures(names: dict[str, Any], folder: Path) -> None:
    """Draw where a study of a dome measures without a check and with one, and what it shows."""
    import altair as alt

    table, dome = names["settings"], names["dome"]
    panels = []
    for check, title in ((0, "Without a check"), (0.03, "As every study is")):
        with (
            tempfile.TemporaryDirectory() as home,
            names["oven"](Path(home) / "oven.db", dome, check, SEED) as study,
        ):
            found, snapshot = study.status(forecast=False), study.snapshot()
        rows = [
            {
                "temperature": int(row.temperature),
                "pressure": int(row.pressure),
                "truth": dome[row.name],
                "pulls": arm.pulls,
                "words": str(arm.pulls) if arm.pulls else "",
                "named": arm.name == found.recommendation,
            }
            for row, arm in zip(table.itertuples(index=False), found.arms, strict=True)
        ]
        base = alt.Chart(data(rows)).encode(
            x=alt.X("temperature:O", axis=alt.Axis(title="Temperature, C", labelAngle=0)),
            y=alt.Y("pressure:O", sort="descending", axis=alt.Axis(title="Pressure, bar")),
        )
        cells = base.mark_rect().encode(
            color=alt.Color("truth:Q", scale=alt.Scale(range=["#FFFFFF", "#9EC9E8"]), legend=None)
        )
        counts = base.mark_text(fontSize=14, color=INK).encode(text="words:N")
        named = base.transform_filter("datum.named").mark_rect(
            filled=False, stroke=ACCENT, strokeWidth=3.5
        )
        outcome = "certain" if found.certain else "nothing certain"
        heading = alt.TitleParams(
            text=title, subtitle=f"{found.recommendation}; {outcome}", fontSize=14, offset=8
        )
        layers = alt.layer(cells, counts, named).properties(width=240, height=240, title=heading)
        panels.append(layers)
    remarks = [
        "Numbers: measurements. Darker: better in truth. Framed: what the study names.",
        f"The best is 40 C, 3 bar. Seed {SEED}.",
    ]
    both = alt.hconcat(*panels, spacing=40)
    save(finish(both, "One dome, two studies", remarks), folder / "tutorial-dome.png")
    save(draw(snapshot, "bends", lambda: None), folder / "bends.png")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "images"
    defined = page()
    leads_picture(defined, target)
    decided_picture(defined, target)
    dome_pictures(defined, target)
