"""Whole runs of the strategies on the paper's instance, beside the same in plain NumPy.

    python -m benchmarks.strategies [--quick] [--only same,runs,phases,memory,start]

The instance is Soare 2014, Sect. 6, with omega = 0.01 and d = 5; sigma = 1, delta = 0.05. Runs
of finalist are whole runs. The plain version (`benchmarks.plain`) would need up to a quarter
of an hour for each: its speed is measured over the first pulls, in turns with finalist, and what a
whole run would take is extrapolated. That both make the same pulls is checked here too. Writes
benchmarks/results/strategies.md; the exit code is 1 when a target is missed.
"""

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from tests import instances

from benchmarks import harness, plain
from benchmarks.harness import Report, Table, Target, Timing, console, seconds
from finalist.arms import Arms
from finalist.inference.bounds import Bound
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.simulation import simulate
from finalist.simulation.rewards import DrawnRewards
from finalist.simulation.task import Task, make_task
from finalist.strategies import (
    FullyAdaptive,
    GAllocation,
    Playable,
    Strategy,
    XYAdaptive,
    XYAllocation,
    XYOracle,
)
from finalist.strategies.phased.rage import survivors_design
from finalist.strategies.phased.xy_adaptive import phase_allocation, phase_design
from finalist.strategies.static.static import static_design
from finalist.strategies.static.xy_oracle import (
    Stopping,
    knowledge_of,
    oracle_allocation,
    oracle_design,
)

RESULTS = Path(__file__).parent / "results"
SECTIONS = ("same", "runs", "phases", "memory", "start")
SIGMA, DELTA, ALPHA = 1.0, 0.05, 0.4
SEED = 1
#: Pulls compared on the paper's instance, one by one or in batches.
FIRST, FIRST_IN_BATCHES = 500, 20_000
BOUNDS: tuple[Bound, ...] = ("soare", "sharp")


class Instance(NamedTuple):
    """Arms with their true parameter."""

    arms: Arms
    theta: np.ndarray


def paper(omega: float) -> Instance:
    """Return the instance of Sect. 6 with d = 5."""
    truth = instances.paper(5, omega)
    return Instance(Arms(truth.features), truth.theta)


PAPER, EASIER = paper(0.01), paper(0.3)


def tied() -> Instance:
    """Return the paper's arms with two of them best: a run goes on until it is stopped."""
    X = PAPER.arms.features
    return Instance(PAPER.arms, X[0] + X[-1])


def task(strategy: Strategy, instance: Instance, max_pulls: int = 10**9) -> Task:
    """Return what `simulate` makes of a strategy."""
    settings: dict[str, Any] = {"rewards": None, "seed": SEED, "sigma": SIGMA, "delta": DELTA}
    return make_task(*instance, strategy, max_pulls=max_pulls, **settings)


# ---- the strategies, twice ---------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A strategy of finalist and the same in plain NumPy, both for an instance to come."""

    name: str
    strategy: Callable[[Instance], Strategy]
    plain: Callable[[Instance], plain.Plain]
    batches: bool = False


def static_case(criterion: Literal["g", "xy"], bound: Bound) -> Case:
    """Make G or XY."""
    make = GAllocation if criterion == "g" else XYAllocation

    def in_numpy(instance: Instance) -> plain.Plain:
        weights = static_design(instance.arms, criterion).weights
        return plain.Static(instance.arms.features, weights, static_radius(instance, bound))

    return Case(f"{criterion}, {bound}", lambda _: make(bound), in_numpy)


def oracle_case(stopping: Stopping) -> Case:
    """Make the XY-oracle."""

    def in_numpy(instance: Instance) -> plain.Plain:
        X, theta, radius = instance.arms.features, instance.theta, static_radius(instance, "sharp")
        known = knowledge_of(as_problem(instance.arms, sigma=SIGMA, delta=DELTA), theta, stopping)
        weights = oracle_design(known).weights
        if stopping == "empirical":
            return plain.Static(X, weights, radius)
        # One look at the arms that would be wrong.
        once = SIGMA * math.sqrt(2.0 * math.log(len(known.rivals) / DELTA))
        return plain.Oracle(X, theta, weights, lambda _: once)

    def ours(instance: Instance) -> Strategy:
        return XYOracle(instance.theta, stopping=stopping)

    return Case(f"xy-oracle, sharp, {stopping}", ours, in_numpy, stopping == "deterministic")


