"""XY-oracle: what could be done if the parameter were known (Soare 2014, Sect. 3).

It knows theta, so it knows which differences matter, and pulls the optimal design for the
directions (x* - x) / gap(x) of eq:oracle.strategy. Two ways to stop:

- "deterministic", eq:oracle.stop.condition.2: at the first n with
  radius(n) ||y||_{A_n^-1} <= gap(y) for all these directions, whatever the rewards; then it
  returns the best arm by the estimate (Lemma 1). Since n is known in advance, the estimate is
  looked at once, and only arms that would be wrong can win wrongly: with `bound="sharp"` the
  radius is that of so many one-sided comparisons, sigma sqrt(2 log(rivals / delta)), without the
  union over n and over all pairs that the printed one has.
- "empirical", eq:emp.stop.condition.2: the rule that the static strategies have.

For the first, only arms that would be a wrong answer count: those more than epsilon behind the
best, so an arm that is exactly tied with the best one does not.

Arms that are measured and candidates may differ: x* and x are candidates, the design is over the
arms that can be pulled, in units of their noise where that differs (`units`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np

from finalist.arms import Arms
from finalist.design import Design, Greedy, Rounded, optimal_design, round_design
from finalist.design.measured import Measured
from finalist.design.optimal import solve_task
from finalist.design.tasks import directions_task
from finalist.errors import DesignError, EstimateError, ParameterError
from finalist.inference.bounds import Bound, smallest_pulls, static_radius
from finalist.inference.information import information
from finalist.inference.least_squares import estimate
from finalist.problem import Feature, Problem
from finalist.shapes import Float, Int
from finalist.strategies.about import check_choice
from finalist.strategies.phased.phase import PhasedRun, Pulls, shortest_prefix
from finalist.strategies.protocol import SUPPORTED, Allocation, Declared, Verdict, first_named
from finalist.strategies.static.static import DESIGN_TOLERANCE, StaticRun
from finalist.strategies.units import BEYOND, Units

Stopping = Literal["deterministic", "empirical"]
#: Means closer than this, relatively, are ties.
TIE = 1e-12
#: Share of the G-optimal design mixed in where the oracle's design does not span.
SPANNING_SHARE = 0.01
#: Allocations that are tried one by one, each a pull longer than the one before.
MAX_TRIES = 1_000_000


@dataclass(frozen=True)
class XYOracle(Declared):
    """The strategy with its settings.

    Parameters
    ----------
    theta : (d,) sequence of float
        The true parameter.
    bound : "sharp" or "soare"
        Constants of the confidence radius: the tightest valid ones, or as printed.
    stopping : "deterministic" or "empirical"
        Whether the rewards have a say in when to stop.
    allocation : "relaxed" or "greedy"
        The optimal design, rounded, or the paper's greedy rule.

    Examples
    --------
    >>> import finalist as fl
    >>> problem = fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0))
    >>> run = XYOracle([1.0, 0.5, 0.0]).start(problem)
    >>> run.next().counts
    array([60, 59,  9])
    """

    name: ClassVar[str] = "xy-oracle"
    theta: Sequence[float] | np.ndarray
    bound: Bound = "sharp"
    stopping: Stopping = "deterministic"
    allocation: Allocation = "relaxed"

    def __post_init__(self) -> None:
        check_choice("bound", self.bound, Bound)
        check_choice("stopping", self.stopping, Stopping)
        check_choice("allocation", self.allocation, Allocation)
        object.__setattr__(self, "theta", _checked_theta(self.theta))

    @classmethod
    def knowing(cls, arms: Arms, theta: Float[np.ndarray, " d"]) -> "XYOracle":  # noqa: ARG003
        """Return the strategy for a simulation with this theta."""
        return cls(tuple(map(float, theta)))

    @property
    def supports(self) -> frozenset[Feature]:
        """What a problem may need; the greedy rule supports only what the paper has."""
        return SUPPORTED if self.allocation == "greedy" else BEYOND

    def start(self, problem: Problem, seed: int = 0) -> "OracleRun | StaticRun":  # noqa: ARG002
        """Begin with a problem; nothing is random, so the seed has no influence."""
        who = f"{self.name} with allocation='greedy'" if self.allocation == "greedy" else self.name
        problem.refuse_unsupported(who, self.supports)
        known = knowledge_of(problem, np.array(self.theta), self.stopping)
        if self.stopping == "empirical" and known.rivals:
            return StaticRun(problem, self.bound, lambda: oracle_sequence(known, self.allocation))
        return OracleRun(self, problem, known)


@dataclass(frozen=True)
class Knowledge:
    """What the oracle knows: the best candidate, those to tell from it, and their gaps.

    `relative` is the noise of each arm in units of the largest, None where it is the same.
    """

    arms: Arms
    best: int
    rivals: tuple[int, ...]
    gaps: tuple[float, ...]
    relative: tuple[float, ...] | None = None

    @property
    def each(self) -> tuple[float, ...] | float:
        """The same noise for designs, 1 for all where it is the same."""
        return 1.0 if self.relative is None else self.relative

    @property
    def directions(self) -> Float[np.ndarray, "M r"]:
        """(x* - x) gap_min / gap(x) for the rivals, in the coordinates of the span."""
        return self._scaled(self.arms.coordinates)

    @property
    def features(self) -> Float[np.ndarray, "M d"]:
        """The same directions as features."""
        return self._scaled(self.arms.features)

    @property
    def smallest(self) -> float:
        """gap_min, the smallest gap of a rival."""
        return min(self.gaps)

    def _scaled(self, X: Float[np.ndarray, "K q"]) -> Float[np.ndarray, "M q"]:
        scale = self.smallest / np.array(self.gaps)
        return np.asarray((X[self.best] - X[list(self.rivals)]) * scale[:, None])


def knowledge_of(
    problem: Problem, theta: Float[np.ndarray, " d"], stopping: Stopping = "deterministic"
) -> Knowledge:
    """Find the best arm, the arms to tell from it, and how well."""
    able, means = problem.arms.candidate, problem.sign * problem.arms.means(theta)
    best = int(np.where(able, means, -np.inf).argmax())
    gaps = means[best] - means
    tie = TIE * float(np.abs(means).max())
    if stopping == "deterministic":
        rivals = np.flatnonzero((gaps > max(problem.epsilon, tie)) & able)
    else:  # the rule asks for radius ||y|| <= gap + epsilon of every rival
        gaps = gaps + problem.epsilon
        rivals = np.flatnonzero((gaps > tie) & (np.arange(len(gaps)) != best) & able)
    names, behind = tuple(map(int, rivals)), tuple(map(float, gaps[rivals]))
    return Knowledge(problem.arms, best, names, behind, Units.of(problem).relative)


@lru_cache(maxsize=64)
def oracle_design(known: Knowledge) -> Design:
    """Return the design of eq:oracle.strategy; the runs of a simulation share it."""
    measured = Measured.of(known.arms, known.each)
    return solve_task(measured, directions_task(measured.rows, known.directions))


def spanning_weights(known: Knowledge) -> Float[np.ndarray, " K"]:
    """Return the oracle's design, made to tell all arms apart if it does not."""
    weights = oracle_design(known).weights
    if information(known.arms.coordinates, weights).rank == known.arms.rank:
        return weights
    everywhere = optimal_design(known.arms, "g", DESIGN_TOLERANCE, sigma=known.each).weights
    return (1.0 - SPANNING_SHARE) * weights + SPANNING_SHARE * everywhere


