"""The strategies since the paper: whole runs beside plain NumPy, and how their time grows.

    python -m benchmarks.field [--quick] [--only same,runs,rage,pulls,phases]

The instance is Soare 2014, Sect. 6, with omega = 0.01 and d = 5; sigma = 1, delta = 0.05.
Track-and-stop, which is for arms without features, has ten of these. As in `benchmarks.strategies`
runs of finalist are whole runs, and the plain version (`benchmarks.plain_field`) is measured over
its first pulls, in turns with finalist. Writes benchmarks/results/field-speed.md and two charts
beside it; the exit code is 1 when a target is missed.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count
from pathlib import Path

import numpy as np

from benchmarks import field_growth, harness, plain, plain_field
from benchmarks.harness import Report, Table, Target, Timing, console, seconds
from benchmarks.strategies import (
    DELTA,
    EASIER,
    PAPER,
    RESULTS,
    SEED,
    SIGMA,
    Case,
    Instance,
    drawn,
    forget,
    lockstep,
    one_by_one,
    paper,
    task,
)
from finalist.arms import Arms
from finalist.design.linalg import spanning_arms
from finalist.strategies import (
    RAGE,
    LazyTS,
    LinGame,
    LinGapE,
    Playable,
    TrackAndStop,
)
from finalist.strategies.per_pull.lazy_ts import optimal_weights
from finalist.strategies.per_pull.lingape import Selection, pair_shares
from finalist.strategies.per_pull.track_and_stop import gaussian_calibration
from finalist.strategies.phased.rage import survivors_design

SECTIONS = ("same", "runs", "rage", "pulls", "phases")
#: Pulls that are compared one by one.
FIRST = 2000
#: Whole runs of RAGE that are compared phase by phase, ten times as many where they are short.
RUNS_OF_RAGE = 20
#: Steps of the plain version's own design solver.
STEPS = 1000
RECORDED = "public research code (recorded elsewhere, not in this run)"
#: Arms without features: one best, five close, four far.
UNSTRUCTURED = Instance(
    Arms.unstructured(10), np.array([1.0, 0.8, 0.79, 0.78, 0.77, 0.76, 0.0, 0.0, 0.0, 0.0])
)
FEWER = Instance(Arms.unstructured(4), np.array([1.0, 0.5, 0.4, 0.0]))


# ---- the strategies, twice ---------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A strategy twice, the instances it is compared on, and what others have recorded."""

    case: Case
    recorded: str = "-"
    promised: float | None = None
    hard: Instance = PAPER
    easy: Instance = EASIER


def ridge_of(strategy: LinGapE | LinGame, Z: np.ndarray) -> float:
    """Return the ridge in span coordinates."""
    return strategy.ridge * float((Z**2).sum(axis=1).max())


def lingape_case(selection: Selection) -> Case:
    """Make LinGapE; its ridge and norm are meant in span coordinates."""

    def ours(instance: Instance) -> LinGapE:
        return replace(LinGapE.knowing(*instance), selection=selection)

    def in_numpy(instance: Instance) -> plain.Plain:
        settings, Z = ours(instance), instance.arms.coordinates

        def shares(first: int, second: int) -> np.ndarray:
            share = np.zeros(len(Z))
            support, parts = pair_shares(instance.arms, first, second)
            share[support] = parts
            return share

        ridge, norm = ridge_of(settings, Z), settings.theta_norm
        by = shares if selection == "ratio" else None
        return plain_field.LinGapE(Z, ridge, norm, DELTA, SIGMA, by)

    return Case(f"lingape, {selection}", ours, in_numpy)


def lazy_case() -> Case:
    """Make lazy track-and-stop."""

    def in_numpy(instance: Instance) -> plain.Plain:
        Z = np.array(instance.arms.coordinates)
        design = partial(optimal_weights, Z)
        return plain_field.LazyTS(Z, spanning_arms(Z), design, LazyTS().ridge, DELTA, SIGMA)

    return Case("lazy-ts", lambda _: LazyTS(), in_numpy)


def lingame_case() -> Case:
    """Make LinGame; its ridge and norm are meant in span coordinates."""

    def in_numpy(instance: Instance) -> plain.Plain:
        settings, Z = LinGame.knowing(*instance), instance.arms.coordinates
        return plain_field.LinGame(Z, ridge_of(settings, Z), settings.theta_norm, DELTA, SIGMA)

    return Case("lingame", lambda instance: LinGame.knowing(*instance), in_numpy)


