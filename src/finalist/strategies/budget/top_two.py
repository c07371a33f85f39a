"""Top-two Thompson sampling for the linear model, for a fixed budget.

Russo 2016, "Simple Bayesian algorithms for best arm identification", top-two Thompson sampling:
draw a parameter from the posterior, its best arm is the leader; draw again until another arm is
best, the challenger. Here the posterior is that of a flat prior and known sigma, the normal
distribution around the least-squares estimate with covariance sigma^2 A^-1.

Russo pulls the leader or the challenger, each with probability 1/2. Where arms share a parameter,
others may tell more about the two than they do themselves (Soare 2014, Sect. 6), so the pull is the
one after which the variance of their difference is smallest, the greedy rule of LinGapE (Xu, Honda
and Sugiyama 2018, Sect. 5.2). For arms without features it is the one of the two that has fewer
pulls.

Three things are simpler than the paper. All pulls of a batch have the posterior before it, while
the variances, which need no rewards, follow every pull; `batches` as large as the budget is a
batch for each pull. When `TRIES` draws have the leader as their best arm, the challenger is the
arm with the smallest lead over its standard error, gap^2 / ||x - x'||^2_{A^-1}, as in T3C (Shang et
al. 2020, "Fixed-confidence guarantees for Bayesian best-arm identification"). And arms that
span are pulled once before there is a posterior. At the end the arm with the best estimate of all
rewards is named; ties are broken at random, with the seed of the run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from finalist.design.linalg import spanning_arms
from finalist.errors import ProblemError
from finalist.inference.least_squares import estimate
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.shapes import Float, Int
from finalist.strategies.abilities import Explaining
from finalist.strategies.budget.eliminations import check_budget, ranking
from finalist.strategies.protocol import (
    SUPPORTED,
    Batch,
    Declared,
    Promise,
    Run,
    Verdict,
    check_next,
    check_record,
)
from finalist.text import counted

#: Draws of a challenger before the nearest rival is taken.
TRIES = 20
#: Draws times arms that are made at once, if fewer are needed for a try.
AHEAD = 4096


@dataclass(frozen=True)
class LinearTopTwo(Declared):
    """The strategy with its settings. The problem must have a budget, and a known sigma.

    A winner is a recommendation, without a guarantee.

    Parameters
    ----------
    batches : int
        In about how many batches the budget is used, unless sizes are asked for.

    Examples
    --------
    >>> import finalist as fl
    >>> problem = fl.Problem(fl.Arms.unstructured(4), budget=40, noise=fl.Gaussian(1.0))
    >>> LinearTopTwo().start(problem).next().counts  # nothing is known yet
    array([1, 1, 1, 1])
    """

    name: ClassVar[str] = "top-two"
    promise: ClassVar[Promise] = "budget"
    supports = SUPPORTED
    batches: int = 100

    def __post_init__(self) -> None:
        if isinstance(self.batches, bool) or not isinstance(self.batches, int) or self.batches < 1:
            raise ProblemError(f"batches is {self.batches!r}; it must be an integer, 1 or more.")

    def start(self, problem: Problem, seed: int = 0) -> "TopTwoRun":
        """Begin with a problem; draws and ties depend on the seed."""
        problem.refuse_unsupported(self.name, self.supports)
        budget = check_budget(problem, self.name, max(problem.arms.rank, 1))
        return TopTwoRun(problem, budget, -(-budget // self.batches), seed)


class TopTwoRun(Run, Explaining):
    """The strategy at work.

    The note of a batch says how much of the budget was used before and after it, with pulls whose
    rewards were lost.
    """

    def __init__(self, problem: Problem, budget: int, own_size: int, seed: int) -> None:
        K = len(problem.arms)
        self._problem, self._budget, self._own_size = problem, budget, own_size
        self._seed, self._spent = seed, 0
        self._rewards = Statistics.empty(K)
        self._spanning = spanning_arms(problem.arms.coordinates)
        # Drawn now: a run is a function of what is recorded, whenever that is.
        self._order = tuple(map(int, np.random.default_rng(seed).permutation(K)))
        self._winner = 0 if K == 1 else None

    @property
    def verdict(self) -> Verdict:
        """The winner once the budget is used; no arm is ruled out before."""
        everyone = tuple(range(len(self._problem.arms)))
        left = everyone if self._winner is None else (self._winner,)
        return Verdict(self._winner, left, self._rewards.pulls)

    def next(self, size: int | None = None) -> Batch:
        """Return pulls that tell leaders from their challengers; first, arms that span."""
        check_next(self.verdict, size)
        left, K = self._budget - self._spent, len(self._problem.arms)
        known = self._rewards.count[self._spanning]
        if (known == 0).any():
            picks = self._spanning[known == 0][: left if size is None else min(size, left)]
        else:
            picks = self._chosen(min(size or self._own_size, left))
        note = {"first": self._spent, "last": self._spent + len(picks)}
        return Batch(np.bincount(picks, minlength=K), note)

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Take over rewards; with the last pull of the budget there is a winner."""
        check_record(self.verdict, len(self._problem.arms), batch, rewards)
        note = batch.note
        if not {"first", "last"} <= note.keys():
            raise ProblemError("this batch has no note; record batches as `next` returns them.")
        if note["first"] != self._spent:
            raise ProblemError(
                f"this batch was issued after {note['first']} measurements and "
                f"{self._spent} are made; "
                "record each batch once, in the order of issue."
            )
        self._rewards.merge(rewards)
        self._spent = note["last"]
        if self._spent >= self._budget:
            self._winner = ranking(self._problem, self._rewards, self._order)[0]

    def purpose(self, batch: Batch) -> str:
        """Say what a batch is for that is not recorded yet."""
        first, last = batch.note["first"], batch.note["last"]
        compare = counted(last - first, "measurement compares", "measurements compare")
        of_all = f"({last} of {self._budget} measurements)"
        return f"{compare} the candidates that may be the best {of_all}."

    def _chosen(self, n: int) -> Int[np.ndarray, " n"]:
        """Return n pulls, each the one that tells most about a leader and its challenger."""
        problem, Z = self._problem, self._problem.arms.coordinates
        fit, rng = (
            estimate(problem.arms, self._rewards),
            np.random.default_rng([self._seed, self._spent]),
        )
        R = fit.information.inverse_root  # R'R = A^-1
        scores = problem.sign * fit.means()
        pairs = top_two(Posterior(Z, scores, problem.sigma * R), n, rng)
        return greedy_pulls(Z, R.T @ R, pairs)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Where the means may be.

    Attributes
    ----------
    Z : (K, r) array
        The arms.
    scores : (K,) array
        Their estimates, large ones good.
    root : (q, r) array
        R with R'R the covariance of the estimated parameter.
    """

    Z: Float[np.ndarray, "K r"]
    scores: Float[np.ndarray, " K"]
    root: Float[np.ndarray, "q r"]

    def best(self, m: int, rng: np.random.Generator) -> Int[np.ndarray, " m"]:
        """Return the best arm of each of m draws of the parameter."""
        drawn = rng.standard_normal((m, len(self.root))) @ self.root
        return np.asarray((self.scores + drawn @ self.Z.T).argmax(axis=1))


def top_two(given: Posterior, n: int, rng: np.random.Generator) -> Int[np.ndarray, "n 2"]:
    """Draw n leaders and challengers."""
    Z, scores, root = given.Z, given.scores, given.root
    drawn = given.best(2 * n, rng)
    pairs, ahead, open_ = np.repeat(drawn[:n, None], 2, axis=1), drawn[n:], np.arange(n)
    for left in range(TRIES, 0, -1):
        if len(ahead) < len(open_):  # those who are left often stay so: draw for several tries
            rounds = min(left, max(1, AHEAD // (len(Z) * len(open_))))
            ahead = np.append(ahead, given.best(rounds * len(open_), rng))
        pairs[open_, 1], ahead = ahead[: len(open_)], ahead[len(open_) :]
        open_ = open_[pairs[open_, 1] == pairs[open_, 0]]
        if len(open_) == 0:
            return pairs
    for leader in np.unique(pairs[open_, 0]):
        widths = np.linalg.norm((Z - Z[leader]) @ root.T, axis=1)
        widths[leader] = 1.0
        lead = (scores[leader] - scores) / widths
        lead[leader] = np.inf
        pairs[open_[pairs[open_, 0] == leader], 1] = lead.argmin()
    return pairs


def greedy_pulls(
    Z: Float[np.ndarray, "K r"],
    inverse: Float[np.ndarray, "r r"],
    pairs: Sequence[Sequence[int]] | Int[np.ndarray, "n 2"],
) -> Int[np.ndarray, " n"]:
    """Return, for each pair in turn, the arm after which their difference has least variance.

    With B = A^-1 and y = x - x', a pull of z takes (z'By)^2 / (1 + z'Bz) off y'By (Sherman and
    Morrison 1950).

    Examples
    --------
    >>> greedy_pulls(np.eye(3), np.diag([0.5, 0.25, 1.0]), [(0, 1), (0, 1), (1, 2)])
    array([0, 0, 2])
    """
    B, picks = np.array(inverse, dtype=float), np.empty(len(pairs), dtype=np.int64)
    leverage: Any = np.einsum("ij,jk,ik->i", Z, B, Z)
    for t, (i, j) in enumerate(pairs):
        gain = Z @ (B @ (Z[i] - Z[j]))
        pick = picks[t] = int((gain * gain / (1.0 + leverage)).argmax())
        column = B @ Z[pick]
        share = 1.0 + leverage[pick]
        B -= column[:, None] * (column / share)
        leverage = leverage - (Z @ column) ** 2 / share
    return picks
