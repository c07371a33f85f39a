"""Is a best arm rejected with probability at most delta where noise, cost, roles or batches differ?

    python -m tests.statistical.problem_validity [--runs 2000] [--jobs -1] [--only shift]

As `gauntlet_validity`, for what goes beyond one winner with known, equal noise. Arms are tied, and
a given best one (for the m best: a given best set, or all true claims about pairs) is watched for
some batches (of a portfolio for the m best, what the given set has in the accounts of each
claimant, and what is said of its arms). Prints a table and writes
benchmarks/results/beyond-validity.md; fails when the exact 99.9 % lower bound of a rejection
probability exceeds delta. Lines marked "ignored" are problems
whose shifts or bent means the strategy is not told of, and "never paid" is a portfolio whose
reserve does not pay for what claimants get: they have to be caught.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import finalist as fl
from finalist.lab.store import Store
from finalist.problem import Problem, as_problem
from finalist.problem.rules import NEWEST, rules_of
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.rewards import DrawnRewards
from finalist.simulation.task import drawn
from finalist.strategies import Gauntlet
from finalist.strategies.gauntlet import GauntletRun
from finalist.strategies.gauntlet.sets import AllPairs
from finalist.strategies.gauntlet.top import TopArms
from finalist.strategies.gauntlet.top_portfolio import TopPortfolio
from tests import instances
from tests.instances import FEIGNED, FEIGNED_MEANS, FEIGNED_SIGMA
from tests.statistical.gauntlet_validity import CONFIDENCE, counted, report

RESULTS = Path("benchmarks/results/beyond-validity.md")
BLOCK = 100
SPHERE = instances.unit_sphere(12, 4, 0)
LINE = np.column_stack([np.ones(8), np.linspace(-1.0, 1.0, 8)])
SIGMAS = [0.3, 1.0, 2.0, 3.0]


@dataclass(frozen=True)
class Case:
    """A problem with tied best arms, and how its rewards differ from the plain ones.

    `bent` is how far means are from the linear model, by turns above and below, unless `at` gives
    them. What is watched is the first best arm, a set of the m best, or all true claims about
    pairs; with a `level`, whether the p-value of the first arm falls to it.
    """

    name: str
    features: np.ndarray
    delta: float = 0.2
    words: Mapping[str, Any] = field(default_factory=dict)
    measurable: int | None = None
    shift: float = 0.0
    bent: float = 0.0
    batches: int = 40
    honest: bool = True
    sets: int = 5000
    at: tuple[float, ...] | None = None
    level: float | None = None
    part: float = 1.0
    rules: int = NEWEST.number

    def problem(self) -> Problem:
        """What the strategy is told."""
        some = None
        if self.measurable is not None:
            some = np.arange(len(self.features)) < self.measurable
        words = {"sigma": 1.0, "rules": rules_of(self.rules), **self.words}
        return as_problem(fl.Arms(self.features, measurable=some), delta=self.delta, **words)

    @property
    def bound(self) -> float:
        """With which probability what is watched may happen."""
        return self.delta if self.level is None else self.level

    @property
    def means(self) -> np.ndarray:
        """The expected rewards: all the same, but for what the model does not say."""
        if self.at is not None:
            return np.array(self.at)
        turns = np.where(np.arange(len(self.features)) % 3 == 1, 1.0, -1.0)
        return self.bent * turns


CASES = (
    Case("noise of each arm", np.eye(4), words={"sigma": SIGMAS}),
    Case("noise of each arm", np.eye(4), delta=0.05, words={"sigma": SIGMAS}),
    Case("noise of each arm, sphere", SPHERE, words={"sigma": np.linspace(0.2, 3.0, 12)}),
    Case("cost of each arm", SPHERE, words={"cost": np.linspace(0.2, 5.0, 12)}),
    Case("7 of 12 can be measured", SPHERE, measurable=7),
    Case("shifted batches", SPHERE, words={"batch_intercept": True}, shift=5.0),
    Case(
        "shifted batches, unknown noise",
        SPHERE,
        words={"batch_intercept": True, "sigma": None},
        shift=5.0,
    ),
    Case("shifted batches, ignored", SPHERE, shift=5.0, honest=False),
    Case("bent means", LINE, words={"misspecification": 0.2}, bent=0.2),
    Case(
        "bent means, unknown noise",
        LINE,
        words={"misspecification": 0.2, "sigma": None},
        bent=0.2,
    ),
    Case("bent means, ignored", LINE, bent=0.2, honest=False),
    Case(
        "bent means, noise of each arm",
        FEIGNED,
        words={"misspecification": 3.0, "sigma": FEIGNED_SIGMA},
        at=FEIGNED_MEANS,
    ),
    Case("2 best of 5, sets", np.eye(5), words={"top": 2}),
    Case("3 best of 12, pairs", SPHERE, words={"top": 3}, sets=0, rules=3),
    Case("3 best of 12, portfolio", SPHERE, words={"top": 3}, sets=0),
    Case("2 best of 3, portfolio", np.eye(3), words={"top": 2}, sets=0),
    Case("2 best of 3, portfolio", np.eye(3), words={"top": 2}, sets=0, delta=0.05),
    Case(
        "2 best of 3, portfolio, unknown noise",
        np.eye(3),
        words={"top": 2, "sigma": None},
        sets=0,
    ),
    Case("2 best of 3, portfolio, never paid", np.eye(3), 0.2, {"top": 2}, sets=0, honest=False),
    Case("p-value of one of the 2 best of 5, sets", np.eye(5), 0.01, {"top": 2}, level=0.2),
    *(
        Case(
            f"p-value of one of the 2 best of 24, pairs{words}",
            np.eye(24),
            0.01,
            {"top": 2},
            batches=80,
            sets=0,
            level=0.2,
            honest=not words,
            part=0.2,
            rules=3,
        )
        for words in ("", ", without their number")
    ),
    Case(
        "all of it",
        SPHERE,
        words={
            "sigma": np.linspace(0.2, 3.0, 12),
            "cost": np.linspace(0.2, 5.0, 12),
            "batch_intercept": True,
            "misspecification": 0.1,
        },
        measurable=7,
        shift=5.0,
        bent=0.1,
    ),
)


def watched(case: Case, run: GauntletRun) -> bool:
    """Return whether what is true has been rejected."""
    claims = run._course.claims
    if case.level is not None:
        found = run.evidence()
        without = np.exp(-found.share * claims.bets.limit[0])
        return bool((found.p_value if case.honest else without)[0] <= case.level)
    if isinstance(claims, TopPortfolio):
        return contradicted(claims, range(run._problem.top))
    if isinstance(claims, TopArms):
        rejected, m = claims.bets.rejected, run._problem.top
        if not isinstance(claims.tested, AllPairs):
            return bool(rejected[0])  # the first set: as good as any
        return bool((rejected & (claims.tested._x < m) & (claims.tested._a >= m)).any())
    best = int(case.means.argmax())
    return best not in run.verdict.survivors


def contradicted(claims: TopPortfolio, members: range) -> bool:
    """Return whether what is certain, or an account of a set in a portfolio, speaks against it."""
    possible, sure = claims._places()
    if not possible[members].all() or np.delete(sure, members).any():
        return True
    for number, one in claims.claimants.items():
        x = np.flatnonzero(np.isin(one.outside, members))[:1]
        a = np.flatnonzero(~np.isin(one.inside, members))[:1]
        done = claims.accounts[number].rejected.reshape(len(one.outside), -1)
        if done[np.ix_(x, a)].any():  # neither x nor a if it is the claimant itself
            return True
    return False


def is_rejected(case: Case, index: int) -> bool:
    """Run once."""
    from finalist.strategies.gauntlet import top as gauntlet_top

    problem = case.problem()
    rng = np.random.default_rng(np.random.SeedSequence(20141209, spawn_key=(index,)))
    sigma = problem.sigmas if problem.precisions is not None else 1.0
    rewards = DrawnRewards(case.means, sigma, "gaussian", rng, case.shift)
    before, gauntlet_top.MAX_SETS = gauntlet_top.MAX_SETS, case.sets
    try:
        run = Gauntlet().start(problem, seed=index)
    finally:
        gauntlet_top.MAX_SETS = before
    claims: Any = run._course.claims
    for _ in range(case.batches):
        if isinstance(claims, TopPortfolio) and not case.honest:
            claims._reserve = 1.0
        if run.verdict.decided or watched(case, run):
            break
        batch = run.next()
        run.record(batch, drawn(rewards, batch))
        claims = run._course.claims
    return watched(case, run)


def block(case: Case, first: int, runs: int) -> list[bool]:
    """Run several times."""
    return [is_rejected(case, index) for index in range(first, first + runs)]


def rejections(store: Store | None, case: Case, runs: int, jobs: int = 1) -> int:
    """Count the runs in which a truth is rejected, reading what is in the store."""

    def settings(first: int) -> dict[str, Any]:
        plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(case).items()}
        plain["words"] = {k: np.asarray(v).tolist() for k, v in case.words.items()}
        what = {"kind": "beyond", "finalist": fl.__version__}
        return {**what, **plain, "first": first, "n": BLOCK}

    def rejected(first: int) -> list[bool]:
        return block(case, first, min(BLOCK, runs - first))

    return counted(store, settings, rejected, runs, BLOCK, jobs)


def rows(store: Store, runs: int, jobs: int, only: str | None) -> Iterator[tuple[str, bool]]:
    """Yield lines of the table, and whether each is as it should be."""
    for case in CASES:
        if only is not None and only not in case.name:
            continue
        total = int(case.part * runs)
        count = rejections(store, case, total, jobs)
        lower = exact_lower_bound(count, total, CONFIDENCE)
        kept = lower <= case.bound
        said = ("yes" if kept else "**no**") if case.honest else "**yes**" if kept else "no: caught"
        yield (
            f"| {case.name} | {case.bound} | {case.batches} | {total:,} | {count:,} "
            f"| {count / total:.4f} | {lower:.4f} | {said} | {case.rules} |",
            kept == case.honest,
        )


def main() -> int:
    """Measure everything and say whether the promise is kept."""
    header = (
        "| problem | delta | batches | runs | truth rejected | rate | at least (99.9 %) "
        "| delta kept |"
    )
    title = "Validity beyond one winner with known, equal noise"
    return report(__doc__, 2_000, rows, header, title, RESULTS)


if __name__ == "__main__":
    sys.exit(main())