def oracle_sequence(known: Knowledge, allocation: Allocation) -> Pulls:
    """Return the oracle's pulls one by one."""
    if allocation == "greedy":
        return Greedy(known.arms, known.features)
    return Rounded(spanning_weights(known))


@lru_cache(maxsize=64)
def oracle_allocation(
    known: Knowledge, delta: float, sigma: float, bound: Bound, allocation: Allocation
) -> Int[np.ndarray, " K"]:
    """Find the first allocation that fulfils eq:oracle.stop.condition.2.

    No allocation of n pulls can while H_LB radius(n)^2 > n, so the rounded designs are tried
    from there on, one by one. Of the greedy sequence, which is longer, a prefix is returned that
    fulfils it while one pull less does not.
    """
    Y, precisions = known.directions, np.asarray(known.each) ** -2.0

    def radius(n: float) -> float:
        if bound == "soare":
            return static_radius(n, int(known.arms.candidate.sum()), delta, sigma, "soare")
        return sigma * math.sqrt(2.0 * math.log(len(known.rivals) / delta))

    def enough(counts: Int[np.ndarray, " K"]) -> bool:
        info = information(known.arms.coordinates, counts * precisions)
        return radius(float(counts.sum())) * math.sqrt(info.variances(Y).max()) <= known.smallest

    if allocation == "greedy":
        return shortest_prefix(
            Greedy(known.arms, known.features), enough, known.arms.rank, len(known.arms)
        )
    design = oracle_design(known)
    square = known.smallest * known.smallest
    n = smallest_pulls(design.lower_bound / square if square > 0.0 else math.inf, radius)
    n = first = max(n, len(design.support))
    while not enough(counts := round_design(design, n)):
        n += 1
        if n - first > MAX_TRIES:
            raise DesignError(f"no {n} pulls by the oracle's design are accurate enough.")
    counts.flags.writeable = False
    return counts


class OracleRun(PhasedRun):
    """The oracle with the deterministic rule at work: one allocation, and the best arm by it."""

    def __init__(self, settings: XYOracle, problem: Problem, known: Knowledge) -> None:
        super().__init__(problem)
        self._settings, self._known, self._units = settings, known, Units.of(problem)
        self._winner = None if known.rivals else known.best

    @property
    def verdict(self) -> Verdict:
        """What is certain now."""
        return first_named(self._winner, self._problem, self._pulls)

    def _note(self) -> dict[str, Any]:
        return {}

    def _conclude(self) -> None:
        """Return the best arm by the whole allocation."""
        arms, who, p = self._problem.arms, self._units.candidates, self._units.precisions
        fit = estimate(arms, self._rewards, precisions=p)
        ahead = fit.gaps(arms.coordinates[who] - arms.coordinates[self._known.best])
        known = np.isfinite(ahead)  # not: tied with the best, never pulled
        if not known.any():
            raise EstimateError("these rewards are too large to estimate from; rescale them.")
        score = np.where(known, self._problem.sign * ahead, -np.inf)
        self._winner = int(who[int(score.argmax())])

    def _allocate(self) -> Int[np.ndarray, " K"]:
        problem, settings = self._problem, self._settings
        return oracle_allocation(
            self._known, problem.delta, self._units.sigma, settings.bound, settings.allocation
        )


def _checked_theta(theta: Any) -> tuple[float, ...]:
    try:
        array = np.asarray(theta, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 1 or len(array) == 0 or not np.isfinite(array).all():
        raise ParameterError(f"theta is {theta!r}; it must be a sequence of finite numbers.")
    return tuple(map(float, array))
