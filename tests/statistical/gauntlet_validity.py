"""Is a best arm rejected by the gauntlet with probability at most delta?

    python -m tests.statistical.gauntlet_validity [--runs 10000] [--jobs -1] [--only tie]

A given best arm may be rejected with probability delta, at any time, also where arms are tied
for ever; so tied runs are watched for a stated number of batches, others to their end. Prints a
table and writes it to benchmarks/results/gauntlet-validity.md; fails when the exact 99.9 % lower
bound of a rejection probability exceeds delta. Results are kept in a store, block by block. The
last line is a strategy that chooses its rivals from the batch they are tested with: it has to be
caught.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import finalist as fl
from finalist.inference.least_squares import estimate
from finalist.inference.statistics import Statistics
from finalist.lab.store import Store
from finalist.problem import Problem, as_problem
from finalist.problem.rules import NEWEST
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.rewards import DrawnRewards, Kind
from finalist.strategies import Batch, Gauntlet
from finalist.strategies.gauntlet import GauntletRun
from finalist.strategies.gauntlet.run import ChangeableRun
from tests import instances

CONFIDENCE = 0.999
RESULTS = Path("benchmarks/results/gauntlet-validity.md")
BLOCK = 250


@dataclass(frozen=True)
class Case:
    """Arms with a parameter, what is known of the noise, and how long a run is watched.

    `part` of the runs are made: all 10,000 where a run is cheap.
    `history` has the means of 1,000 earlier rewards of each arm, `pilot` what is added to the
    rewards of the pilot: both may be wrong.
    """

    name: str
    features: np.ndarray
    theta: tuple[float, ...]
    delta: float = 0.05
    noise: str | None = None
    sigma: float | None = 1.0
    rewards: Kind = "gaussian"
    batches: int = 100
    size: int | None = None
    part: float = 1.0
    history: tuple[float, ...] | None = None
    pilot: tuple[float, ...] | None = None

    def problem(self) -> Problem:
        """What the strategy is told."""
        arms = fl.Arms(self.features)
        if self.noise == "bernoulli":
            return as_problem(arms, noise=self.noise, delta=self.delta)
        return as_problem(arms, sigma=self.sigma, noise=self.noise, delta=self.delta)

    @property
    def best(self) -> int:
        """The best arm that is watched: the first of them."""
        means = self.features @ np.array(self.theta)
        return int(np.flatnonzero(means > means.max() - 1e-12)[0])


def planes(count: int, each: int) -> np.ndarray:
    """Arms in planes at right angles: a pilot that follows the order of arms misses some."""
    angles = 2 * np.pi * np.arange(each) / each
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.kron(np.eye(count), circle)


BENT = instances.paper(5, 0.5)
TIE = (math.cos(0.25), math.sin(0.25), 0.0, 0.0, 0.0)
CASES = (
    Case("paper's arms, tied", BENT.features, TIE, part=0.2),
    Case("paper's arms, tied", BENT.features, TIE, delta=0.2, part=0.2),
    Case("four-way tie", np.eye(4), (0.0,) * 4, part=0.2),
    Case("four-way tie", np.eye(4), (0.0,) * 4, delta=0.2, part=0.2),
    Case("sphere, theta = 0", instances.unit_sphere(12, 4, 0), (0.0,) * 4, part=0.2),
    Case("sphere, theta = 0", instances.unit_sphere(12, 4, 0), (0.0,) * 4, delta=0.2, part=1.0),
    Case(
        "seven planes, the best in the last",
        planes(7, 12),
        (*[0.0] * 12, 1.0, 0.0),
        batches=30,
        part=0.2,
    ),
    Case("easy, to the end", np.eye(3), (1.0, 0.2, 0.0), batches=10_000),
    Case("easy, to the end", np.eye(3), (1.0, 0.2, 0.0), delta=0.2, batches=10_000),
    Case(
        "Bernoulli, tied",
        np.eye(3),
        (0.3, 0.3, 0.3),
        noise="bernoulli",
        rewards="bernoulli",
        delta=0.2,
        part=0.2,
    ),
    Case(
        "+-1, tied",
        np.eye(3),
        (0.0,) * 3,
        noise="sub-gaussian",
        rewards="bounded",
        delta=0.2,
        part=0.2,
    ),
    Case("unknown sigma, tied", np.eye(4), (0.0,) * 4, sigma=None, part=0.2),
    Case(
        "unknown sigma, plates of 8", np.eye(4), (0.0,) * 4, sigma=None, delta=0.2, size=8, part=0.2
    ),
    Case("plates of 3, fewer than the rank", np.eye(4), (0.0,) * 4, delta=0.2, size=3, part=0.2),
    Case(
        "wrong history, tied",
        np.eye(4),
        (0.0,) * 4,
        delta=0.2,
        part=0.2,
        history=(-2.0, 2.0, 1.0, 0.0),
    ),
    Case(
        "a little wrong history, tied",
        np.eye(4),
        (0.0,) * 4,
        delta=0.2,
        part=0.2,
        history=(-0.3, 0.3, 0.0, 0.0),
    ),
    Case(
        "wrong pilot, tied",
        np.eye(4),
        (0.0,) * 4,
        delta=0.2,
        part=0.2,
        pilot=(-60.0, 60.0, 0.0, 0.0),
    ),
    Case(
        "wrong pilot, unknown sigma, tied",
        np.eye(4),
        (0.0,) * 4,
        delta=0.2,
        sigma=None,
        part=0.2,
        pilot=(-60.0, 60.0, 0.0, 0.0),
    ),
)


@dataclass(frozen=True)
class Peeking:
    """The gauntlet with rivals chosen from the tested batch: it has to be caught."""

    name: ClassVar[str] = "gauntlet, peeking"

    def start(self, problem: Problem, seed: int = 0) -> GauntletRun:
        """Begin like the gauntlet, then cheat."""
        return PeekingRun(problem, Gauntlet().growth, seed)


class PeekingRun(ChangeableRun):
    """Replaces the rivals by the best arm of the batch itself."""

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Look first, choose then."""
        if batch.note["kind"] == "test":
            means = np.nan_to_num(estimate(self._problem.arms, rewards).means(), nan=-np.inf)
            rivals = [int(means.argmax()) if r >= 0 else -1 for r in batch.note["rivals"]]
            batch = Batch(batch.counts, {**batch.note, "rivals": rivals})
        super().record(batch, rewards)


