r"""The pair limit: how often any method must be wrong after T pulls, for the hardest rival.

Let x* be the best candidate under theta, x_j another, y = x* - x_j and gap = y'theta > 0, and let

    rho = min { sum_i s_i |a_i| : sum_i a_i x_i = y }                                          (1)
        = max { y'u : |x_i'u| <= s_i for every arm i that can be pulled },                     (2)

s_i being sigma of arm i; (2) is the dual linear program of (1). With u from (2) let

    theta' = theta - (2 gap / rho) u,

so that y'theta' = -gap: under theta' x_j is ahead of x* by as much as it was behind. No theta'
with this property is nearer: max_i |x_i'(theta - theta')| / s_i is at least 2 gap / rho, by (1).

**Limit.** For any rule, adaptive and randomised as it may be, that names an arm after T pulls with
Gaussian noise, the mean of its error probabilities under theta and theta' is at least

    Phi(-gap sqrt(T) / rho).

Proof. Let D = 2 gap / rho and d_i = x_i'(theta - theta') / s_i, so that |d_i| <= D. A pull of arm i
can be made from one W ~ N(h D / 2, 1), h = +1 under theta and -1 under theta', and from a normal
variable N of one's own:

    s_i ((d_i / D) W + sqrt(1 - (d_i / D)^2) N) + x_i'(theta + theta') / 2

has mean x_i'theta or x_i'theta' and standard deviation s_i. So whoever is given W_1, ..., W_T,
which are independent, can carry out the rule without any other pull; it does not matter that the
rule chooses i by what came before. Say "theta" if it names x*. Under theta this is wrong with the
error probability of the rule, under theta' with at most that, because x* is not best there. No test
of h from W_1, ..., W_T has a mean error below that of the likelihood ratio, the sign of their sum
(Neyman and Pearson 1933), and this one is Phi(-D sqrt(T) / 2).

The limit is on the mean of two errors: always to name x* is never wrong under theta. It is attained
against one rival, by pulling arm i in the proportions s_i |a_i| of (1), with which y'theta is
estimated with variance rho^2 / T; it is far too low where many arms may be better. What T pulls may
cost besides, or several at once, does not enter. Bernoulli rewards are refused: they cannot be made
from W.
"""

import math
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from finalist.arms import Arms
from finalist.complexity.gaps import best_and_gaps
from finalist.errors import ProblemError
from finalist.problem import UNSET, Feature, Gaussian, Problem, Unset, as_problem
from finalist.problem.values import PerArm
from finalist.settings import ProblemWords, spelled_out
from finalist.shapes import Float

#: What the limit is proven for.
SUPPORTED: frozenset[Feature] = frozenset(
    {"minimise", "sub-gaussian", "sigma per arm", "other candidates"}
)


@dataclass(frozen=True)
class PairLimit:
    """The rival that is hardest to tell from the best candidate. Made by `pair_limit`.

    Attributes
    ----------
    best, rival : int
        Indices of the two among the arms of the problem.
    gap : float
        How much worse the rival is.
    rho : float
        How hard the two are to compare, in units of the rewards: the least sum of sigma abs(a_i)
        over all ways to write their difference as the sum of a_i x_i. Rounded down by what the
        linear program's tolerance may be, so that the limit is not too high.
    """

    best: int
    rival: int
    gap: float
    rho: float

    def error(self, budget: float) -> float:
        """Return the limit on the error after so many pulls, Phi(-gap sqrt(budget) / rho).

        Examples
        --------
        >>> limit = PairLimit(best=0, rival=1, gap=0.5, rho=2.0)
        >>> round(limit.error(64), 4)  # Phi(-2)
        0.0228
        """
        if not (isinstance(budget, int | float | np.integer) and 0 <= budget < math.inf):
            raise ProblemError(f"budget is {budget!r}; it is a number of pulls, 0 or more.")
        return float(ndtr(-self.gap * math.sqrt(budget) / self.rho))


