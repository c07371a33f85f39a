"""XY-Adaptive: phases of static XY allocations on the arms that survive (Soare 2014, Sect. 5).

Phase j pulls an XY-optimal allocation for the differences of the survivors, long enough to bring
the largest variance below alpha times that of the phase before, and then drops the arms that a
survivor dominates (Lemma 4). Read as follows where the pseudo-code is misprinted: the survivors of
phase j start from those of phase j - 1, the test compares different arms strictly and with the
constant, the length rule is max y'A^-1 y <= alpha * (the same at the end of the last phase), which
starts at 1, a phase has at least r(r + 1) + 1 pulls, the phases share delta as 6 delta / (pi j)^2,
and the survivor is returned.

The allocation of a phase is fixed before its rewards are seen, and they are tested once, at its
end. With `bound="sharp"` the radius is therefore that of m(m - 1) one-sided comparisons of m
survivors at the level of the phase, without a union over the number of pulls. Estimates use the
rewards of the phase alone.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from finalist.arms import Arms
from finalist.design import Design, Greedy, design_value, optimal_design, round_design
from finalist.design.rounding import MAX_PULLS
from finalist.errors import DesignError, ProblemError
from finalist.inference.bounds import Bound, static_radius
from finalist.inference.least_squares import estimate
from finalist.problem import Feature, Problem
from finalist.shapes import Float, Int
from finalist.strategies.about import check_choice
from finalist.strategies.phased.phase import DiscardingRun, shortest_prefix
from finalist.strategies.protocol import SUPPORTED, Allocation, Declared
from finalist.strategies.units import BEYOND

#: How close to optimal the design of a phase is.
DESIGN_TOLERANCE = 1e-3
#: Variances often equal their goal exactly; the last digit must not decide.
ROUNDING = 1e-12


@dataclass(frozen=True)
class XYAdaptive(Declared):
    """The strategy with its settings.

    Parameters
    ----------
    alpha : float
        By how much a phase reduces the largest variance, between 0 and 1; the paper has 0.1.
    bound : "sharp" or "soare"
        Constants of the confidence radius: the tightest valid ones, or as printed.
    allocation : "relaxed" or "greedy"
        The pulls of a phase: the optimal design, rounded, or the paper's greedy rule.

    Examples
    --------
    >>> import finalist as fl
    >>> run = XYAdaptive().start(fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0)))
    >>> run.next().counts
    array([5, 5, 5])
    """

    name: ClassVar[str] = "xy-adaptive"
    alpha: float = 0.4
    bound: Bound = "sharp"
    allocation: Allocation = "relaxed"

    def __post_init__(self) -> None:
        if not (isinstance(self.alpha, int | float) and 0 < self.alpha < 1):
            raise ProblemError(f"alpha is {self.alpha!r}; it must be between 0 and 1.")
        check_choice("bound", self.bound, Bound)
        check_choice("allocation", self.allocation, Allocation)

    @property
    def supports(self) -> frozenset[Feature]:
        """What a problem may need; the greedy rule supports only what the paper has."""
        return SUPPORTED if self.allocation == "greedy" else BEYOND

    def start(self, problem: Problem, seed: int = 0) -> "XYAdaptiveRun":  # noqa: ARG002
        """Begin with a problem; nothing is random, so the seed has no influence."""
        problem.refuse_unsupported(self.name, self.supports)
        return XYAdaptiveRun(self, problem)


class XYAdaptiveRun(DiscardingRun):
    """XY-Adaptive at work: survivors, phase, and the largest variance reached so far."""

    def __init__(self, settings: XYAdaptive, problem: Problem) -> None:
        super().__init__(problem)
        self._settings, self._variance = settings, 1.0

    def _allocate(self) -> Int[np.ndarray, " K"]:
        goal = self._settings.alpha * self._variance
        survivors = tuple(map(int, self._survivors))
        noise, how = self._problem.noise.sigma, self._settings.allocation
        sigma = noise if isinstance(noise, tuple) else None
        return phase_allocation(self._problem.arms, survivors, goal, how, sigma)

    def _compare(self) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Return the two bounds; note max y'A^-1 y over differences of survivors as the variance.

        With probability 1 - 6 delta / (pi j)^2 all these bounds hold in phase j. What lost rewards
        leave open is unknown: then its bound is infinite, and the phase is repeated.
        """
        Z = self._problem.arms.coordinates[self._survivors]
        p = self._problem.precisions
        fit = estimate(self._problem.arms, self._rewards, precisions=p)
        radius = self._radius(fit.statistics.pulls)
        W = Z @ fit.information.inverse_root.T  # ||w_a - w_b|| = ||z_a - z_b||_{A^-1}
        least, most, variance = np.empty(len(Z)), np.empty(len(Z)), 0.0
        for b in range(len(Z)):
            gaps = self._problem.sign * ((Z - Z[b]) @ fit.phi)
            gaps[~np.isfinite(gaps)] = np.nan  # of infinity nothing is known either
            difference = W - W[b]
            variances = np.einsum("ij,ij->i", difference, difference)
            variances[~fit.information.spans(Z - Z[b]) | np.isnan(variances)] = np.inf
            widths = radius * np.sqrt(variances)
            gaps[b], widths[b] = -np.inf, 0.0  # an arm is no rival of itself
            least[b], most[b] = (gaps - widths).max(), (gaps + widths).max()
            variance = max(variance, float(variances.max()))
        self._variance = variance if variance < np.inf else self._variance
        return least, most

    def _radius(self, pulls: int) -> float:
        """Return the radius of this phase (Soare 2014, Prop. 1; the module says which form)."""
        sigma = self._problem.scale
        assert sigma is not None
        if self._settings.bound == "soare":
            level = 6.0 * self._problem.delta / (math.pi * self._number) ** 2
            return static_radius(pulls, len(self._problem.candidates), level, sigma, "soare")
        m = len(self._survivors)
        # log(m (m - 1) / level): the quotient would overflow for a tiny delta.
        log = math.log(m * (m - 1) / 6.0) + 2.0 * math.log(math.pi * self._number)
        return sigma * math.sqrt(2.0 * (log - math.log(self._problem.delta)))


