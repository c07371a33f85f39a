"""RAGE: phases that halve the gap they can resolve (Fiez, Jain, Jamieson and Ratliff 2019, Alg. 1).

Phase t = 1, 2, ... pulls an XY-optimal design for the differences of the survivors, long enough
that every gap of 2^-(t+1) shows, estimates from its own rewards, and drops every arm z with a
rival z' such that ||z' - z||_{A^-1} sqrt(2 log(K^2 / delta_t)) < (z' - z)'theta_hat, where
delta_t = delta / t^2. Its length is
N_t = max(ceil(8 (2^(t+1))^2 rho (1 + e) log(K^2 / delta_t)), r(e)), with rho the largest variance
of the design and e what rounding it to whole pulls may cost.

Units. The paper has sigma = 1 and gaps of at most 2. Here 2^-t is measured in sigma, and a
setting says where it starts: phase t brings every width to at most g_t / 2, where
g_t = first_gap sigma 2^(1 - t), by
N_t = max(ceil(8 (sigma / g_t)^2 rho (1 + e) log(K^2 / delta_t)), r(e)). The printed formula is
first_gap = 1/4, for gaps of at most 2. The authors' program (RAGE.py of
github.com/fiezt/Transductive-Linear-Bandit-Code) begins with 2^(t - 1) instead of 2^(t + 1), which
is first_gap = 1, and has 2 K^2 instead of K^2. Gaps need no bound: large ones only make the first
phase longer than it had to be. So the setting changes the pulls, not the guarantee, and 1 is the
better one on problems whose gaps are not tiny: 14.0 times the lower bound where 1/4 needs at least
32 (`make bench-field RUNS=30`, delta = 0.05).

The best arm survives with probability at least 1 - delta. The allocation of a phase is fixed
before its rewards are drawn, so given the past (z' - z*)'(theta_hat - theta) is sub-Gaussian with
variance sigma^2 ||z' - z*||^2_{A^-1}. As (z' - z*)'theta <= 0, the best arm z* is dropped in phase
t only if this variable exceeds the width for one of at most K - 1 rivals. Each of these one-sided
events has probability at most delta_t / K^2, so all of them together, over all phases, at most

    (K - 1) / K^2 * (pi^2 / 6) delta <= (pi^2 / 24) delta < 0.42 delta    for every K >= 2,

with equality at K = 2. Neither the design nor N_t enters. Twice this, 0.83 delta, pays for both
sides, which epsilon-best answers need: an arm is returned when every survivor's estimated
advantage plus its width is at most epsilon. On the same event every survivor of phase t is at
most g_t worse than the best.

Rounding. With p arms in the design, whole pulls cost at most a factor 1 / (1 - p / N) (Pukelsheim,
ch. 12; `round_design`), hence r(e) = p (1 + e) / e. The paper's r(e) is for its own procedure.

Who is measured and who can win may differ, as in the paper: designs are over the arms x that can be
pulled, z and z' are candidates, and K is the number of candidates. Where the noise differs, sigma
is the largest sigma_x of an arm that can be pulled, A = sum of N_x (sigma / sigma_x)^2 x x', rho is
the largest variance by this A for a design, and theta_hat is weighted likewise (`units`). These
are rows x sigma / sigma_x with noise of size sigma, so (z' - z*)'(theta_hat - theta) has the
variance sigma^2 ||z' - z*||^2_{A^-1} as before. The proof never asks which rows were pulled, and
N_t and r(e) stand as they are: rounding replaces each N w_x by at least N w_x (1 - p / N), which
bounds A from below whatever multiplies x x'. Which unit of gaps is taken decides only where the
phases begin; with the largest they begin coarse, which is cheap, since each phase is about four
times as long as the one before. Candidates whose differences no pull can estimate are refused by
`Problem`.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from finalist.arms import Arms
from finalist.arms.span import SPAN_TOLERANCE
from finalist.design import rough_design, round_design
from finalist.design.measured import Measured
from finalist.design.rounding import MAX_PULLS
from finalist.errors import DesignError, ProblemError
from finalist.inference.information import information
from finalist.inference.least_squares import estimate
from finalist.problem import Problem
from finalist.shapes import Float, Int
from finalist.strategies.about import is_number
from finalist.strategies.phased.phase import DiscardingRun
from finalist.strategies.phased.xy_adaptive import phase_design
from finalist.strategies.protocol import Declared
from finalist.strategies.units import BEYOND, Units

#: Pairs that are compared at once; memory does not grow with their number.
PAIRS = 2_000_000
#: Gaps that a first phase may have to resolve: more pulls than can be counted, or hardly any.
GAPS = (1e-6, 1e6)
#: With at most so many arms and pairs a design is found in a fraction of a millisecond, this close
#: to the best one; smaller weights are dropped.
FEW, TOLERANCE, LIGHT = 256, 1e-3, 1e-5


@dataclass(frozen=True)
class RAGE(Declared):
    """The strategy with its settings.

    Parameters
    ----------
    first_gap : float
        The gap that the first phase resolves, in units of sigma, the largest one if they differ;
        each later phase half of the one before. 1/4 is as printed, 1 is what the authors' program
        has, and needs less than half of the pulls on the standard benchmark. With gaps far larger
        than sigma a still larger one saves pulls.
    rounding : float
        How much of its accuracy a design may lose when it is rounded to whole pulls: the e of
        the module. The paper has 1/10.

    Examples
    --------
    >>> import finalist as fl
    >>> run = RAGE().start(fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0)))
    >>> run.next().size > 4000, run.next(size=7).counts
    (True, array([3, 2, 2]))
    """

    name: ClassVar[str] = "rage"
    supports = BEYOND
    first_gap: float = 0.25
    rounding: float = 0.1

    def __post_init__(self) -> None:
        if not (is_number(self.first_gap) and GAPS[0] <= self.first_gap <= GAPS[1]):
            raise ProblemError(
                f"first_gap is {self.first_gap!r}; it must be a gap in units of sigma, between "
                f"{GAPS[0]:g} and {GAPS[1]:g}."
            )
        if not (is_number(self.rounding) and 0 < self.rounding <= 1):
            raise ProblemError(f"rounding is {self.rounding!r}; it must be above 0 and at most 1.")

    def start(self, problem: Problem, seed: int = 0) -> "RAGERun":  # noqa: ARG002
        """Begin with a problem; nothing is random, so the seed has no influence."""
        problem.refuse_unsupported(self.name, self.supports)
        return RAGERun(self, problem)


class RAGERun(DiscardingRun):
    """RAGE at work: the survivors and the phase."""

    def __init__(self, settings: RAGE, problem: Problem) -> None:
        super().__init__(problem)
        self._settings, self._units = settings, Units.of(problem)

    def _allocate(self) -> Int[np.ndarray, " K"]:
        alive = tuple(map(int, self._survivors))
        weights, value = survivors_design(self._problem.arms, alive, self._units.relative)
        return round_design(weights, self._length(int(np.count_nonzero(weights)), value))

    def _length(self, support: int, value: float) -> int:
        """Return N_t for a design with that largest variance: widths are at most g_t / 2."""
        e = self._settings.rounding
        g = self._settings.first_gap * 2.0 ** (1 - self._number)  # in units of sigma
        least = support * (1.0 + e) / e  # r(e)
        length = max(8.0 / g**2 * value * (1.0 + e) * self._log(), least)
        if not length < MAX_PULLS:
            raise DesignError(f"phase {self._number} would need {length:.3g} pulls, too many.")
        return math.ceil(length)

    def _log(self) -> float:
        """Return log(K^2 / delta_t)."""
        K = len(self._units.candidates)
        return 2.0 * math.log(K * self._number) - math.log(self._problem.delta)

    def _compare(self) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        Z = self._problem.arms.coordinates[self._survivors]
        p = self._units.precisions
        fit = estimate(self._problem.arms, self._rewards, precisions=p)
        radius = self._units.sigma * math.sqrt(2.0 * self._log())
        info = fit.information
        W = Z @ info.inverse_root.T  # ||w_a - w_b|| = ||z_a - z_b||_{A^-1}
        unseen = None  # what lost rewards leave open
        if info.rank < Z.shape[1]:
            outside = Z - (Z @ info.basis) @ info.basis.T
            unseen = outside / (SPAN_TOLERANCE * float(np.abs(Z).max() or 1.0))
        return compare(self._problem.sign * (Z @ fit.phi), radius * W, unseen)


@lru_cache(maxsize=256)
def survivors_design(
    arms: Arms, survivors: tuple[int, ...], relative: tuple[float, ...] | None = None
) -> tuple[Float[np.ndarray, " K"], float]:
    """Return a design for the differences of survivors, and the largest variance it leaves.

    The variance is in units of the noise to which that of each arm is `relative`. Phases often have
    the same survivors: their designs are kept.
    """
    Z, alive, m = arms.coordinates, np.array(survivors), len(survivors)
    measured = Measured.of(arms, 1.0 if relative is None else relative)
    if max(len(measured.rows), m * (m - 1) // 2) <= FEW:
        first, second = np.triu_indices(m, 1)
        Y = Z[alive[first]] - Z[alive[second]]
        light = rough_design(measured.rows, Y, TOLERANCE)[0]
        light[light < LIGHT] = 0.0
        light /= light.sum()
        value = float(information(measured.rows, light).variances(Y).max())
        if value < math.inf:
            weights = measured.shares(light)
            weights.flags.writeable = False
            return weights, value
    design = phase_design(arms, survivors, relative)
    return design.weights, design.value


def compare(
    means: Float[np.ndarray, " m"],
    points: Float[np.ndarray, "m s"],
    unseen: Float[np.ndarray, "m r"] | None = None,
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Return by how much some other arm is at least, and at most, better than each arm.

    Parameters
    ----------
    means : (m,) array
        Estimated rewards, larger is better.
    points : (m, s) array
        Such that the gap of two arms is known up to the distance of their points.
    unseen : (m, r) array, optional
        Arms that differ here, by a distance above 1, cannot be compared at all.

    Returns
    -------
    least, most : (m,) arrays

    Examples
    --------
    >>> compare(np.array([5.0, 1.0, 0.0]), np.array([[0.0], [1.0], [2.0]]))
    (array([-5.,  3.,  3.]), array([-3.,  5.,  7.]))
    """
    from scipy.spatial.distance import cdist

    means = np.where(np.isfinite(means), means, np.nan)  # of infinity nothing is known either
    least, most = np.empty(len(means)), np.empty(len(means))
    rows = max(1, PAIRS // len(means))
    for start in range(0, len(means), rows):
        block = slice(start, start + rows)
        gaps = means - means[block, None]
        itself = np.arange(len(gaps)), np.arange(start, start + len(gaps))
        gaps[itself] = -np.inf  # an arm is no rival of itself
        widths = cdist(points[block], points)
        if unseen is not None:
            widths[~(cdist(unseen[block], unseen) <= 1.0)] = np.inf
            widths[itself] = 0.0
        least[block], most[block] = (gaps - widths).max(axis=1), (gaps + widths).max(axis=1)
    return least, most
