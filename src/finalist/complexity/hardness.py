"""How hard a problem is: every complexity that the paper defines, for a known parameter.

Soare 2014, Sect. 3 (H_LB, N*), Lemma 2, Theorems 1-3 and M* of Sect. 5. Where the print is
wrong, the corrected statement is used; each place says so. Bounds whose logarithm contains
the number of pulls are solved for it.

`complexity` returns at once; each quantity is computed when it is read.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Unpack

import numpy as np

from finalist.arms import Arms
from finalist.complexity.gaps import best_and_gaps
from finalist.complexity.pairs import PairLimit, pair_limit
from finalist.complexity.ties import closest_tie
from finalist.design import Design, optimal_design
from finalist.design.measured import Measured
from finalist.design.optimal import solve_task
from finalist.design.tasks import Task, directions_task
from finalist.errors import ProblemError
from finalist.inference.bounds import Bound, lower_bound_pulls, smallest_pulls, static_radius
from finalist.inference.information import information
from finalist.problem import UNSET, Problem, Unset, as_problem
from finalist.settings import ProblemWords, spelled_out
from finalist.shapes import Float, Int


@dataclass(frozen=True)
class Guarantees:
    """What the paper proves about pulls and complexities, with its misprints corrected.

    Attributes
    ----------
    lemma2_lower, lemma2_upper : float
        The range of H_LB: max over y of ||y||^2 / (L^2 Delta(y)^2), and 4 r / Delta_min^2.
        (Printed with L and with Delta_min in the lower bound, which is false.)
    theorem1, theorem2 : int
        Pulls that suffice for the G- and the XY-allocation, rounding included.
    theorem3 : int
        The scale of XY-Adaptive's pulls; its proof has a gap, so take it as a scale.
    """

    lemma2_lower: float
    lemma2_upper: float
    theorem1: int
    theorem2: int
    theorem3: int


@dataclass(frozen=True)
class Complexity:
    """The complexities of one problem with a known parameter. Made by `complexity`.

    Attributes
    ----------
    problem : Problem
    theta : (d,) array
    bound : "sharp" or "soare"
    alpha : float
    best : int
        The best arm.
    gaps : (K,) array
        How much worse each arm is than the best one; 0 for the best.
    """

    problem: Problem
    theta: Float[np.ndarray, " d"] = field(repr=False)
    bound: Bound
    alpha: float
    best: int
    gaps: Float[np.ndarray, " K"] = field(repr=False)

    @property
    def others(self) -> Int[np.ndarray, " K-1"]:
        """All arms but the best."""
        return np.delete(np.arange(len(self.gaps)), self.best)

    @cached_property
    def delta_min(self) -> float:
        """The smallest gap; the best arm does not count. Infinity for a single arm."""
        return float(self.gaps[self.others].min(initial=math.inf))

    @cached_property
    def oracle_design(self) -> Design:
        """The design of an oracle that knows theta (Soare 2014, eq:oracle.strategy)."""
        arms = self.problem.arms
        if len(arms) == 1:
            return optimal_design(arms, "xy")
        return solve_task(Measured.of(arms), self._task)

    @property
    def h_lb(self) -> float:
        """H_LB = min over designs of max over y in Y* of y'Lambda^-1 y / Delta(y)^2."""
        return self.oracle_design.value / self.delta_min**2

    @cached_property
    def h_mab(self) -> float:
        """H_MAB = sum over arms of 1 / Delta^2, with Delta_min for the best arm itself."""
        return float(np.sum(self.gaps[self.others] ** -2.0) + self.delta_min**-2.0)

    @property
    def t_star(self) -> float:
        """T* = 2 sigma^2 H_LB, the characteristic time of the Gaussian linear model."""
        return 2.0 * self.problem.sigma**2 * self.h_lb

    @property
    def lower_bound(self) -> float:
        """T* kl(delta, 1 - delta): mean pulls of any method that keeps delta for every theta.

        One that is told theta is not bound by it. Certified: T* is taken from the lower bound of
        the oracle's design.
        """
        t_star = 2.0 * self.problem.sigma**2 * self.oracle_design.lower_bound / self.delta_min**2
        return lower_bound_pulls(t_star, self.problem.delta)

    @cached_property
    def _pair_limit(self) -> PairLimit:
        return pair_limit(self.problem, self.theta)

    def pair_limit(self, budget: float) -> float:
        """Return what the error after a fixed number of pulls cannot be below (`pair_limit`).

        It limits the mean of the errors under theta and under its mirror image for one rival.

        Parameters
        ----------
        budget : float
            The number of pulls.
        """
        return self._pair_limit.error(budget)

    @property
    def oracle_budget(self) -> int:
        """N*, the pulls of the oracle: N = c^2 H_LB log_N(K^2 / delta) solved for N."""
        return smallest_pulls(self.h_lb, self.radius)

    def budget(self, design: Design) -> int:
        """Return what N* is for the oracle's design, for any other design.

        The pulls after which the oracle's stopping rule (eq:oracle.stop.condition.2) holds when
        they are shared like `design`.
        """
        if len(self.gaps) == 1:
            return 1
        info = information(self.problem.arms.coordinates, design.weights)
        return smallest_pulls(self._task.evaluate(info) / self.delta_min**2, self.radius)

    @cached_property
    def _task(self) -> Task:
        """The oracle's design problem: directions y Delta_min / Delta(y), in the span."""
        Z = self.problem.arms.coordinates
        scale = self.delta_min / self.gaps[self.others]
        return directions_task(Z, (Z[self.best] - Z[self.others]) * scale[:, None])

    @cached_property
    def m_star(self) -> int:
        """M*: pulls after which static XY leaves no two suboptimal arms possible together.

        Soare 2014, eq:m.value, with the relaxed XY design. 1 if there are no two such arms.
        """
        if len(self.gaps) < 3:
            return 1
        arms, parameter = self.problem.arms, self.problem.sign * self.theta
        tie = closest_tie(arms, arms.parameter_to_span(parameter), self.best, self.gaps)
        return smallest_pulls(tie**-2.0, self.radius)

    @cached_property
    def bounds(self) -> Guarantees:
        """The paper's Lemma 2 and Theorems 1-3."""
        return _guarantees(self)

    def radius(self, n: float) -> float:
        """Return the confidence radius for n pulls under the chosen constants."""
        K, sigma = len(self.gaps), self.problem.sigma
        return static_radius(n, K, self.problem.delta, sigma, self.bound)


