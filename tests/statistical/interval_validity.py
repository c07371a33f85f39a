"""Are intervals right at all times at once, with probability at least 1 - q?

    python -m tests.statistical.interval_validity [--runs 10000] [--jobs -1] [--only tie]

After every batch of an adaptive run three claims are looked at: the means of all arms, the leads of
a best arm (the first, fixed in advance) over all others, and the differences of all pairs by the
ellipsoid alone. A run misses a claim if any of its intervals does at any time. Pulls are chosen by
the gauntlet, or by an opponent who knows the truth and lets large errors stand. Prints a table and
writes it to benchmarks/results/interval-validity.md; fails when the exact 99.9 % lower bound of a
probability exceeds q. Results are kept in a store, block by block. The last lines are wrong on
purpose: without the price of a mixture, and with all of q for every bet. They have to be caught.
"""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

import finalist as fl
from finalist.inference.intervals import mixture, pooled_widths, start_of
from finalist.inference.least_squares import Estimate
from finalist.inference.mixtures import SHARE, Batches, Mixture
from finalist.inference.pooling import BatchSums, Pooled, batch_arms
from finalist.inference.statistics import Statistics
from finalist.lab.store import Store
from finalist.problem import Problem, as_problem
from finalist.problem.rules import NEWEST
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.rewards import DrawnRewards, Kind
from finalist.strategies import Gauntlet
from tests import instances
from tests.statistical.gauntlet_validity import BENT, TIE, report

CONFIDENCE = 0.999
RESULTS = Path("benchmarks/results/interval-validity.md")
BLOCK = 250
CLAIMS = ("means of all arms", "leads of the best arm", "all pairs, ellipsoid")
Twin = Literal["", "no price", "no shares"]


@dataclass(frozen=True)
class Case:
    """Arms with a parameter, what is known of the noise, who chooses, and for how long.

    `part` of the runs are made. `words` are further settings of the problem. Where `chased`, an
    opponent chooses what is pulled and not the gauntlet.
    """

    name: str
    features: np.ndarray
    theta: tuple[float, ...]
    q: float = 0.2
    batches: int = 40
    size: int | None = None
    rewards: Kind = "gaussian"
    chased: bool = False
    part: float = 1.0
    words: dict[str, Any] = field(default_factory=lambda: {"sigma": 1.0})

    def problem(self) -> Problem:
        """What the strategy is told."""
        return as_problem(fl.Arms(self.features), delta=0.05, **self.words)


SPHERE = instances.unit_sphere(12, 4, 0)
UNEQUAL = tuple(np.linspace(0.5, 2.0, 6).tolist())
CASES = (
    Case("four-way tie", np.eye(4), (0.0,) * 4),
    Case("sphere, theta = 0", SPHERE, (0.0,) * 4, part=0.2),
    Case("paper's arms, tied", BENT.features, TIE, part=0.2),
    Case("twelve arms, close", np.eye(12), (0.3, *[0.0] * 11), part=0.2),
    Case("easy, to the end", np.eye(3), (1.0, 0.2, 0.0), q=0.05, batches=10_000),
    Case("plates of 3, fewer than the rank", np.eye(4), (0.0,) * 4, size=3, batches=60, part=0.2),
    Case(
        "+-1, tied",
        np.eye(3),
        (0.0,) * 3,
        rewards="bounded",
        words={"sigma": 1.0, "noise": "sub-gaussian"},
    ),
    Case(
        "shifted batches",
        SPHERE,
        (0.3, 0.0, 0.0, 0.0),
        part=0.2,
        words={"sigma": 1.0, "batch_intercept": True},
    ),
    Case("noise of each arm", np.eye(6), (0.2, *[0.0] * 5), part=0.2, words={"sigma": UNEQUAL}),
    Case("six arms, an opponent", np.eye(6), (0.0,) * 6, chased=True),
    Case("sphere, an opponent", SPHERE, (0.2, 0.0, 0.0, 0.0), chased=True),
    Case("twenty arms, an opponent", np.eye(20), (0.0,) * 20, chased=True, part=0.2),
    Case("two arms, an opponent", np.eye(2), (0.0, 0.0), q=0.05, batches=100, chased=True),
)
TWENTY = next(case for case in CASES if case.name == "twenty arms, an opponent")
BROKEN: tuple[tuple[Case, Twin], ...] = (
    (replace(TWENTY, part=0.1), "no price"),
    (replace(TWENTY, part=0.1), "no shares"),
)