def phases_case() -> Case:
    """Make XY-Adaptive."""

    def in_numpy(instance: Instance) -> plain.Plain:

        def design(alive: tuple[int, ...]) -> np.ndarray:
            return phase_design(instance.arms, alive).weights

        return plain.XYAdaptive(instance.arms.features, design, ALPHA, DELTA, SIGMA)

    return Case("xy-adaptive, sharp", lambda _: XYAdaptive(ALPHA), in_numpy, batches=True)


def adaptive_case(bound: Bound) -> Case:
    """Make the fully adaptive strategy; its ridge and norm are meant in span coordinates."""

    def ours(instance: Instance) -> FullyAdaptive:
        return replace(FullyAdaptive.knowing(*instance), bound=bound)

    def in_numpy(instance: Instance) -> plain.Plain:
        settings, Z = ours(instance), instance.arms.coordinates
        ridge = settings.ridge * float((Z**2).sum(axis=1).max())
        norm, printed = settings.theta_norm, bound == "soare"
        return plain.FullyAdaptive(Z, ridge, norm, DELTA, SIGMA, printed)

    return Case(f"fully-adaptive, {bound}", ours, in_numpy)


def static_radius(instance: Instance, bound: Bound) -> plain.Radius:
    """Return the radius of the static strategies as the plain version computes it."""
    return plain.static_radius(len(instance.arms), DELTA, SIGMA, printed=bound == "soare")


CASES = [
    phases_case(),
    *(static_case("xy", bound) for bound in BOUNDS),
    *(static_case("g", bound) for bound in BOUNDS),
    oracle_case("deterministic"),
    oracle_case("empirical"),
    *(adaptive_case(bound) for bound in BOUNDS),
]


# ---- the same pulls ----------------------------------------------------------------------


def drawn(instance: Instance, seed: int) -> DrawnRewards:
    """Draw rewards for finalist."""
    means = instance.arms.means(instance.theta)
    return DrawnRewards(means, SIGMA, "gaussian", np.random.default_rng(seed))


def one_by_one(instance: Instance, seed: int) -> Callable[[int], float]:
    """Draw the same rewards for the plain version."""
    means, rng = instance.arms.means(instance.theta).tolist(), np.random.default_rng(seed)
    return lambda arm: float(means[arm] + SIGMA * rng.standard_normal())


def lockstep(case: Case, instance: Instance, limit: int) -> tuple[int, bool]:
    """Let both go on batch by batch with the same rewards; return how far, and if all is the same.

    A batch is what finalist takes by default: a single pull, a phase, or the whole allocation.
    """
    K, reward = len(instance.arms), one_by_one(instance, SEED)
    run = case.strategy(instance).start(task(case.strategy(instance), instance).problem)
    twin, same = case.plain(instance), 0
    while not run.verdict.decided:
        batch, rewards = run.next(), Statistics.empty(K)
        if same + batch.size > limit:
            break
        pulled = plain.play(twin, partial(kept, rewards, reward), batch.size)
        if not np.array_equal(np.bincount(pulled, minlength=K), batch.counts):
            return same, False
        run.record(batch, rewards)
        same += batch.size
    return same, run.verdict.winner == twin.winner


def kept(rewards: Statistics, reward: Callable[[int], float], arm: int) -> float:
    """Draw a reward for both sides."""
    value = reward(arm)
    rewards.add(arm, value)
    return value


def whole_run(case: Case, instance: Instance) -> tuple[int, bool]:
    """Compare a whole run of the compiled loop with one of the plain version."""
    strategy = case.strategy(instance)
    run = strategy.start(task(strategy, instance).problem)
    if not isinstance(run, Playable):
        return lockstep(case, instance, 10**6)
    counts = run.play(drawn(instance, SEED), 10**6)
    twin = case.plain(instance)
    pulled = plain.play(twin, one_by_one(instance, SEED), 10**6)
    same = np.array_equal(np.bincount(pulled, minlength=len(counts)), counts)
    return int(counts.sum()), same and run.verdict.winner == twin.winner