@spelled_out
def complexity(
    arms: Arms | Problem,
    theta: Float[np.ndarray, " d"],
    sigma: float | Unset | None = UNSET,
    delta: float = 0.05,
    bound: Bound = "sharp",
    *,
    alpha: float = 0.4,
    **words: Unpack[ProblemWords],
) -> Complexity:
    """Tell how hard it is to find the best arm when the parameter is theta.

    Parameters
    ----------
    arms : Arms or Problem
        The arms, with the settings in `words`; or the problem, which has its own sigma and delta.
    theta : (d,) array
        The parameter; the expected reward of an arm is x'theta.
    sigma : float
        Size of the noise; has to be given.
    delta : float
        Probability of error.
    bound : "sharp" or "soare"
        Constants of the confidence radius: the tighter valid ones, or as printed.
    alpha : float
        Parameter of XY-Adaptive, for Theorem 3.
    **words
        Settings of the problem, as in `Problem`: `objective`. The theory has no others yet; what
        it cannot answer is refused.

    Returns
    -------
    Complexity
        With `h_lb`, `h_mab`, `t_star`, `lower_bound`, `oracle_budget`, `m_star`, `bounds`.

    Raises
    ------
    TiedArmsError
        When two arms are equally good; the message names them.

    Examples
    --------
    >>> import numpy as np, finalist as fl
    >>> arms = fl.Arms.unstructured(["a", "b", "c"])
    >>> c = fl.complexity(arms, np.array([1.0, 0.5, 0.0]), sigma=1.0)
    >>> round(c.h_mab, 2), round(c.h_lb, 2), round(c.lower_bound, 1)
    (9.0, 17.14, 90.9)
    """
    problem = (
        as_problem(arms, **words)
        if isinstance(arms, Problem)
        else as_problem(arms, sigma=sigma, delta=delta, **words)
    )
    problem.refuse_unsupported("complexity", frozenset({"minimise"}))
    if not (isinstance(alpha, int | float) and 0 < alpha < 1):
        raise ProblemError(f"alpha is {alpha!r}; it lies between 0 and 1.")
    best, gaps = best_and_gaps(problem, theta)
    parameter = np.array(theta, dtype=float)
    for array in (parameter, gaps):
        array.flags.writeable = False
    # An unknown bound is refused now.
    static_radius(1, len(problem.arms), problem.delta, problem.sigma, bound)
    return Complexity(problem, parameter, bound, float(alpha), best, gaps)


def _guarantees(c: Complexity) -> Guarantees:
    arms = c.problem.arms
    r = arms.rank
    if len(arms) == 1:
        return Guarantees(0.0, 0.0, 1, 1, 1)
    X = arms.features
    scale = float(np.abs(X).max())
    Y = (X[c.best] - X[c.others]) / scale
    L2 = float(np.max(np.sum((X / scale) ** 2, axis=1)))
    # Lemma 2: the largest eigenvalue of Lambda is at most L^2.
    lower = float(np.max(np.sum(Y**2, axis=1) / c.gaps[c.others] ** 2)) / L2
    upper = 4.0 * r / c.delta_min**2
    # Theorems 1 and 2: stopping needs 2 radius ||x* - x||_{A^-1} <= Delta_min, and both designs
    # have ||x* - x||^2 <= 4 r / (n - p) after rounding on p support points: 16 r radius^2 <=
    # Delta_min^2 (n - p). (Printed: 32 d for XY; the factor is 4 4, once the lemma's 2 is a 4.)
    p = r * (r + 1) // 2 + 1
    static = p + smallest_pulls(4.0 * upper, lambda m: c.radius(m + p))
    # Theorem 3: J phases of at most max(M*, 16 N* / alpha) pulls each, with
    # J <= log(4 radius^2 / Delta_min^2) / log(1 / alpha).
    longest = max(c.m_star, 16.0 / c.alpha * c.oracle_budget)

    def root_phases(n: float) -> float:
        phases = 2.0 * math.log(2.0 * c.radius(n) / c.delta_min) / math.log(1.0 / c.alpha)
        return math.sqrt(max(1.0, phases))

    return Guarantees(lower, upper, static, static, smallest_pulls(longest, root_phases))