def is_rejected(case: Case, strategy: Gauntlet | Peeking, index: int) -> bool:
    """Run once; return whether the watched best arm is rejected."""
    problem = case.problem()
    sequence = np.random.SeedSequence(20141208, spawn_key=(index,))
    means = problem.arms.means(np.array(case.theta))
    sigma = 0.5 if case.rewards == "bernoulli" else 1.0
    rewards = DrawnRewards(means, sigma, case.rewards, np.random.default_rng(sequence))
    run = strategy.start(problem, seed=index)
    if case.history is not None:
        counts = np.full(len(means), 1000)
        run.inform(Statistics.of_batch(counts, counts * np.array(case.history), 999.0 * counts**0))
    first = rewards if case.pilot is None else replace(rewards, means=means + np.array(case.pilot))
    for _ in range(case.batches):
        if run.verdict.decided or case.best not in run.verdict.survivors:
            break
        batch = run.next(case.size)
        source = first if batch.note["kind"] == "pilot" else rewards
        run.record(batch, source.batch(batch.counts))
    return case.best not in run.verdict.survivors


def block(case: Case, strategy: Gauntlet | Peeking, first: int, runs: int) -> list[bool]:
    """Run several times."""
    return [is_rejected(case, strategy, index) for index in range(first, first + runs)]


def rejections(
    store: Store | None, case: Case, strategy: Gauntlet | Peeking, runs: int, jobs: int = 1
) -> int:
    """Count the runs in which the best arm is rejected, reading what is in the store."""

    def settings(first: int) -> dict[str, Any]:
        words = replace(case, features=case.features.tolist())
        what: dict[str, Any] = {"strategy": repr(strategy), "first": first, "block": BLOCK}
        what["rules"] = NEWEST.number
        return {"kind": "rejections", "finalist": fl.__version__, **vars(words), **what}

    def rejected(first: int) -> list[bool]:
        return block(case, strategy, first, min(BLOCK, runs - first))

    return counted(store, settings, rejected, runs, BLOCK, jobs)