def bench_same(report: Report, quick: bool) -> None:
    """Check that the plain version is the same strategy."""
    rows = []
    for case in CASES:
        console.print(f"The same pulls: {case.name}...")
        limit = FIRST_IN_BATCHES if case.batches else FIRST
        first, agree = lockstep(case, PAPER, limit // 2 if quick else limit)
        pulls, same = whole_run(case, EASIER)
        answer = "yes" if agree and same else "**no**"
        rows.append((case.name, f"{first:,}" if first else "-", f"{pulls:,}", answer))
        measured = "the same" if agree and same else "others"
        report.targets.append(
            Target(f"{case.name}: pulls of plain NumPy", "the same", measured, agree and same)
        )
    columns = ("strategy", "first pulls, omega = 0.01", "whole run, omega = 0.3", "the same")
    note = (
        "The same rewards go to both. First pulls: arm by arm, for XY-Adaptive phase by phase. "
        "Whole run: the pulls of each arm, the number at which it stops, and the winner. Both "
        "sides use the same optimal designs, and for the fully adaptive strategy the same "
        "coordinates."
    )
    report.add(Table("The same pulls from the same rewards", columns, rows, note))


# ---- whole runs --------------------------------------------------------------------------

RUNS = ("strategy", "pulls", "first run, CPU", "later runs, CPU", "wall", "runs")
AGAINST = (
    "strategy",
    "finalist, pulls/s",
    "NumPy, pulls/s",
    "NumPy, measured over",
    "ratio",
    "NumPy, a whole run (extrapolated)",
)


@dataclass(frozen=True)
class Speed:
    """Timings of one case; results of finalist's runs are outcomes, of the others pulls."""

    first: Timing
    ours: list[Timing]
    numpy: list[Timing]

    @property
    def pulls(self) -> float:
        """Median number of pulls of a run."""
        return statistics.median(int(run.result.pulls.sum()) for run in self.ours)

    @property
    def rate(self) -> float:
        """Pulls per CPU second of finalist."""
        return statistics.median(int(run.result.pulls.sum()) / run.cpu for run in self.ours)

    @property
    def numpy_rate(self) -> float:
        """Pulls per CPU second of the plain version."""
        return statistics.median(len(turn.result) / turn.cpu for turn in self.numpy)


def forget() -> None:
    """Clear everything that runs share."""
    designs = (phase_design, survivors_design, static_design, oracle_design)
    for kept in (*designs, phase_allocation, oracle_allocation):
        kept.cache_clear()


def measure(case: Case, quick: bool) -> Speed:
    """Alternate whole runs of finalist, each with another seed, with pulls of the plain version."""
    turns, runs, pulls = (1, 1, 2000) if quick else (5, 8 if case.batches else 2, 20_000)
    task(case.strategy(EASIER), EASIER).run(0)  # kernels
    forget()
    job, index = task(case.strategy(PAPER), PAPER), count()
    first = harness.timed(lambda: job.run(next(index)))
    ours, numpy = [], []
    for turn in range(turns):
        if turn > 0:
            job.run(next(index))  # the other side leaves cold caches
        ours += [harness.timed(lambda: job.run(next(index))) for _ in range(runs)]
        twin, reward = case.plain(PAPER), one_by_one(PAPER, turn)
        numpy.append(harness.timed(partial(plain.play, twin, reward, pulls)))
    return Speed(first, ours, numpy)


def bench_runs(report: Report, quick: bool) -> None:
    """Time whole runs, and the pulls of the plain version."""
    runs, against = [], []
    for case in CASES:
        console.print(f"Whole runs: {case.name}...")
        speed = measure(case, quick)
        ours = harness.median(speed.ours)
        times = seconds(speed.first.cpu), seconds(ours.cpu), seconds(ours.wall)
        runs.append((case.name, f"{speed.pulls:,.0f}", *times, f"{ours.runs}"))
        rates = f"{speed.rate:,.0f}", f"{speed.numpy_rate:,.0f}"
        turns = f"{len(speed.numpy)} x {len(speed.numpy[0].result):,}"
        long = f"{speed.pulls / speed.numpy_rate / 60:.1f} min"
        ratio = f"{speed.rate / speed.numpy_rate:,.0f}"
        against.append((case.name, *rates, turns, ratio, long))
        promise(report, case, ours.cpu, speed.rate)
    note = (
        "Runs with different seeds, to their end. The first run solves the designs, which later "
        "runs share; compiled code was loaded before."
    )
    report.add(Table("Whole runs on the paper's instance", RUNS, runs, note))
    note = (
        "Per CPU second, rewards drawn. NumPy makes one pull at a time and looks after every "
        "pull, as the paper tells it; it is given the optimal designs. Its whole run is "
        "**extrapolated** from the pulls measured. XY-Adaptive and the deterministic oracle look "
        "at their rewards only after a phase or at the end, so finalist draws the sums of these; "
        "elsewhere it draws every reward and decides after every pull, too."
    )
    report.add(Table("Against plain NumPy", AGAINST, against, note))


def promise(report: Report, case: Case, cpu: float, rate: float) -> None:
    """Add the targets of whole runs."""
    if case.name in ("xy, soare", "g, soare"):
        report.below(f"{case.name}: CPU time of a run", cpu, 1.0, "s")
    if case.name.startswith("fully-adaptive"):
        text = "at least 1,000,000 pulls/s", f"{rate:,.0f} pulls/s"
        report.targets.append(Target(f"{case.name}: speed", *text, rate >= 1e6))


# ---- phases ------------------------------------------------------------------------------


def bench_phases(report: Report, quick: bool) -> None:
    """Time XY-Adaptive with and without allocations that earlier runs have left."""
    console.print("XY-Adaptive and its kept allocations...")
    sweeps, runs = (1, 20) if quick else (5, 40)
    job = task(XYAdaptive(ALPHA), PAPER)
    together = partial(simulate, *PAPER, XYAdaptive(ALPHA), sigma=SIGMA, delta=DELTA, seed=SEED)
    job.run(0)
    whole, first, later, alone = [], [], [], []
    for _ in range(sweeps):
        forget()
        whole.append(harness.timed(partial(together, runs=runs, progress=False)))
        forget()
        each = [harness.timed(partial(job.run, index)) for index in range(runs)]
        first.append(each[0])
        later += each[1:]
    for index in range(runs // 5 if quick else runs):
        forget()
        alone.append(harness.timed(partial(job.run, index)))
    share = harness.median(whole).cpu / runs
    rows = [
        (f"`simulate` with {runs} runs, a run", seconds(share), "", f"{sweeps} x {runs}"),
        ("the first run of them", *_spread(first)),
        ("the later runs", *_spread(later)),
        ("every run with nothing kept", *_spread(alone)),
        ("public research code (recorded, not measured here)", "86 s", "", "1"),
    ]
    columns = ("XY-Adaptive, sharp, alpha = 0.4", "CPU, median", "CPU, mean", "runs")
    pulls = statistics.median(int(run.result.pulls.sum()) for run in alone)
    note = (
        f"Runs with different seeds, {pulls:,.0f} pulls at the median, design solves included. "
        "Allocations of phases are kept, because many runs begin with the same phases; "
        "`simulate` starts with nothing kept here. The recorded run made 1.8 million pulls."
    )
    report.add(Table("XY-Adaptive", columns, rows, note))
    report.below("xy-adaptive: CPU time of a run in `simulate`", 1e3 * share, 20.0, "ms")


def _spread(runs: list[Timing]) -> tuple[str, str, str]:
    mean = statistics.mean(run.cpu for run in runs)
    return seconds(harness.median(runs).cpu), seconds(mean), f"{len(runs)}"


# ---- memory ------------------------------------------------------------------------------

UNDECIDED: dict[str, Callable[[Instance], Strategy]] = {
    "xy": lambda _: XYAllocation(),
    "fully-adaptive": lambda instance: FullyAdaptive.knowing(*instance),
}


def memory_child(name: str, pulls: int) -> dict[str, float]:
    """Make so many pulls in this fresh process and return what it took."""
    instance = tied()
    strategy = UNDECIDED[name](instance)
    task(strategy, instance, max_pulls=1000).run(0)
    baseline = harness.restart_peak()
    run = harness.timed(partial(task(strategy, instance, pulls).run, 0))
    if int(run.result.pulls.sum()) != pulls:
        raise RuntimeError(f"{name} stopped after {run.result.pulls.sum()} of {pulls} pulls")
    return {"peak": harness.peak_megabytes(), "baseline": baseline, "cpu": run.cpu}


def bench_memory(report: Report, quick: bool) -> None:
    """Peak memory of short and long runs, each in a process of its own."""
    rows = []
    for name in ("xy",) if quick else UNDECIDED:
        peaks = []
        for pulls in (3 * 10**5, 10**6) if quick else (10**6, 3 * 10**7):
            console.print(f"Memory of {name} with {pulls:,} pulls...")
            used = harness.in_child("benchmarks.strategies", "--child", "memory", name, str(pulls))
            peaks.append(used["peak"])
            memory = f"{used['peak']:.1f} MB", f"{used['peak'] - used['baseline']:.1f} MB"
            rows.append((name, f"{pulls:,}", *memory, seconds(used["cpu"])))
        grown = peaks[1] - peaks[0]
        report.below(f"{name}: memory of more pulls", max(grown, 0.0), 5.0, "MB")
    columns = ("strategy", "pulls", "peak memory", "above a run of 1000 pulls", "CPU")
    note = (
        "Peak resident memory of a fresh process, interpreter and libraries included. Two arms "
        "are equally good, so that a run goes on until `max_pulls` stops it."
    )
    report.add(Table("Memory", columns, rows, note))


# ---- the first simulation of a process ---------------------------------------------------

FRESH = ("xy-adaptive", "xy", "g", "xy-oracle", "fully-adaptive")


def start_child(name: str) -> dict[str, float]:
    """Simulate twice in this fresh process and return how long it took."""
    call = partial(simulate, *EASIER, name, sigma=SIGMA, delta=DELTA, runs=1, progress=False)
    first, second = harness.timed(call), harness.timed(call)
    return {"cpu": first.cpu, "wall": first.wall, "again": second.cpu}


def bench_start(report: Report, quick: bool) -> None:
    """Time the first `simulate` of a process, compiled code already on disk."""
    rows, repeats = [], 1 if quick else 3
    for name in FRESH[:1] if quick else FRESH:
        console.print(f"First simulation with {name}...")
        child = partial(harness.in_child, "benchmarks.strategies", "--child", "start", name, "0")
        child()  # compiles what is not on disk
        runs = [child() for _ in range(repeats)]
        middle = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        times = seconds(middle["cpu"]), seconds(middle["wall"]), seconds(middle["again"])
        rows.append((name, *times, f"{repeats}"))
    columns = ("strategy", "first run, CPU", "wall", "second run, CPU", "processes")
    note = (
        "One run at omega = 0.3 in a fresh process, after `import finalist`; the compiled code is "
        "on disk and is loaded by the first run. Default settings."
    )
    report.add(Table("The first simulation of a process", columns, rows, note))


# ---- the program -------------------------------------------------------------------------

BENCHES: dict[str, Callable[[Report, bool], None]] = {
    "same": bench_same,
    "runs": bench_runs,
    "phases": bench_phases,
    "memory": bench_memory,
    "start": bench_start,
}


def main() -> int:
    """Measure what was asked for and write the report."""
    parser = argparse.ArgumentParser(prog="benchmarks.strategies", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few runs, for a first look")
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"some of {','.join(SECTIONS)}")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    harness.single_thread()
    if options.child:
        what, name, pulls = options.child
        print(json.dumps(memory_child(name, int(pulls)) if what == "memory" else start_child(name)))
        return 0
    asked = harness.asked_for(parser, options.only, SECTIONS)
    report = Report("Strategies: measurements")
    wanted = [name for name in SECTIONS if name in asked]
    harness.go_through(report, {n: partial(BENCHES[n], report, options.quick) for n in wanted})
    whole = asked == list(SECTIONS) and not options.quick
    return report.finish(RESULTS / ("strategies.md" if whole else "strategies-partial.md"))


if __name__ == "__main__":
    sys.exit(main())
