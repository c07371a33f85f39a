"""A pilot that is split, not spent: a part of each result chooses, the rest of it is tested.

Let q be the sum of the rewards of an arm that are worth u pulls: q ~ N(u mu, u sigma^2), sigma
known. With w ~ N(0, 1), drawn by us and independent of everything,

    part = s q + sigma sqrt(s (1 - s) u) w,    rest = q - part

are jointly normal with cov(part, rest) = s (1 - s) u sigma^2 - s (1 - s) u sigma^2 = 0, so they
are independent: part ~ N(s u mu, s u sigma^2), rest ~ N((1 - s) u mu, (1 - s) u sigma^2), as if s u
pulls had been made for choosing and (1 - s) u others for the test (Rasines and Young 2023; data
fission, Leiner et al. 2023; thinning, Neufeld et al. 2024). So r pulls span the space twice.
The rest can be split again, with a fresh w, as often as one likes, by what the revealed parts say.

If sigma is stated too large, the noise of our own is too large as well: part and rest are
correlated negatively. A rival chosen by what was revealed is then rather too weak in the rest. If
sigma is too small they are correlated positively, which no test with that sigma would survive
anyway. For noise that is not normal, part and rest are uncorrelated and not independent: no split.

The w are written into the note of the next batch. So a study cannot be drawn again until it
pleases, and a replay needs no generator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from finalist.inference.information import Information
from finalist.inference.least_squares import Estimate
from finalist.inference.quick import quick_estimate
from finalist.inference.statistics import Statistics
from finalist.problem import Problem


@dataclass(eq=False)
class Reserve:
    """Results of a pilot: what is revealed of them, and what is kept back for the test.

    Attributes
    ----------
    worth, total : (K,) arrays
        Of each arm what is kept back: worth so many pulls, with this sum.
    shown, shown_total : (K,) arrays
        What is revealed, in the same way.
    """

    worth: Float[np.ndarray, " K"]
    total: Float[np.ndarray, " K"]
    shown: Float[np.ndarray, " K"]
    shown_total: Float[np.ndarray, " K"]

    @classmethod
    def empty(cls, K: int) -> "Reserve":
        """Return one without results."""
        return cls(*np.zeros((4, K)))

    def copy(self) -> "Reserve":
        """Return one that changes independently."""
        return Reserve(
            self.worth.copy(), self.total.copy(), self.shown.copy(), self.shown_total.copy()
        )

    def add(self, rewards: Statistics) -> None:
        """Take the results of a batch, and keep all of them back."""
        self.worth += rewards.count
        self.total += rewards.total

    @property
    def revealed(self) -> float:
        """What is revealed, in pulls."""
        return float(self.shown.sum())

    @property
    def kept(self) -> float:
        """What is kept back, in pulls."""
        return float(self.worth.sum())

    def arms(self) -> Int[np.ndarray, " n"]:
        """Return the arms of which something is kept back."""
        return (self.worth > 0.0).nonzero()[0]

    def reveal(self, problem: Problem, pulls: float, noise: Float[np.ndarray, " n"]) -> None:
        """Reveal results worth so many pulls, the same share of each arm.

        Parameters
        ----------
        problem : Problem
            Its sigma is known.
        noise : (n,) array
            Standard normal numbers of our own, one for each of `arms`.
        """
        i = self.arms()
        share = min(pulls / self.kept, 1.0)
        u, q, sigma = self.worth[i], self.total[i], problem.sigmas[i]
        part = share * q + sigma * np.sqrt(share * (1.0 - share) * u) * noise
        self.shown[i] += share * u
        self.shown_total[i] += part
        self.total[i] = q - part
        self.worth[i] = (1.0 - share) * u


def reveals_in(note: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return what the note of a batch says was revealed before it was chosen."""
    found: Sequence[Mapping[str, Any]] = note.get("revealed", [])
    return found


def weighted_estimate(
    problem: Problem,
    worth: Float[np.ndarray, " K"],
    total: Float[np.ndarray, " K"],
    known: Information | None = None,
) -> Estimate:
    """Return the estimate from sums of rewards that are worth some pulls, not whole numbers.

    Each arm counts as one result, with the precision of them all.
    """
    some = worth > 0.0
    zero = np.zeros(len(worth))
    mean = np.where(some, total / np.where(some, worth, 1.0), 0.0)
    p = problem.precisions
    once = Statistics(some.astype(np.int64), mean, zero, zero.copy())
    weights = worth if p is None else worth * p
    return quick_estimate(problem.arms, once, known=known, precisions=weights)
