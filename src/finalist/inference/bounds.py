"""Confidence widths: how far an estimated gap can be from the true one.

A width is radius * ||y||_{A^-1} for a direction y. `static_radius` holds for allocations fixed
before the rewards are seen (Soare 2014, Prop. 1); `adaptive_radius` (Prop. 2) and
`determinant_radius` (Abbasi-Yadkori et al. 2011, Thm. 2) hold for any, and so does `pooled_radius`,
which needs no bound on the parameter and multiplies another norm. `smallest_pulls` solves the
implicit equations in which the number of pulls is also inside the logarithm, and
`lower_bound_pulls` bounds what methods need that are right for every parameter. Noise is
sub-Gaussian with a known sigma.
"""

import math
from collections.abc import Callable
from typing import Literal, overload

import numpy as np

from finalist.errors import BoundError

Bound = Literal["soare", "sharp"]

#: `smallest_pulls` gives up here: no radius of this module needs so many.
_MAX_PULLS = 2**200


@overload
def static_radius(n: float, K: int, delta: float, sigma: float, bound: Bound = ...) -> float: ...
@overload
def static_radius(
    n: np.ndarray, K: int, delta: float, sigma: float, bound: Bound = ...
) -> np.ndarray: ...
def static_radius(
    n: float | np.ndarray, K: int, delta: float, sigma: float, bound: Bound = "sharp"
) -> float | np.ndarray:
    """Return the radius that holds for all n and all ordered pairs of K arms at once.

    With probability at least 1 - delta, y'(theta_hat_n - theta) <= radius(n) ||y||_{A_n^-1} for
    every n and every difference y of two arms, when the sequence of arms is fixed in advance.

    Parameters
    ----------
    n : int or array of int
        Number of pulls.
    K : int
        Number of arms.
    delta : float
        Probability of error, between 0 and 1.
    sigma : float
        Size of the noise.
    bound : "sharp" or "soare"
        "soare" is Prop. 1 as printed: 2 sqrt(2) sigma sqrt(log(c' n^2 K^2 / delta)) with
        c' = 6 / pi^2. "sharp" has the constants of the proof: the levels 6 delta / (pi^2 n^2)
        sum to delta, shared by K (K - 1) one-sided errors of a sub-Gaussian variable.

    Returns
    -------
    float or array like n

    Examples
    --------
    >>> round(static_radius(100, K=5, delta=0.05, sigma=1.0), 4)
    5.6035
    >>> round(static_radius(100, K=5, delta=0.05, sigma=1.0, bound="soare"), 4)
    10.9279
    """
    _require(np.all(np.asarray(n) >= 1), "n", n, "it is a number of pulls, 1 or more")
    scale, log = static_constants(K, delta, sigma, bound)
    # Logarithms are added: n^2 K^2 would overflow.
    radius = scale * np.sqrt(np.maximum(log + 2 * np.log(n), 0.0))
    return radius if isinstance(n, np.ndarray) else float(radius)


def static_constants(
    K: int, delta: float, sigma: float, bound: Bound = "sharp"
) -> tuple[float, float]:
    """Return the numbers with `static_radius(n)` = scale sqrt(log + 2 log n), as a loop needs them.

    Parameters
    ----------
    K, delta, sigma, bound
        As in `static_radius`.

    Returns
    -------
    scale, log : float

    Examples
    --------
    >>> scale, log = static_constants(K=5, delta=0.05, sigma=1.0)
    >>> round(scale * math.sqrt(log + 2 * math.log(100)), 4)
    5.6035
    """
    _check(delta, sigma)
    _require(K >= 1, "K", K, "it is a number of arms, 1 or more")
    if bound == "soare":  # Soare 2014, Prop. 1 and its footnote
        log = math.log(6 / math.pi**2) + 2 * math.log(K) - math.log(delta)
        return 2 * math.sqrt(2) * sigma, log
    if bound != "sharp":
        raise BoundError(f"bound is {bound!r}; it is 'sharp' or 'soare'.")
    pairs = math.log(K) + math.log(K - 1) if K > 1 else -math.inf  # none: radius 0
    return math.sqrt(2) * sigma, math.log(math.pi**2 / 6) + pairs - math.log(delta)


