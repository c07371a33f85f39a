"""What the choice of arms is worth: the gauntlet's own test with equal shares of the pulls.

    python -m benchmarks.equal_shares [--runs 30] [--jobs 1] [--store FILE]

The strategy `uniform` pulls every arm in turn and stops by a rule of its own, so its row in the
field says more of stopping rules than of shares. Here the test, its rivals, bets, pilot and sizes
of batches are the gauntlet's, and only the counts of the tested batches differ: every arm in turn,
or every arm in turn that is not ruled out. The instances, runs and seed are those of
`make bench-field RUNS=30`. Writes benchmarks/results/equal-shares.md.
"""

import argparse
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

import finalist as fl
from benchmarks.harness import Table, about_this_run, console
from finalist.charts.ratios import ratio_text
from finalist.inference.information import Information
from finalist.lab.benchmark.plan import suite
from finalist.lab.store import Store
from finalist.problem import Problem
from finalist.problem.rules import rules_of
from finalist.simulation.instances import Instance
from finalist.strategies.gauntlet.best import BestArm
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.planner import Planner, estimable
from finalist.strategies.gauntlet.run import ChangeableRun
from finalist.strategies.gauntlet.targets import Comparisons

RESULTS = Path(__file__).parent / "results" / "equal-shares.md"
DELTAS = (0.05, 0.001)
#: A run is cut after this many times the lower bound, as in the field.
MOST = 200
#: Parameters of a plan.
DRAWS = 200


@dataclass(frozen=True)
class InTurn(Planner):
    """Equal shares: only the counts of batches are others."""

    arms: Callable[[], np.ndarray]

    def plan(self, past: Past, wanted: Comparisons, size: int) -> tuple[np.ndarray, Information]:
        """Return counts that go on in turn where the pulls so far have stopped."""
        arms, targets = self.arms(), self.targets(past, wanted)
        place = past.pooled.pulls + np.arange(size)
        counts = np.bincount(arms[place % len(arms)], minlength=len(past.Z))
        return estimable(past.Z, counts, targets.needed, targets.room, targets.precisions)


def in_turn(everyone: bool, problem: Problem, seed: int) -> ChangeableRun:
    """Return the gauntlet with equal shares of every arm, or of every survivor."""
    run = ChangeableRun(problem.with_(rules=rules_of(2)), 0.1, seed)  # batches: no order, no split
    claims, all_ = cast(BestArm, run._claims), np.arange(len(problem.arms))
    run._course.planner = InTurn(0.1, seed, lambda: all_ if everyone else claims.survivors)
    return run


@dataclass(frozen=True)
class EveryArm:
    """The gauntlet's test, every arm in turn."""

    name: ClassVar[str] = "every arm in turn"

    def start(self, problem: Problem, seed: int = 0) -> ChangeableRun:
        """Begin with a problem."""
        return in_turn(True, problem, seed)


@dataclass(frozen=True)
class EverySurvivor:
    """The gauntlet's test, every arm in turn that is not ruled out."""

    name: ClassVar[str] = "every survivor in turn"

    def start(self, problem: Problem, seed: int = 0) -> ChangeableRun:
        """Begin with a problem."""
        return in_turn(False, problem, seed)


STRATEGIES = ("gauntlet", EverySurvivor(), EveryArm())
COLUMNS = ("instance", "lower bound", "gauntlet", "every survivor", "every arm", "wrong")


def measure(store: Store, instance: Instance, delta: float, runs: int, jobs: int) -> list[Any]:
    """Simulate an instance with each way to share pulls; the bound first."""
    model: dict[str, Any] = {
        "sigma": instance.sigma,
        "delta": delta,
        "objective": instance.objective,
    }
    bound = fl.complexity(instance.arms, instance.theta, **model).lower_bound
    cap = math.ceil(MOST * bound)
    words = {"rewards": "gaussian", "runs": runs, "n_jobs": jobs, "max_pulls": cap, **model}
    found = [store.simulate(instance.arms, instance.theta, s, **words) for s in STRATEGIES]
    return [bound, *found]


def table(store: Store, delta: float, runs: int, jobs: int) -> Table:
    """Return mean pulls over the lower bound, and their geometric means over the instances."""
    rows, ratios, cut = [], [], []
    for instance in suite("standard"):
        console.print(f"{instance.name}, delta = {delta:g}...")
        bound, *found = measure(store, instance, delta, runs, jobs)
        pulls = [np.where(one.decided, one.samples, math.ceil(MOST * bound)) for one in found]
        ratios.append([float(some.mean()) / bound for some in pulls])
        cut.append([not one.decided.all() for one in found])
        wrong = ", ".join(str(one.errors) for one in found)
        rows.append((instance.name, f"{bound:,.0f}", *_shown(ratios[-1], cut[-1]), wrong))
    means = np.exp(np.log(ratios).mean(axis=0))
    more = np.array(ratios)[:, 2] / np.array(ratios)[:, 0]
    rows.append(("geometric mean", "", *_shown(means, np.any(cut, axis=0)), ""))
    note = (
        f"Mean pulls over the lower bound, {runs} runs in each cell, cut at {MOST} times the "
        "bound; wrong winners in the order of the columns. Every arm in turn needs "
        f"{means[2] / means[0]:.2f} times as many as the gauntlet ({more.min():.2f} to "
        f"{more.max():.2f})."
    )
    return Table(f"Equal shares, the gauntlet's test, delta = {delta:g}", COLUMNS, rows, note)


def planned(jobs: int) -> Table:
    """Return what `plan` expects of each on the example of the README."""
    arms = fl.Arms(np.random.default_rng(0).standard_normal((40, 3))).with_intercept()
    rows: dict[str, list[str]] = {}
    for gap in (0.5, 0.2):
        against = (EverySurvivor(), EveryArm(), "uniform")
        plan = fl.plan(arms, sigma=0.5, gap=gap, against=against, draws=DRAWS, n_jobs=jobs)
        for row in plan.rows:
            text = f"{row.mean:,.0f} ({row.mean / plan.rows[0].mean:.2f})"
            rows.setdefault(row.name, []).append(text)
    note = (
        "Mean pulls, and in brackets those over the gauntlet's: 40 arms with 3 normal features and "
        f"an intercept, sigma = 0.5, delta = 0.05, {DRAWS} parameters of random direction under "
        "which the best arm leads by the gap."
    )
    lines = [(name, *texts) for name, texts in rows.items()]
    return Table("The README's example", ("strategy", "gap = 0.5", "gap = 0.2"), lines, note)


def _shown(ratios: Iterable[float], cut: Iterable[bool]) -> tuple[str, ...]:
    """Return numbers; those of which runs were cut are larger than measured."""
    return tuple(map(ratio_text, ratios, cut))


def main() -> None:
    """Measure at both deltas and write the tables."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--store", type=Path, default=Path("equal_shares.sqlite"))
    words = parser.parse_args()
    with Store(words.store) as store:
        tables = [table(store, delta, words.runs, words.jobs) for delta in DELTAS]
    tables.append(planned(words.jobs))
    for one in tables:
        one.show()
    parts = ["# Equal shares with the gauntlet's test", "", about_this_run()]
    RESULTS.write_text("\n".join([*parts, *(one.markdown() for one in tables)]).rstrip() + "\n")


if __name__ == "__main__":
    main()