@lru_cache(maxsize=256)
def phase_allocation(
    arms: Arms,
    survivors: tuple[int, ...],
    goal: float,
    allocation: Allocation = "relaxed",
    sigma: tuple[float, ...] | None = None,
) -> Int[np.ndarray, " K"]:
    """Find the shortest allocation whose largest variance is at most `goal`.

    Soare 2014, eq:phase.allocation and eq:phase.length. Allocations grow pull by pull with n, so
    their largest variance never rises. Many simulated runs begin with the same phases: their
    allocations are kept.
    """
    alive, shortest = np.array(survivors), arms.rank * (arms.rank + 1)

    def enough(counts: Int[np.ndarray, " K"]) -> bool:
        return largest_variance(arms, alive, counts, sigma) <= goal * (1.0 + ROUNDING)

    if allocation == "greedy":  # eq:xy.optimal.design.incremental
        return shortest_prefix(Greedy(arms, "xy", among=alive), enough, shortest, len(arms))
    design = phase_design(arms, survivors, sigma)
    # No allocation of so many pulls is accurate enough, so the answer is a little above.
    least = design.lower_bound / goal * (1.0 - 1e-9) if goal > 0.0 else math.inf
    if not least < MAX_PULLS:
        raise DesignError(f"a phase would need {least:.3g} pulls, too many; use a larger alpha.")
    hopeless = math.ceil(least) - 1
    low, step = max(shortest, len(design.support) - 1, hopeless), 1
    while not enough(round_design(design, low + step)):
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(round_design(design, middle)) else (middle, high)
    counts = round_design(design, high)
    counts.flags.writeable = False
    return counts


@lru_cache(maxsize=256)
def phase_design(
    arms: Arms, survivors: tuple[int, ...], sigma: tuple[float, ...] | None = None
) -> Design:
    """Return the XY-optimal design for the differences of survivors, kept for later phases."""
    each = 1.0 if sigma is None else sigma
    return optimal_design(arms, "xy", DESIGN_TOLERANCE, among=np.array(survivors), sigma=each)


def largest_variance(
    arms: Arms,
    survivors: Int[np.ndarray, " m"],
    counts: Int[np.ndarray, " K"],
    sigma: tuple[float, ...] | None = None,
) -> float:
    """Return max y'A^-1 y over differences of survivors."""
    n, each = int(counts.sum()), 1.0 if sigma is None else sigma
    return design_value(arms, counts / n, "xy", among=survivors, sigma=each) / n