@overload
def adaptive_radius(
    n: float, d: int, delta: float, sigma: float, L: float, S: float, eta: float = ...
) -> float: ...
@overload
def adaptive_radius(
    n: np.ndarray, d: int, delta: float, sigma: float, L: float, S: float, eta: float = ...
) -> np.ndarray: ...
def adaptive_radius(
    n: float | np.ndarray, d: int, delta: float, sigma: float, L: float, S: float, eta: float = 1.0
) -> float | np.ndarray:
    """Return the radius for adaptively chosen arms and a ridge estimate (Soare 2014, Prop. 2).

    It multiplies ||x||_{(A + eta I)^-1}, for all directions and all n at once.

    Parameters
    ----------
    n : int or array of int
        Number of pulls.
    d : int
        Number of features, 2 or more; for one feature use `determinant_radius`.
    delta, sigma : float
        Probability of error and size of the noise.
    L : float
        Bound on the norm of an arm's features.
    S : float
        Bound on the norm of the parameter.
    eta : float, default 1.0
        The ridge.

    Examples
    --------
    >>> round(adaptive_radius(100, d=2, delta=0.05, sigma=1.0, L=1.0, S=1.0), 4)
    4.9015
    """
    _check(delta, sigma)
    _check_ridge(S, eta)
    _require(np.all(np.asarray(n) >= 0), "n", n, "it is a number of pulls")
    _require(0 <= L < math.inf, "L", L, "it bounds the norm of the features")
    if d < 2:
        # 2 log(1/delta) <= d log(1/delta) is a step of the proof.
        raise BoundError(f"d is {d}; Prop. 2 as printed needs 2 or more. Use determinant_radius.")
    radius = sigma * np.sqrt(d * (np.log1p(n * (L * L) / eta) - math.log(delta)))
    radius = radius + math.sqrt(eta) * S
    return radius if isinstance(n, np.ndarray) else float(radius)


def determinant_radius(
    log_det_ratio: float, delta: float, sigma: float, S: float, eta: float = 1.0
) -> float:
    """Return the radius for adaptively chosen arms from the determinant of the design matrix.

    Abbasi-Yadkori, Pal and Szepesvari 2011, Thm. 2, of which `adaptive_radius` is a bound: never
    larger for two or more features, and valid for one.

    Parameters
    ----------
    log_det_ratio : float
        log(det(A + eta I) / det(eta I)), `Estimate.log_det_ratio()`.
    delta, sigma, S, eta : float
        As in `adaptive_radius`.

    Examples
    --------
    >>> round(determinant_radius(2 * np.log(51.0), delta=0.05, sigma=1.0, S=1.0), 4)
    4.7222
    """
    _check(delta, sigma)
    _check_ridge(S, eta)
    _require(0 <= log_det_ratio < math.inf, "log_det_ratio", log_det_ratio, "it is 0 or more")
    return sigma * math.sqrt(log_det_ratio - 2 * math.log(delta)) + math.sqrt(eta) * S


def pooled_radius(log_det_ratio: float, delta: float, sigma: float) -> float:
    """Return the radius for all pulls together, however each was chosen from the past.

    Let A_0 be positive definite and fixed in advance: no pull need be behind it. With probability
    at least 1 - delta, for all directions y and all times at which A is regular,

        |y'(theta_hat - theta)| <= radius sqrt(y'A^-1 y + y'A^-1 A_0 A^-1 y).

    For S the sum of x e over all pulls, theta_hat - theta = A^-1 S, and exp(u'S/sigma - u'Au/2) is
    a supermartingale for every u. Its mixture over u ~ N(0, A_0^-1) exceeds 1/delta with
    probability at most delta, which bounds S'(A + A_0)^-1 S by sigma^2 (log(det(A + A_0) / det A_0)
    + 2 log(1/delta)) at all times (method of mixtures; Abbasi-Yadkori et al. 2011, Thm. 1). The
    Cauchy-Schwarz inequality does the rest. The noise may be sub-Gaussian.

    Parameters
    ----------
    log_det_ratio : float
        log(det(A + A_0) / det A_0).
    delta, sigma : float
        Probability of error and size of the noise.

    Examples
    --------
    >>> round(pooled_radius(3.0, delta=0.05, sigma=1.0), 3)  # sqrt(3 + 2 log 20)
    2.999
    """
    _check(delta, sigma)
    _require(0 <= log_det_ratio < math.inf, "log_det_ratio", log_det_ratio, "it is 0 or more")
    return sigma * math.sqrt(log_det_ratio - 2.0 * math.log(delta))


