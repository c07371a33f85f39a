"""What is certain of the m best arms, and how it is said, whatever the claims are that tell it."""

import numpy as np

from finalist.errors import ProblemError
from finalist.problem import Problem
from finalist.shapes import Bool, Float, Int
from finalist.strategies.gauntlet.claims import Intervals
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.protocol import Verdict
from finalist.text import counted, named

#: More candidates are too many pairs.
MAX_CANDIDATES = 400


class TopAnswer:
    """Which candidates may be among the m best, which are, and the winners when all are known.

    Candidates are numbered from 0 to C - 1 here and in `_places`.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.candidates: Int[np.ndarray, " C"] = np.flatnonzero(problem.arms.candidate)
        self._winners: Int[np.ndarray, " m"] | None = None

    def _places(self) -> tuple[Bool[np.ndarray, " C"], Bool[np.ndarray, " C"]]:
        """Return which candidates may be among the m best, and which are for certain."""
        raise NotImplementedError

    def verdict(self, pulls: int) -> Verdict:
        """Return what is certain: winners when all are known; survivors may be among them."""
        if self._winners is not None:
            found = tuple(self.candidates[self._winners].tolist())
            return Verdict(found[0], tuple(sorted(found)), pulls, found)
        possible, _ = self._places()
        return Verdict(None, tuple(self.candidates[possible].tolist()), pulls)

    @property
    def certain(self) -> tuple[int, ...]:
        """The arms that are among the m best for certain, at the risk delta."""
        _, sure = self._places()
        return tuple(self.candidates[sure].tolist())

    def words(self, past: Past, _: Intervals) -> str:
        """Say in one sentence what is certain now, after the pilot."""
        problem, names = self._problem, self._problem.arms.names
        m, pulls = problem.top, counted(past.pulls, "measurement")
        if self._winners is not None:
            who = named([names[i] for i in self.candidates[self._winners]], m)
            return (
                f"{who} are the {m} best, after {pulls}; this is wrong with probability at most "
                f"{problem.delta:.3g}."
            )
        sure = self.certain
        left = len(self.verdict(past.pulls).survivors) - len(sure)
        if not sure:
            who = counted(left, "candidate")
            return f"{who} may still be among the {m} best, after {pulls}."
        verb = "belongs" if len(sure) == 1 else "belong"
        who = named([names[i] for i in sure], m)
        others = counted(left, "other candidate")
        return f"{who} {verb} to the {m} best, and {others} still may, after {pulls}."

    def _in_order(self, past: Past) -> Int[np.ndarray, " C"]:
        """Return the numbers of the candidates, the best by the past first."""
        means = past.means(past.estimate())[self.candidates]
        return np.asarray(np.argsort(-means, kind="stable"))

    def _win(self, found: Int[np.ndarray, " m"], past: Past) -> None:
        """Name the winners, the one with the best estimate first."""
        means = self._problem.sign * (past.Z @ past.estimate().phi)[self.candidates]
        self._winners = found[np.argsort(-means[found], kind="stable")]


def refuse_many(candidates: int, m: int) -> None:
    """Refuse so many candidates that their pairs are too many to test."""
    if candidates > MAX_CANDIDATES:
        raise ProblemError(
            f"the {m} best of {candidates:,} candidates are too many pairs to test; leave "
            f"candidates out until there are {MAX_CANDIDATES}, or look for the best one."
        )


def swaps(
    inside: Int[np.ndarray, " m"], outside: Int[np.ndarray, " n"]
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Return all pairs of an arm outside and an arm inside, those of an arm outside together.

    Examples
    --------
    >>> swaps(np.array([0, 1]), np.array([2, 3]))
    (array([2, 2, 3, 3]), array([0, 1, 0, 1]))
    """
    return np.repeat(outside, len(inside)), np.tile(inside, len(outside))


def still_open(
    first: Int[np.ndarray, " n"], second: Int[np.ndarray, " n"], missing: Float[np.ndarray, " n"]
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Return the pairs for which evidence is missing; all of them where none is."""
    some = missing > 0.0
    if not some.any():
        return first, second, missing
    return first[some], second[some], missing[some]