class Summed(Batches):
    """Bets on the same directions after every batch, without adding all batches up again."""

    V: np.ndarray
    S: np.ndarray

    def add(self, rewards: Statistics, directions: np.ndarray) -> None:
        """Add a complete batch."""
        batch = Pooled(self.problem)
        batch.add(rewards)
        zero = replace(batch.estimate(), phi=np.zeros(directions.shape[1]))
        found = Batches(self.problem, [BatchSums.of(rewards)]).about(zero, directions)
        assert found is not None
        V, mean = found
        before = vars(self).get("V", 0.0), vars(self).get("S", 0.0)
        vars(self).update(V=before[0] + V, S=before[1] + V * mean)

    def about(self, fit: Estimate, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `Batches.about`, from the sums."""
        away = np.divide(self.S, self.V, out=directions @ fit.phi, where=self.V > 0.0)
        return self.V.copy(), away - directions @ fit.phi


def broken(found: Mixture, count: int, twin: Twin) -> Mixture:
    """Return it without what makes it valid."""
    shares = np.array([[-math.log(SHARE)], [math.log(count / (1.0 - SHARE))]])
    if twin == "no price":
        return replace(found, cost=np.broadcast_to(shares, found.cost.shape))
    return replace(found, cost=found.cost - shares) if twin == "no shares" else found


class Watcher:
    """Looks after every batch at what the intervals say."""

    def __init__(self, case: Case, problem: Problem, twin: Twin) -> None:
        self.q, self.twin, self.problem, self.start = case.q, twin, problem, start_of(problem)
        self.pooled = Pooled(problem)
        Z, K = batch_arms(problem).coordinates, len(problem.arms)
        truth = problem.arms.means(np.array(case.theta))
        best = int(np.flatnonzero(truth > truth.max() - 1e-12)[0])
        first, second = np.triu_indices(K, 1)
        others = np.arange(K) != best
        means = (Z, truth)
        leads = (Z[best] - Z[others], truth[best] - truth[others])
        self.pairs = (Z[first] - Z[second], truth[first] - truth[second])
        self.numbers = (means, leads)
        self.bets = [Summed(problem, ()) for _ in self.numbers]
        self.missed = np.zeros(3, dtype=bool)

    def add(self, rewards: Statistics) -> None:
        """Take a batch, and look."""
        self.pooled.add(rewards)
        fit, sigma = self.pooled.estimate(), self.problem.scale
        for i, ((Y, truth), bets) in enumerate(zip(self.numbers, self.bets, strict=True)):
            bets.add(rewards, Y)
            found = mixture(fit, Y, self.start, sigma, bets, len(Y))
            if found is not None and not self.missed[i]:
                below, above = broken(found, len(Y), self.twin).reach(self.q)
                error = truth - fit.gaps(Y)
                self.missed[i] = bool(np.any((error < -below) | (error > above)))
        Y, truth = self.pairs
        widths = pooled_widths(fit, Y, self.start, 1.0 - self.q, sigma)
        self.missed[2] |= bool(np.any(np.abs(fit.gaps(Y) - truth) > widths))


def chased(watcher: Watcher, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the counts of a batch that leaves the largest error as it is."""
    K, fit = len(truth), watcher.pooled.estimate()
    counts = np.ones(K, dtype=np.int64) if rng.random() < 0.7 else np.zeros(K, dtype=np.int64)
    errors = np.nan_to_num(np.abs(fit.means() - truth)) if fit.statistics.pulls else np.zeros(K)
    small = np.argsort(errors, kind="stable")[: max(K // 2, 1)]
    np.add.at(counts, rng.choice(small, int(rng.integers(1, 2 * K))), 1)
    return counts


def misses(case: Case, twin: Twin, index: int) -> list[bool]:
    """Run once; return which of the claims are ever missed."""
    problem = case.problem()
    truth = problem.arms.means(np.array(case.theta))
    rng = np.random.default_rng(np.random.SeedSequence(20261118, spawn_key=(index,)))
    sigma: Any = case.words["sigma"]
    sigma = sigma if isinstance(sigma, float) else np.array(sigma)
    shift = 2.0 if problem.batch_intercept else 0.0
    lab = DrawnRewards(truth, sigma, case.rewards, rng, shift)
    watcher, run = Watcher(case, problem, twin), Gauntlet().start(problem, seed=index)
    for _ in range(case.batches):
        if case.chased:
            watcher.add(lab.batch(chased(watcher, truth, rng)))
        elif run.verdict.decided:
            break
        else:
            batch = run.next(case.size)
            rewards = lab.batch(batch.counts)
            run.record(batch, rewards)
            watcher.add(rewards)
    return watcher.missed.tolist()


def tally(store: Store | None, case: Case, twin: Twin, runs: int, jobs: int = 1) -> np.ndarray:
    """Count the runs that miss each claim; blocks in the store are read, others made and kept."""
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    def settings(first: int) -> dict[str, Any]:
        words = vars(replace(case, features=case.features.tolist()))
        what = {"twin": twin, "first": first, "block": BLOCK, "rules": NEWEST.number}
        return {"kind": "intervals", "finalist": fl.__version__, **words, **what}

    def block(first: int) -> tuple[int, np.ndarray]:
        some = range(first, min(first + BLOCK, runs))
        return first, np.array([misses(case, twin, index) for index in some])

    total, missing = np.zeros(len(CLAIMS), dtype=np.int64), []
    for first in range(0, runs, BLOCK):
        kept = None if store is None else store.get(settings(first))
        if kept is None:
            missing.append(first)
        else:
            total += kept["missed"].sum(axis=0)
    calls = (delayed(block)(first) for first in missing)
    for first, found in Parallel(n_jobs=jobs, return_as="generator_unordered")(calls):
        total += found.sum(axis=0)
        if store is not None and len(found) == BLOCK:
            store.put(settings(first), {"missed": found})
    return total


def rows(store: Store, runs: int, jobs: int, only: str | None) -> Iterator[tuple[str, bool]]:
    """Yield lines of the table, and whether each is as it should be."""
    work: list[tuple[Case, Twin]] = [(case, "") for case in CASES]
    for case, twin in [*work, *BROKEN]:
        if only is not None and only not in case.name:
            continue
        total = int(case.part * runs)
        counts = tally(store, case, twin, total, jobs)
        for claim, count in zip(CLAIMS, counts.tolist(), strict=True):
            none = claim == CLAIMS[0] and bool(case.words.get("batch_intercept"))
            if none or (twin and claim == CLAIMS[2]):
                continue  # shifted means have no interval; the ellipsoid alone is not broken
            lower = exact_lower_bound(count, total, CONFIDENCE)
            kept, name = lower <= case.q, f"{claim}, {twin}" if twin else claim
            verdict = ("**no**" if kept else "no: caught") if twin else "yes" if kept else "**no**"
            watched = "to the end" if case.batches > 1000 else f"{case.batches} batches"
            yield (
                f"| {case.name} | {name} | {case.q} | {watched} | {total:,} | {count:,} "
                f"| {count / total:.4f} | {lower:.4f} | {verdict} |",
                kept == (twin == ""),
            )


def main() -> int:
    """Measure everything and say whether the promise is kept."""
    header = (
        "| instance | intervals | q | watched | runs | ever missed | rate | at least (99.9 %) "
        "| q kept |"
    )
    return report(__doc__, 10_000, rows, header, "Validity of intervals", RESULTS)


if __name__ == "__main__":
    sys.exit(main())