def track_case() -> Case:
    """Make track-and-stop."""

    def in_numpy(instance: Instance) -> plain.Plain:
        K = len(instance.arms)
        constant = 2.0 * gaussian_calibration(math.log((K - 1) / DELTA) / 2.0)

        def threshold(t: int) -> float:
            return 4.0 * math.log(4.0 + math.log(t / 2.0)) + constant

        return plain_field.TrackAndStop(K, threshold, SIGMA)

    return Case("track-and-stop", lambda _: TrackAndStop(), in_numpy)


ENTRIES = [
    Entry(lingape_case("greedy"), "60 s (1,040,000 pulls)", 0.6),
    Entry(lingape_case("ratio"), "-", 0.6),
    Entry(lazy_case(), "over 178 s", 1.0),
    Entry(lingame_case()),
    Entry(track_case(), hard=UNSTRUCTURED, easy=FEWER),
]


def rage_in_numpy(instance: Instance, own_designs: bool) -> plain_field.RAGE:
    """Make RAGE in plain NumPy, with the designs of finalist or with its own."""
    X = instance.arms.features

    def given(alive: np.ndarray) -> tuple[np.ndarray, float]:
        return survivors_design(instance.arms, tuple(map(int, alive)))

    @cache  # phases with the same survivors have the same design
    def solved(alive: tuple[int, ...]) -> tuple[np.ndarray, float]:
        return plain_field.frank_wolfe(X, np.array(alive), STEPS)

    def own(alive: np.ndarray) -> tuple[np.ndarray, float]:
        return solved(tuple(map(int, alive)))

    return plain_field.RAGE(X, own if own_designs else given, DELTA, SIGMA)


# ---- the same pulls ----------------------------------------------------------------------


def to_the_end(case: Case, instance: Instance, most: int = 10**7) -> tuple[int, int, bool]:
    """Return the pulls of whole runs of both from the same rewards, and if all is the same."""
    run = case.strategy(instance).start(task(case.strategy(instance), instance).problem)
    assert isinstance(run, Playable)
    counts = run.play(drawn(instance, SEED), most)
    twin = case.plain(instance)
    pulled = plain.play(twin, one_by_one(instance, SEED), most)
    same = np.array_equal(np.bincount(pulled, minlength=len(counts)), counts)
    return int(counts.sum()), len(pulled), same and run.verdict.winner == twin.winner


def same_phases(instance: Instance, seed: int) -> tuple[int, bool]:
    """Let RAGE go on phase by phase on both sides with the same rewards, to the end."""
    run = RAGE().start(task(RAGE(), instance).problem)
    twin, rewards = rage_in_numpy(instance, own_designs=False), drawn(instance, seed)
    while not run.verdict.decided:
        batch = run.next()
        if not np.array_equal(twin.allocate(), batch.counts):
            return run.verdict.pulls, False
        given = rewards.batch(batch.counts)
        run.record(batch, given)
        twin.learn(batch.counts, given.count * given.mean)
        if not np.array_equal(twin.alive, run.verdict.survivors):
            return run.verdict.pulls, False
    return run.verdict.pulls, run.verdict.winner == twin.winner


def same_runs_of_rage(instance: Instance, number: int) -> tuple[int, bool]:
    """Compare many runs of RAGE, because it looks at its rewards only a few times in each."""
    runs = [same_phases(instance, seed) for seed in range(number)]
    return sum(pulls for pulls, _ in runs), all(same for _, same in runs)


