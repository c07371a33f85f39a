"""Intervals for the means of arms and for the leads of a winner, as sharp as one direction allows.

The ellipsoid of `intervals` holds for every direction and pays for all dimensions. What people
look at are few numbers, named in advance: here each has a bet of its own, and the ellipsoid and
these bets share one wealth.

*A bet on one number.* Fix a direction y. The counts of a batch are chosen from the past, so that
V_b = 1 / (y'A_b^+ y), 0 where the batch cannot estimate y, is too; and V_b (y'theta_hat_b -
y'theta), from this batch alone, is a weighted sum of its noise whose squared weights sum to V_b.
With V and S the sums of V_b and of V_b y'theta_hat_b over complete batches and t = y'theta,
exp(l (S - V t) / sigma - l^2 V / 2) is a supermartingale from 1 for every l, also for sub-Gaussian
noise. So is its mean over l ~ N(0, 1/v),

    m_y(t) = (1 + V/v)^(-1/2) exp((S - V t)^2 / (2 sigma^2 (V + v))).

*Proposition.* Let y_1..y_n be fixed in advance and w between 0 and 1. With probability at least
1 - q, at all times and for all i at once, F_i(y_i'theta) < 1/q, where

    F_i(t) = w exp((t - y_i'theta_hat)^2 / (2 u_i^2)) sqrt(det A_0 / det(A + A_0)) + (1-w) m_i(t)/n

and u_i = sigma sqrt(y_i'A^-1 y_i + y_i'A^-1 A_0 A^-1 y_i).

*Proof.* w M + (1 - w) sum_i m_i / n, M the mixture of `bounds.pooled_radius` at the true theta, is
a nonnegative supermartingale from 1: it stays below 1/q with probability at least 1 - q (Ville).
M is at least the first part of F_i at t = y_i'theta (Cauchy-Schwarz), and no m_j is negative. QED

log F_i is convex in t: what is below 1/q is an interval. It may be read off with a part of F_i
left out, at any time and for any reason; it is only wider.

*Means.* The n = K directions are the arms. *Leads.* Let x* be a best candidate, the first if there
are several. Nobody knows which it is, but it is fixed: the n directions are x* - x for the other
candidates x. So with probability at least 1 - q, whenever the arm that is named is x*, all its
leads are in their intervals: there is no union over pairs. The winner of the gauntlet is x* with
probability at least 1 - delta (otherwise x* was rejected), so that with at least 1 - delta - q it
is the best and leads as its intervals say. For an arm that has not won nothing says that it is x*:
there the bets are left out, and what remains holds for every pair (compare Hsu 1984, multiple
comparisons with the best).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from finalist.inference.information import information
from finalist.inference.least_squares import Estimate
from finalist.inference.pooling import BatchSums, batch_arms
from finalist.problem import Problem
from finalist.shapes import Float

#: w, the part of the wealth that is in the ellipsoid. Half costs either at most 4 % in width.
SHARE = 0.5
#: v over what A_0 would tell of a direction: one number pays less for starting early than many.
FIRST = 0.125
#: Bets are left out where batches times (numbers times the squared rank, and more) exceed this.
MAX_WORK, BATCH_WORK = 200_000_000, 200_000
#: Steps of Newton's method; it comes from outside, so that any number of them is valid.
STEPS, CLOSE = 40, 1e-9
#: Units beyond which nothing changes; its square is a number.
FAR = 1e100


@dataclass(frozen=True, eq=False)
class Mixture:
    """F of this module for M numbers, as functions of the distance from their estimates.

    Attributes
    ----------
    offset, unit, cost : (J, M) arrays
        Part j of F_i is exp(((t - offset) / unit)^2 / 2 - cost); a unit is infinite where nothing
        is known.

    Examples
    --------
    >>> one = Mixture(np.zeros((1, 1)), np.ones((1, 1)), np.zeros((1, 1)))
    >>> below, above = one.reach(0.05)
    >>> above.round(3)  # sqrt(2 log 20)
    array([2.448])
    >>> float(one.level(-above)[0].round(6))
    0.05
    """

    offset: Float[np.ndarray, "J M"]
    unit: Float[np.ndarray, "J M"]
    cost: Float[np.ndarray, "J M"]

    def log_wealth(
        self, t: Float[np.ndarray, " M"]
    ) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]]:
        """Return log F_i at t_i and its slope."""
        z = np.clip((t - self.offset) / self.unit, -FAR, FAR)
        parts = z * z / 2.0 - self.cost
        top = parts.max(axis=0)
        share = np.exp(parts - top)
        total = share.sum(axis=0)
        return top + np.log(total), (share * z / self.unit).sum(axis=0) / total

    def reach(self, q: float) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]]:
        """Return how far below and above the estimates intervals reach; infinite if there is none.

        There is none where nothing is known, and where no value is left: an event of probability
        q, if the assumptions hold. A reach is negative where the estimate itself is excluded.
        """
        limit = -math.log(q)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            flipped = Mixture(-self.offset, self.unit, self.cost)
            below, above = flipped._above(limit), self._above(limit)
        none = ~(np.isfinite(below) & np.isfinite(above))
        exact = (self.unit == 0.0).any(axis=0)  # 0 is the value of the direction 0
        below, above = (np.where(none, np.inf, end) for end in (below, above))
        return np.where(exact, 0.0, below), np.where(exact, 0.0, above)

    def _above(self, limit: float) -> Float[np.ndarray, " M"]:
        """Return the largest t with log F <= limit, by Newton's method from above."""
        spread = self.unit * np.sqrt(2.0 * np.maximum(limit + self.cost, 0.0))
        t = np.asarray((self.offset + spread).min(axis=0))  # one part alone is at the limit there
        for _ in range(STEPS):
            value, slope = self.log_wealth(t)
            excess = value - limit
            t = np.where((excess > 0.0) & ~(slope > 0.0), np.inf, t)
            step = np.where(excess > CLOSE * limit, excess / slope, 0.0)
            if not np.any(step[np.isfinite(t)] > 0.0):
                break
            t = np.where(np.isfinite(t), t - step, t)
        return np.asarray(np.where(np.isnan(t), np.inf, t))

    def level(self, t: Float[np.ndarray, " M"]) -> Float[np.ndarray, " M"]:
        """Return the smallest q at which intervals are above t; 1 where they are at none.

        It is an always-valid p-value of "not above t": F_i is convex.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value, slope = self.log_wealth(t)
        against = (slope < 0.0) & (value > 0.0)
        return np.where(against, np.exp(-np.minimum(value, 700.0)), 1.0)


@dataclass(frozen=True, eq=False)
class Batches:
    """What bets on single numbers are made of.

    Attributes
    ----------
    sums : sequence of BatchSums, or None
        All complete batches, the counts of each chosen before its rewards were seen. None leaves
        the bets out of F: their wealth may be less than what they began with.
    """

    problem: Problem
    sums: Sequence[BatchSums] | None

    def left_out(self) -> "Batches":
        """Leave the bets out."""
        return Batches(self.problem, None)

    def about(
        self, fit: Estimate, directions: Float[np.ndarray, "M r"]
    ) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]] | None:
        """Return V for each direction, and how far S / V is from the estimate of all pulls.

        None where bets are left out, as they are where they would take long.
        """
        V, S = np.zeros(len(directions)), np.zeros(len(directions))
        Z, precisions = batch_arms(self.problem).coordinates, self.problem.precisions
        work = directions.size * Z.shape[1] + BATCH_WORK
        if self.sums is None or len(self.sums) * work > MAX_WORK:
            return None
        for cells in self.sums:
            rows, w = Z[cells.arms], cells.weights(precisions)
            info = information(rows, w)
            if info.rank == 0:
                continue
            with np.errstate(divide="ignore"):
                inverse = 1.0 / info.variances(directions)
            inverse[~np.isfinite(inverse)] = 0.0
            V += inverse
            S += inverse * (directions @ info.solve(rows.T @ (w * (cells.mean - rows @ fit.phi))))
        return V, np.divide(S, V, out=np.zeros_like(S), where=V > 0.0)