def counted(
    store: Store | None,
    settings: Callable[[int], dict[str, Any]],
    rejected: Callable[[int], list[bool]],
    runs: int,
    size: int,
    jobs: int,
) -> int:
    """Count rejections, block by block; those in the store are read, others made and kept."""
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    total, missing = 0, []
    for first in range(0, runs, size):
        kept = None if store is None else store.get(settings(first))
        if kept is None:
            missing.append(first)
        else:
            total += int(kept["rejected"].sum())
    calls = (delayed(lambda f: (f, rejected(f)))(first) for first in missing)
    for first, found in Parallel(n_jobs=jobs, return_as="generator_unordered")(calls):
        total += sum(found)
        if store is not None and len(found) == size:
            store.put(settings(first), {"rejected": np.array(found)})
    return total


def rows(store: Store, runs: int, jobs: int, only: str | None) -> Iterator[tuple[str, bool]]:
    """Yield lines of the table, and whether each is as it should be."""
    tie = next(case for case in CASES if case.name == "four-way tie")
    work: list[tuple[Case, Gauntlet | Peeking]] = [(case, Gauntlet()) for case in CASES]
    caught = replace(tie, part=0.1)
    for case, strategy in [*work, (caught, Peeking())]:
        if only is not None and only not in case.name:
            continue
        total = int(case.part * runs)
        count = rejections(store, case, strategy, total, jobs)
        lower = exact_lower_bound(count, total, CONFIDENCE)
        kept, honest = lower <= case.delta, isinstance(strategy, Gauntlet)
        verdict = ("yes" if kept else "**no**") if honest else ("**no**" if kept else "no: caught")
        watched = "to the end" if case.batches > 1000 else f"{case.batches} batches"
        yield (
            f"| {case.name} | {strategy.name} | {case.delta} | {watched} | {total:,} | {count:,} "
            f"| {count / total:.4f} | {lower:.4f} | {verdict} |",
            kept == honest,
        )


def report(
    about: str,
    runs: int,
    rows: Callable[[Store, int, int, str | None], Iterator[tuple[str, bool]]],
    header: str,
    title: str,
    results: Path,
) -> int:
    """Measure everything and say whether the promise is kept."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=about, formatter_class=layout)
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--store", type=Path, default=Path("validity.sqlite"))
    parser.add_argument("--only", help="part of the name of a case")
    words = parser.parse_args()
    lines, good = list[str](), True
    for line, fine in rows(Store(words.store), words.runs, words.jobs, words.only):
        print(line, flush=True)
        lines.append(line)
        good = good and fine
    made = f"`make validate`, finalist {fl.__version__}, rules {NEWEST.number}."
    table = [header, "|---" * (header.count("|") - 1) + "|"]
    if words.only is not None:
        lines = merged(results, made, lines)
    results.write_text("\n".join([f"# {title}", "", made, "", *table, *lines, ""]))
    return 0 if good else 1


def merged(results: Path, made: str, lines: list[str]) -> list[str]:
    """Return the rows of a table with those that were measured again, or for the first time.

    A table of another version or of other rules is not gone on with: its rows go.
    """
    text = results.read_text().splitlines() if results.exists() else []
    kept = [row for row in text if row.startswith("|")][2:] if made in text else []
    return list({tuple(row.split(" | ")[:3]): row for row in [*kept, *lines]}.values())


def main() -> int:
    """Measure everything and say whether the promise is kept."""
    header = (
        "| instance | strategy | delta | watched | runs | best arm rejected | rate | at least "
        "(99.9 %) | delta kept |"
    )
    return report(__doc__, 10_000, rows, header, "Validity of the gauntlet", RESULTS)


if __name__ == "__main__":
    sys.exit(main())