@spelled_out
def pair_limit(
    arms: Arms | Problem,
    theta: ArrayLike,
    sigma: PerArm | Unset | None = UNSET,
    **words: Unpack[ProblemWords],
) -> PairLimit:
    """Find how rarely any method can be wrong after a fixed number of pulls.

    The mean error of a method, whatever it is, under theta and under a parameter nearby at which
    a rival leads the best candidate by as much as it was behind, is at least `error(T)` after T
    pulls. The module has the proof. The rival is the one for which this is most.

    Parameters
    ----------
    arms : Arms or Problem
        The arms, with the settings in `words`; or the problem, which has its own sigma.
    theta : (d,) array-like
        The parameter; the expected reward of an arm is x'theta.
    sigma : float or (K,) sequence
        Size of the noise; has to be given.
    **words
        Settings of the problem, as in `Problem`: `objective`, `candidates`. What has no proof is
        refused.

    Returns
    -------
    PairLimit

    Raises
    ------
    TiedArmsError
        When two candidates are best.

    Examples
    --------
    >>> import finalist as fl
    >>> limit = fl.pair_limit(fl.Arms.unstructured(["a", "b", "c"]), [1.0, 0.5, 0.0], sigma=1.0)
    >>> limit.rival, limit.rho, round(limit.error(100), 4)  # Phi(-0.5 sqrt(100) / 2)
    (1, 2.0, 0.0062)
    """
    problem = (
        as_problem(arms, **words)
        if isinstance(arms, Problem)
        else as_problem(arms, sigma=sigma, **words)
    )
    problem.refuse_unsupported("the pair limit", SUPPORTED)
    scale, candidates = problem.sigmas, np.flatnonzero(problem.arms.candidate)
    if len(candidates) == 1:
        raise ProblemError("there is one candidate; a pair limit needs another one.")
    among = Problem(problem.candidates, noise=Gaussian(1.0), objective=problem.objective)
    first, gaps = best_and_gaps(among, np.asarray(theta, dtype=float))
    usable, Z = problem.arms.measurable, problem.arms.coordinates
    # Both can be pulled: the difference itself is one way to write it.
    direct = np.where(usable, scale, np.inf)[candidates]
    most = direct[first] + direct
    found, closest = None, math.inf
    with np.errstate(invalid="ignore"):
        order = np.argsort(gaps / most, kind="stable")
    for j in order[order != first]:
        if gaps[j] / most[j] >= closest:  # so for all that follow
            break
        rho = cheapest_difference(Z[usable], scale[usable], Z[candidates[first]] - Z[candidates[j]])
        if gaps[j] / rho < closest:
            closest = gaps[j] / rho
            pair = int(candidates[first]), int(candidates[j])
            found = PairLimit(*pair, float(gaps[j]), rho)
    assert found is not None
    return found


def cheapest_difference(
    Z: Float[np.ndarray, "k r"], scale: Float[np.ndarray, " k"], y: Float[np.ndarray, " r"]
) -> float:
    """Return rho of (1) for the direction y, from its dual (2), rounded down to be feasible.

    Parameters
    ----------
    Z : (k, r) array
        The arms that can be pulled.
    scale : (k,) array
        Their noise.
    y : (r,) array
        In the span of the arms.

    Examples
    --------
    >>> Z = np.eye(2)
    >>> cheapest_difference(Z, np.array([1.0, 2.0]), np.array([1.0, -1.0]))
    3.0
    """
    from scipy.optimize import linprog

    length, unit = float(np.linalg.norm(y)), float(scale.max())
    rows = Z * (unit / scale)[:, None]
    solved = linprog(
        -y / length,
        A_ub=np.vstack([rows, -rows]),
        b_ub=np.ones(2 * len(rows)),
        bounds=(None, None),
        method="highs",
    )
    if solved.x is None:
        raise ProblemError(
            f"the pair limit cannot be computed: {solved.message} The arms are too close to tell "
            "apart; leave near-duplicates out."
        )
    reach = max(float(np.abs(rows @ solved.x).max()), 1.0)
    return float(y @ solved.x) * unit / reach