def bench_same(report: Report, quick: bool) -> None:
    """Check that the plain version is the same strategy."""
    console.print("The same pulls: rage...")
    pulls, same = same_runs_of_rage(PAPER, RUNS_OF_RAGE)
    easy, also = same_runs_of_rage(EASIER, 10 * RUNS_OF_RAGE)
    whole = f"{pulls:,} in {RUNS_OF_RAGE} whole runs", f"{easy:,} in {10 * RUNS_OF_RAGE} runs"
    rows = [("rage", *whole, "yes" if same and also else "**no**")]
    agreed = {"rage": same and also}
    for entry in ENTRIES:
        name = entry.case.name
        console.print(f"The same pulls: {name}...")
        first, agree = lockstep(entry.case, entry.hard, FIRST // 4 if quick else FIRST)
        pulls, _, same = to_the_end(entry.case, entry.easy)
        agreed[name] = agree and same
        answer = "yes" if agreed[name] else "**no**"
        rows.append((name, f"{first:,}", f"{pulls:,}", answer))
    for name, agree in agreed.items():
        text = "the same", "the same" if agree else "others"
        report.targets.append(Target(f"{name}: pulls of plain NumPy", *text, agree))
    columns = ("strategy", "first pulls, omega = 0.01", "whole run, omega = 0.3", "the same")
    note = (
        "The same rewards go to both; first pulls one by one (RAGE: phase by phase), whole runs by "
        "the pulls of each arm and the winner. Track-and-stop: ten arms without features, then "
        "four. Both sides use the same designs, shares of a pair and coordinates."
    )
    report.add(Table("The same pulls from the same rewards", columns, rows, note))
    lazy_to_the_end(report, quick)


def lazy_to_the_end(report: Report, quick: bool) -> None:
    """Compare the number of pulls of lazy track-and-stop with that of its paper's rule."""
    omega = 0.1 if quick else 0.01
    console.print(f"Lazy track-and-stop in plain NumPy to the end, omega = {omega:g}...")
    ours, theirs, same = to_the_end(lazy_case(), paper(omega))
    text = f"{theirs:,} by the paper's rule", f"{ours:,}"
    name = f"lazy-ts: pulls of a whole run, omega = {omega:g}"
    report.targets.append(Target(name, *text, same))


# ---- whole runs --------------------------------------------------------------------------

COLUMNS = (
    "strategy",
    "pulls, mean",
    "CPU of a run",
    "runs",
    "pulls/s",
    "NumPy, pulls/s",
    "NumPy, a run (extrapolated)",
    "ratio",
    RECORDED,
)


def measure(entry: Entry, quick: bool) -> tuple[list[Timing], list[Timing]]:
    """Alternate whole runs of finalist, each with another seed, with pulls of the plain version."""
    turns, runs, pulls = (1, 1, 1000) if quick else (5, 3, 10_000)
    case, hard = entry.case, entry.hard
    task(case.strategy(entry.easy), entry.easy).run(0)  # kernels
    job, index = task(case.strategy(hard), hard), count()
    ours, numpy = [], []
    for turn in range(turns):
        ours += [harness.timed(lambda: job.run(next(index))) for _ in range(runs)]
        twin, reward = case.plain(hard), one_by_one(hard, turn)
        numpy.append(harness.timed(partial(plain.play, twin, reward, pulls)))
    return ours, numpy


def bench_runs(report: Report, quick: bool) -> None:
    """Time whole runs, and the pulls of the plain version."""
    rows = []
    for entry in ENTRIES:
        name = entry.case.name
        console.print(f"Whole runs: {name}...")
        ours, numpy = measure(entry, quick)
        cpu = harness.median(ours).cpu
        pulls = statistics.mean(int(run.result.pulls.sum()) for run in ours)
        rate = statistics.median(int(run.result.pulls.sum()) / run.cpu for run in ours)
        slow = statistics.median(len(turn.result) / turn.cpu for turn in numpy)
        rows.append(
            (
                name,
                f"{pulls:,.0f}",
                seconds(cpu),
                f"{len(ours)}",
                f"{rate:,.0f}",
                f"{slow:,.0f}",
                seconds(pulls / slow),
                f"{rate / slow:,.0f}",
                entry.recorded,
            )
        )
        if entry.promised is not None:
            report.below(f"{name}: CPU time of a run", cpu, entry.promised, "s")
    note = (
        "CPU of a run is the median, to its end, with rewards drawn and every look in it; compiled "
        "code was loaded before. NumPy makes one pull at a time as the papers tell it, is measured "
        "over its first pulls in turns with finalist, and its run is **extrapolated** from them. "
        "Track-and-stop: ten arms without features, one best and five close to it."
    )
    report.add(Table("Whole runs of strategies that look after every pull", COLUMNS, rows, note))


# ---- RAGE --------------------------------------------------------------------------------


def anew() -> Callable[[int], Timing]:
    """Return what times run i of RAGE with new arms and nothing kept from earlier runs."""

    def cold(index: int) -> Timing:
        forget()
        job = task(RAGE(), Instance(Arms(PAPER.arms.features), PAPER.theta))
        return harness.timed(partial(job.run, index))

    return cold


def rage_child() -> dict[str, float]:
    """Time the first two runs of this fresh process."""
    first, second = anew()(0), anew()(1)
    return {"first": first.cpu, "second": second.cpu}


def numpy_draw(instance: Instance, seed: int) -> plain_field.Draw:
    """Return what draws every reward of a phase and adds them up by arm."""
    means, rng = instance.arms.means(instance.theta), np.random.default_rng(seed)

    def draw(counts: np.ndarray) -> np.ndarray:
        pulled = np.repeat(np.arange(len(counts)), counts)
        rewards = means[pulled] + SIGMA * rng.standard_normal(len(pulled))
        return np.bincount(pulled, weights=rewards, minlength=len(counts))

    return draw


def numpy_rage(own_designs: bool, seed: int) -> Timing:
    """Time a whole run of the plain version."""
    twin = rage_in_numpy(PAPER, own_designs)
    draw = numpy_draw(PAPER, seed)
    return harness.timed(partial(plain_field.play_phases, twin, draw, 10**7))


def bench_rage(report: Report, quick: bool) -> None:
    """Time RAGE with and without designs that earlier runs have left."""
    console.print("RAGE, cold and warm...")
    runs, slow_runs, processes = (10, 1, 1) if quick else (60, 10, 5)
    job, cold_run = task(RAGE(), PAPER), anew()
    job.run(0)
    cold, warm = [], []
    for index in range(runs):
        cold.append(cold_run(index))
        job.run(index)  # leaves its designs
        warm.append(harness.timed(partial(job.run, index)))
    children = [
        harness.in_child("benchmarks.field", "--child", "rage")["first"] for _ in range(processes)
    ]
    job.run(0)
    given = [numpy_rage(False, seed) for seed in range(slow_runs)]
    own = [numpy_rage(True, seed) for seed in range(slow_runs)]
    rows = [
        ("nothing kept from earlier runs", *_spread([run.cpu for run in cold])),
        ("the same runs, designs kept", *_spread([run.cpu for run in warm])),
        ("the first run of a fresh process", *_spread(children)),
        ("plain NumPy, designs given", *_spread([run.cpu for run in given])),
        (f"plain NumPy, {STEPS:,} Frank-Wolfe steps a design", *_spread([run.cpu for run in own])),
        (RECORDED, "92 ms", "", "1"),
    ]
    columns = ("RAGE on the paper's instance", "CPU, median", "CPU, mean", "runs")
    pulls = statistics.mean(int(run.result.pulls.sum()) for run in cold)
    phases = statistics.mean(run.result.batches for run in cold)
    spent = harness.median(cold).cpu - harness.median(warm).cpu
    note = (
        f"Runs with different seeds, {pulls:,.0f} pulls in {phases:.1f} phases on average. With "
        "nothing kept, every run has new arms and solves the designs of its phases, two of them on "
        f"this instance: {seconds(spent)} of it. A fresh process also loads libraries and compiled "
        "code from disk. Plain NumPy draws the rewards of a phase as one vector; finalist draws "
        f"their sums. Plain NumPy takes {ratio(own, cold):.1f} times as long if both solve designs "
        f"and {ratio(given, warm):.1f} times as long if both have them."
    )
    report.add(Table("RAGE", columns, rows, note))
    report.below("rage, nothing kept: CPU time of a run", 1e3 * harness.median(cold).cpu, 10, "ms")


def ratio(slow: list[Timing], fast: list[Timing]) -> float:
    """Return how many times longer some runs take than others, by their medians."""
    return harness.median(slow).cpu / harness.median(fast).cpu


def _spread(cpu: list[float]) -> tuple[str, str, str]:
    return seconds(statistics.median(cpu)), seconds(statistics.mean(cpu)), f"{len(cpu)}"


# ---- the program -------------------------------------------------------------------------

CHARTS = """
![Time of a pull against K and against d](field-speed-pulls.svg)

![Time of the first decision against K and against d](field-speed-phases.svg)
"""


def measure_all(report: Report, asked: list[str], charts: Path, quick: bool) -> None:
    """Go through the sections that were asked for."""
    benches: dict[str, Callable[[], None]] = {
        "same": partial(bench_same, report, quick),
        "runs": partial(bench_runs, report, quick),
        "rage": partial(bench_rage, report, quick),
        "pulls": partial(field_growth.bench_pulls, report, charts, quick),
        "phases": partial(field_growth.bench_phases, report, charts, quick),
    }
    harness.go_through(report, {name: benches[name] for name in asked})


def main() -> int:
    """Measure what was asked for and write the report."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="benchmarks.field", description=__doc__, formatter_class=layout
    )
    parser.add_argument("--quick", action="store_true", help="few runs, for a first look")
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"some of {','.join(SECTIONS)}")
    parser.add_argument("--child", choices=["rage"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    harness.single_thread()
    if options.child:
        print(json.dumps(rage_child()))
        return 0
    asked = harness.asked_for(parser, options.only, SECTIONS)
    report = Report("The field: measurements")
    whole = asked == list(SECTIONS) and not options.quick
    if whole:
        measure_all(report, asked, RESULTS, quick=False)
        return report.finish(RESULTS / "field-speed.md", CHARTS)
    with tempfile.TemporaryDirectory() as folder:
        measure_all(report, asked, Path(folder), options.quick)
    return report.finish(RESULTS / "field-speed-partial.md")


if __name__ == "__main__":
    sys.exit(main())
