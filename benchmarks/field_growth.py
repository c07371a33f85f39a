"""How the time of the strategies grows with the number of arms and with the dimension.

Part of `benchmarks.field`. Arms lie on the unit sphere. Strategies that look after every pull are
measured by the pull, on two arms that are equally good, so that nothing ends; those that look after
a phase or a batch by their first decision, when every arm is alive, and by the whole run.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import Report, Table, console, seconds, timed
from benchmarks.strategies import DELTA, SIGMA, forget
from finalist.charts.theme import PALETTE, data, finish, save
from finalist.problem import as_problem
from finalist.simulation.instances import (
    Instance,
    between,
    random_theta,
    unit_sphere,
    unstructured,
)
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies import (
    RAGE,
    FullyAdaptive,
    Gauntlet,
    LazyTS,
    LinGame,
    LinGapE,
    Playable,
    Strategy,
    TrackAndStop,
    XYAdaptive,
)

#: What is fixed while the other grows.
FIXED_D, FIXED_K = 5, 50
K_PULLS, K_PHASES = (10, 20, 50, 100, 200, 500), (10, 30, 100, 300, 1000, 3000, 10_000)
D_VALUES = (2, 3, 5, 10, 20)
#: Pulls of a measurement by the pull.
PULLS = 20_000
#: CPU seconds after which a run by phases is given up.
PATIENCE = 12.0
ARMS, DIMENSION = f"K (d = {FIXED_D})", f"d (K = {FIXED_K})"

Make = Callable[[Instance], Strategy]
PER_PULL: dict[str, Make] = {
    "fully-adaptive": lambda i: FullyAdaptive.knowing(i.arms, i.theta),
    "lingame": lambda i: LinGame.knowing(i.arms, i.theta),
    "lazy-ts": lambda _: LazyTS(),
    "lingape": lambda i: LinGapE.knowing(i.arms, i.theta),
    "track-and-stop": lambda _: TrackAndStop(),
}
PHASED: dict[str, Make] = {
    "xy-adaptive": lambda _: XYAdaptive(),
    "rage": lambda _: RAGE(),
    "gauntlet": lambda _: Gauntlet(),
}


class Point(NamedTuple):
    """One measurement: CPU seconds of a pull or of a decision, and of a run if it ended."""

    panel: str
    strategy: str
    size: int
    cpu: float
    run: float = math.nan
    decisions: float = math.nan


def sizes(panel: str, K_values: Sequence[int], quick: bool) -> list[tuple[int, int]]:
    """Return K and d of every measurement of a panel."""
    if panel == ARMS:
        return [(K, FIXED_D) for K in (K_values[:3] if quick else K_values)]
    return [(FIXED_K, d) for d in (D_VALUES[:3] if quick else D_VALUES)]


# ---- by the pull -------------------------------------------------------------------------


def tied(name: str, K: int, d: int, seed: int) -> Instance:
    """Return an instance whose two best arms are equally good."""
    if name == "track-and-stop":
        return unstructured(np.append([1.0, 1.0], np.linspace(0.0, 0.5, K - 2)))
    return between(unit_sphere(K, d, seed), share=0.5)


def time_of_a_pull(name: str, K: int, d: int, seed: int, pulls: int) -> float:
    """Return the mean CPU seconds of the first pulls."""
    instance = tied(name, K, d, seed)
    rewards, strategy = drawn(instance, seed), PER_PULL[name](instance)
    run = strategy.start(as_problem(instance.arms, sigma=SIGMA, delta=DELTA))
    assert isinstance(run, Playable)
    return timed(partial(run.play, rewards, pulls)).cpu / run.verdict.pulls


def bench_pulls(report: Report, folder: Path, quick: bool) -> None:
    """Time pulls against K and d."""
    points = []
    repeats, pulls = (1, PULLS // 10) if quick else (3, PULLS)
    for name in PER_PULL:
        time_of_a_pull(name, 10, 5, 0, 1000)  # compiled code
        for panel in (ARMS, DIMENSION) if name != "track-and-stop" else (ARMS,):
            for K, d in sizes(panel, K_PULLS, quick):
                each = [time_of_a_pull(name, K, d, seed, pulls) for seed in range(repeats)]
                cpu = statistics.median(each)
                points.append(Point(panel, name, K if panel == ARMS else d, cpu))
                console.print(f"{name} at ({K}, {d}): {1e6 * cpu:.3g} microseconds a pull")
    rows = [(p.strategy, p.panel, f"{p.size:,}", f"{1e6 * p.cpu:.3g}") for p in points]
    columns = ("strategy", "against", "size", "CPU of a pull, microseconds")
    note = (
        f"Means over the first {pulls:,} pulls, medians of {repeats} of these. Arms on the unit "
        "sphere, the parameter halfway between the two closest arms: these two "
        "are equally good and nothing ends. Everything between two pulls is in it: the reward, the "
        "update, the look, the choice, the designs of lazy-ts. Track-and-stop has arms without "
        "features, so its dimension is K."
    )
    report.add(Table("Growth: a pull", columns, rows, note))
    title = "Time of a pull"
    words = [
        f"Mean of the first {pulls:,} pulls, arms on the unit sphere; track-and-stop has K arms "
        "without features."
    ]
    draw(points, title, words, "microseconds of CPU", 1e6, folder / "field-speed-pulls")


# ---- by the phase ------------------------------------------------------------------------


def decisions(instance: Instance, strategy: Strategy, patience: float) -> tuple[list[float], bool]:
    """Return the CPU seconds of every decision (the next batch and its test), and if it ended.

    Nothing that earlier runs have left is used, and the rewards are not in it.
    """
    forget()
    rewards, cpu = drawn(instance, 0), list[float]()
    run = strategy.start(as_problem(instance.arms, sigma=SIGMA, delta=DELTA), seed=0)
    while not run.verdict.decided and sum(cpu) < patience:
        begin = time.process_time()
        batch = run.next()
        chosen = time.process_time()
        given = rewards.batch(batch.counts)
        told = time.process_time()
        run.record(batch, given)
        if batch.note.get("kind") != "pilot":
            cpu.append(chosen - begin + time.process_time() - told)
    return cpu, run.verdict.decided


def bench_phases(report: Report, folder: Path, quick: bool) -> None:
    """Time decisions and runs against K and d."""
    points, seeds = [], 1 if quick else 3
    for name, make in PHASED.items():
        small = random_theta(unit_sphere(10, 5, 0), 0)
        decisions(small, make(small), PATIENCE)  # compiled code, libraries
        for panel in (ARMS, DIMENSION):
            for K, d in sizes(panel, K_PHASES, quick):
                each: list[tuple[list[float], bool]] = []
                for seed in range(seeds if K <= 1000 else 1):
                    instance = random_theta(unit_sphere(K, d, seed), seed)
                    each.append(decisions(instance, make(instance), PATIENCE))
                points.append(phase_point(panel, name, K if panel == ARMS else d, each))
                console.print(f"{name} at ({K}, {d}): {seconds(points[-1].cpu)} a first decision")
    rows = [
        (p.strategy, p.panel, f"{p.size:,}", seconds(p.cpu), given_up(p.run), f"{p.decisions:g}")
        for p in points
    ]
    columns = ("strategy", "against", "size", "first decision, CPU", "run, CPU", "decisions")
    note = (
        "Arms on the unit sphere, a random parameter of length 1; medians of 3 instances, from "
        "3,000 arms on of 1. A decision is the next batch and the test of its rewards; the first "
        "one (of the gauntlet: after its pilot) has every arm alive. A run is "
        f"all of them, with nothing kept from earlier runs, given up after {PATIENCE:g} s."
    )
    report.add(Table("Growth: a decision and a run", columns, rows, note))
    title = "Time of the first decision, with every arm alive"
    words = ["Arms on the unit sphere; the next batch and the test of its rewards."]
    draw(points, title, words, "seconds of CPU", 1.0, folder / "field-speed-phases")


def phase_point(panel: str, name: str, size: int, each: list[tuple[list[float], bool]]) -> Point:
    """Make medians of some runs."""
    first = statistics.median(cpu[0] for cpu, _ in each)
    whole = float(np.median([sum(cpu) if ended else math.nan for cpu, ended in each]))
    return Point(panel, name, size, first, whole, statistics.median(len(cpu) for cpu, _ in each))


def given_up(run: float) -> str:
    """Format the time of a run, if it ended."""
    return "-" if math.isnan(run) else seconds(run)


def drawn(instance: Instance, seed: int) -> DrawnRewards:
    """Draw rewards."""
    means = instance.arms.means(instance.theta)
    return DrawnRewards(means, SIGMA, "gaussian", np.random.default_rng(seed))


# ---- the charts --------------------------------------------------------------------------


def draw(
    points: list[Point], title: str, subtitle: list[str], unit: str, scale: float, path: Path
) -> None:
    """Two log-log panels, saved as SVG and PNG."""
    import altair as alt

    names = sorted(
        {p.strategy for p in points},
        key=lambda name: -max(p.cpu for p in points if p.strategy == name and p.panel == ARMS),
    )
    colours = alt.Scale(domain=names, range=list(PALETTE[: len(names)]))
    shapes = alt.Scale(domain=names, range=["circle", "square", "triangle-up", "diamond", "cross"])
    log = alt.Scale(type="log", nice=False, padding=14)
    powers = [10.0**k for k in range(-6, 7)]
    panels: list[Any] = []
    for panel in (ARMS, DIMENSION):
        rows: list[dict[str, Any]] = [
            {"strategy": p.strategy, "size": p.size, "cpu": scale * p.cpu}
            for p in points
            if p.panel == panel
        ]
        ticks = sorted({row["size"] for row in rows})
        base = alt.Chart(data(rows), width=330, height=280).encode(
            x=alt.X(
                "size:Q",
                scale=log,
                title=panel,
                axis=alt.Axis(values=ticks, grid=False, format=",", labelOverlap=True),
            ),
            y=alt.Y("cpu:Q", scale=log, title=unit, axis=alt.Axis(values=powers, format="~g")),
            color=alt.Color("strategy:N", title=None, scale=colours),
        )
        marks = base.mark_point(filled=True, size=60, opacity=1)
        shape = alt.Shape("strategy:N", title=None, scale=shapes)
        panels.append(base.mark_line(strokeWidth=2) + marks.encode(shape=shape))
    chart = finish(alt.hconcat(*panels).resolve_scale(y="shared"), title, subtitle)
    for suffix in ("svg", "png"):
        save(chart, path.with_suffix(f".{suffix}"))