def pooled_level(log_det_ratio: float, z: float) -> float:
    """Return the smallest delta at which `pooled_radius` for sigma 1 is at most z; 1 if none is.

    It is the always-valid p-value of an estimate that is z units away: the radius grows as delta
    falls, so the intervals of all levels hold together.

    Examples
    --------
    >>> round(pooled_level(3.0, z=pooled_radius(3.0, 0.05, 1.0)), 6)
    0.05
    >>> pooled_level(3.0, z=1.7)
    1.0
    """
    z = min(z, 1e100)  # beyond it nothing changes, and its square is a number
    if not z > 0.0:
        return 1.0
    return math.exp(-min(max(z * z - log_det_ratio, 0.0), 1400.0) / 2.0)


def smallest_pulls(h: float, radius: Callable[[float], float]) -> int:
    """Return the smallest n >= 1 with h radius(n)^2 <= n.

    This is the equation N* = c^2 H_LB log_n(K^2 / delta) of Soare 2014, Sect. 3. The square of
    the radius must be concave in n, as a constant plus a logarithm is. Then h radius(n)^2 <= n
    holds either at once for n = 1, which is then the answer even if some larger n fail, or from
    the answer on for ever.

    Parameters
    ----------
    h : float
        A complexity such as H_LB.
    radius : callable
        Radius for n pulls.

    Examples
    --------
    >>> smallest_pulls(200.0, lambda n: static_radius(n, K=5, delta=0.05, sigma=1.0))
    9961
    """
    _require(0 <= h < math.inf, "h", h, "it is finite, 0 or more")

    def holds(n: int) -> bool:
        return h * radius(float(n)) ** 2 <= n

    if holds(1):
        return 1
    low, high = 1, 2
    while not holds(high):
        low, high = high, 2 * high
        if high > _MAX_PULLS:
            raise BoundError(f"no number of pulls satisfies h radius(n)^2 <= n for h = {h}.")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def likely_sigma(variance: float, freedom: int) -> float:
    """Return the upper 99 % confidence bound for sigma from residuals.

    freedom * variance / sigma^2 is chi-square for Gaussian noise.

    Examples
    --------
    >>> round(likely_sigma(1.0, 10), 3)
    1.977
    """
    from scipy.special import chdtri

    return math.sqrt(variance * freedom / float(chdtri(freedom, 0.99)))


def kl_bernoulli(p: float, q: float) -> float:
    """Return the relative entropy of coins with probabilities p and q.

    Examples
    --------
    >>> round(kl_bernoulli(0.05, 0.95), 4)
    2.65
    """
    _require(0 <= p <= 1, "p", p, "it is a probability")
    _require(0 <= q <= 1, "q", q, "it is a probability")
    if (q == 0 and p > 0) or (q == 1 and p < 1):
        return math.inf
    heads = p * (math.log(p) - math.log(q)) if p > 0 else 0.0
    tails = (1 - p) * (math.log1p(-p) - math.log1p(-q)) if p < 1 else 0.0
    return max(heads + tails, 0.0)


def lower_bound_pulls(t_star: float, delta: float) -> float:
    """Return T* kl(delta, 1 - delta), the least mean pulls of a delta-correct method.

    Garivier and Kaufmann 2016, Thm. 1; T* = 2 sigma^2 H_LB in the Gaussian linear model. It binds
    methods that are wrong with probability at most delta for *every* theta, and their expected
    pulls: single runs may be shorter, and a method that is told theta, or how far the best arm
    leads, is not bound. For delta >= 1/2 the bound is 0, because guessing may do.

    Examples
    --------
    >>> round(lower_bound_pulls(100.0, delta=0.05), 1)
    265.0
    """
    _check(delta, sigma=1.0)
    _require(0 <= t_star < math.inf, "t_star", t_star, "it is finite, 0 or more")
    if delta >= 0.5:
        return 0.0
    # kl(delta, 1 - delta), written so that 1 - delta need not be a float below 1.
    return t_star * (1 - 2 * delta) * (math.log1p(-delta) - math.log(delta))


def _require(condition: object, name: str, value: object, meaning: str) -> None:
    if not condition:
        raise BoundError(f"{name} is {value}; {meaning}.")


def _check(delta: float, sigma: float) -> None:
    _require(0 < delta < 1, "delta", delta, "it is a probability of error between 0 and 1")
    _require(0 < sigma < math.inf, "sigma", sigma, "it is the size of the noise, positive")


def _check_ridge(S: float, eta: float) -> None:
    _require(0 <= S < math.inf, "S", S, "it bounds the norm of the parameter")
    _require(0 < eta < math.inf, "eta", eta, "it is the ridge, positive")
