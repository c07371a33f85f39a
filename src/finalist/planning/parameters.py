"""Random parameters under which the best arm leads by a given gap.

How many measurements a study needs depends on the lead, and on how many others are close behind.
The lead is given; how the others lie is not known before the first measurement. So the direction of
the parameter is drawn in one of two ways, and its size follows from the lead.

Scaling to the lead is conditioning on it under p(size) = 1 / size, which prefers no size:
the integral of p(u) / s delta(s lead(u) - gap) over s is p(u) / gap, so directions u keep their
distribution.

- *All vary*, in four of five draws: uniform directions in span coordinates. The runner-up is at the
  lead, most others are farther behind.
- *One stands out*, in one of five: the mean of an arm grows with how much it has in common with one
  of them, plus a uniform direction of random weight, from a tenth to three times as much. With a
  small weight and separate arms all others are nearly tied at the lead, which takes longest.

One of five was chosen on kinds of truths (those of `benchmarks.budgets`) other than those on which
`benchmarks.plans` measures how often studies need no more than a plan says.
"""

import math
from functools import lru_cache

import numpy as np

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.problem import Problem
from finalist.shapes import Float

#: How often one arm stands out, and the weight of the random direction then, from and to.
STANDING, WEIGHTS = 0.2, (0.1, 3.0)
#: Random directions tried for one parameter.
TRIES = 200
#: A lead smaller than this fraction of the rewards has lost too many digits to be scaled.
CLEAR_LEAD = 1e-9
#: Margin of Bernoulli means from 0 and 1, so that rounding cannot cross them.
INSIDE = 1e-6


def leading(problem: Problem, gap: float, rng: np.random.Generator) -> Float[np.ndarray, " d"]:
    """Draw a parameter under which the best arm leads the second best by `gap`.

    Directions do not depend on the units of the features. Bernoulli means are centred at 1/2;
    directions for which they do not fit are drawn again.

    Parameters
    ----------
    gap : float
        Positive, in units of the reward.

    Raises
    ------
    ProblemError
        If Bernoulli means cannot be that far apart, if the features cannot express means around
        1/2, or if arms are too close to tell apart.

    Examples
    --------
    >>> from finalist.problem import Gaussian
    >>> arms = Arms([[1.0, 0.0], [0.0, 1.0], [1.0, 2.0]])
    >>> problem = Problem(arms, noise=Gaussian(1.0))
    >>> means = problem.arms.means(leading(problem, 0.5, np.random.default_rng(0)))
    >>> bool(np.isclose(np.diff(np.sort(means))[-1], 0.5))
    True
    """
    arms, binary = problem.arms, problem.noise.range == (0.0, 1.0)
    to_features = _to_features(arms)
    one = _constant(arms, to_features) if binary else np.zeros(len(to_features))
    largest = 0.0
    for _ in range(TRIES):
        theta = to_features @ _direction(problem, rng)
        means = arms.means(theta)
        lead = _lead(problem.sign * means[arms.candidate], problem.top)
        if lead <= CLEAR_LEAD * float(np.abs(means).max()):
            continue
        theta, means = theta * (gap / lead), means * (gap / lead)
        low, high = float(means.min()), float(means.max())
        if not binary:
            return np.asarray(theta)
        if high - low <= 1.0 - INSIDE:
            return np.asarray(theta + (0.5 - (low + high) / 2) * one)
        largest = max(largest, gap / (high - low))
    if largest > 0:
        raise ProblemError(
            f"gap is {gap:g}; Bernoulli means lie between 0 and 1, and the largest gap of "
            f"{TRIES} random parameters of these candidates is below {largest:.3g}. Give a "
            "smaller gap, or theta instead."
        )
    raise ProblemError(
        "the best candidates of random parameters are too close to scale their gap; leave "
        "near-duplicates out, or give theta instead of gap."
    )


def _direction(problem: Problem, rng: np.random.Generator) -> Float[np.ndarray, " r"]:
    """Draw a direction in span coordinates; its length means nothing."""
    arms = problem.arms
    uniform = rng.standard_normal(arms.rank) / math.sqrt(arms.rank)
    if rng.random() >= STANDING:
        return uniform
    Z = arms.coordinates[arms.candidate]
    some = rng.choice(len(Z), size=min(problem.top, len(Z)), replace=False)
    along = Z[some].sum(axis=0) - len(some) * Z.mean(axis=0)
    length = float(np.linalg.norm(along))
    if length == 0.0:  # a single arm
        return uniform
    weight = math.exp(rng.uniform(math.log(WEIGHTS[0]), math.log(WEIGHTS[1])))
    return np.asarray(problem.sign * along / length + weight * uniform)


def _lead(means: Float[np.ndarray, " C"], top: int = 1) -> float:
    """Return how far the best means lead the others; infinite for a single arm."""
    if len(means) == 1:
        return float("inf")
    ordered = np.partition(means, (-top - 1, -top))
    return float(ordered[-top] - ordered[-top - 1])


@lru_cache(maxsize=4)
def _to_features(arms: Arms) -> Float[np.ndarray, "d r"]:
    """Return T such that theta = T phi has X theta = Z phi; all draws of a plan share it."""
    # phi = B theta; with its columns scaled to size 1, B has a well-behaved pseudoinverse.
    B = np.array([arms.parameter_to_span(e) for e in np.eye(arms.features.shape[1])]).T
    size = np.abs(B).max(axis=0, initial=0.0)
    size = np.where(size == 0.0, 1.0, size)
    T = np.asarray(np.linalg.pinv(B / size) / size[:, None])
    T.flags.writeable = False
    return T


def _constant(arms: Arms, to_features: Float[np.ndarray, "d r"]) -> Float[np.ndarray, " d"]:
    """Return the parameter under which every arm has mean 1; refuse arms without one."""
    if not arms.has_intercept:
        raise ProblemError(
            "these features cannot express Bernoulli means around 1/2: no combination of them is "
            "the same for all arms. Add one (with_intercept), or give theta instead of gap."
        )
    phi = arms.coordinates[arms.measurable].mean(axis=0)  # least squares: Z'Z / K = I
    return np.asarray(to_features @ phi)
