"""The compiled loop of lazy track-and-stop.

`plan`, `absorb`, `examine` and `run` are called from outside.
"""

import math
from typing import NamedTuple

import numpy as np

from finalist.shapes import Float, Int
from finalist.strategies.per_pull.kernels.common import (
    PULLS,
    ROUNDING,
    WINNER,
    allocating,
    compiled,
    entry,
    inlined,
    runner,
)

#: Eigenvalues often equal what they are compared with exactly; the last digits must not decide.
SLACK = 1e-9
#: Further entries of `State.progress`: forced pulls; 1 once the pulled arms span; the arm of
#: `spread` or -1.
FORCED, SPANS, BEST = 2, 3, 4


class Rule(NamedTuple):
    """Numbers of the rules; `sign` and `epsilon` are in `common`.

    Attributes
    ----------
    proven : bool
        Whether the threshold is that of the determinant, or log((1 + log t) / delta).
    scale : float
        (1 + u) sigma^2 of the threshold, or sigma^2.
    confidence : float
        log(1 / delta).
    force : float
        c_A0 of the forced exploration: it keeps lambda_min(A) about c_A0 sqrt(t).
    enough : float
        The smallest lambda_min(A) at which to stop.
    """

    sign: float
    epsilon: float
    proven: bool
    scale: float
    confidence: float
    force: float
    enough: float


class State(NamedTuple):
    """What a run knows, changed in place; A is the sum of w z z' over the pulls.

    Attributes
    ----------
    rule, Z, weight, who, means, counts, sums, pulled
        See `common`.
    basis : (r,) array of int
        The spanning arms A_0.
    A, inverse, damped : (r, r) arrays
        A, A^-1 and (A + u c I)^-1.
    log_det : (1,) array
        log det(A / (u c) + I).
    least : (1,) array
        A lower bound of lambda_min(A).
    spread : (K,) array
        (z - z_b)'A^-1 (z - z_b) for the arm z that looks best.
    weights, total : (K,) arrays
        The allocation now, and the sum of those of all times before.
    progress : (5,) array of int
        Pulls so far, winner or -1, and what `FORCED` and the others say.
    product, row : (r,) and (K,) arrays
        Room for one step.
    """

    rule: Rule
    Z: Float[np.ndarray, "K r"]
    weight: Float[np.ndarray, " K"]
    who: Int[np.ndarray, " m"]
    basis: Int[np.ndarray, " r"]
    A: Float[np.ndarray, "r r"]
    inverse: Float[np.ndarray, "r r"]
    damped: Float[np.ndarray, "r r"]
    log_det: Float[np.ndarray, " 1"]
    least: Float[np.ndarray, " 1"]
    means: Float[np.ndarray, " K"]
    spread: Float[np.ndarray, " K"]
    weights: Float[np.ndarray, " K"]
    total: Float[np.ndarray, " K"]
    pulled: Int[np.ndarray, " K"]
    counts: Int[np.ndarray, " K"]
    sums: Float[np.ndarray, " K"]
    progress: Int[np.ndarray, " 5"]
    product: Float[np.ndarray, " r"]
    row: Float[np.ndarray, " K"]


@allocating
def smallest_eigenvalue(A):
    """Return the smallest eigenvalue of a symmetric matrix, by LAPACK."""
    return np.linalg.eigvalsh(A)[0]


@inlined
def at_least(s, level):
    """Tell whether lambda_min(A) reaches a level; it never falls, so the last value often says."""
    wanted, least = level * (1.0 - SLACK), s.least
    if least[0] < wanted:
        least[0] = smallest_eigenvalue(s.A)
    return least[0] >= wanted


@inlined
def choose(s):
    """Return the next arm, forced or tracking (Jedra and Proutiere 2020, Alg. 1)."""
    basis, weights, total = s.basis, s.weights, s.total
    pulled, progress = s.pulled, s.progress
    t = progress[PULLS]
    if t > 0:
        for a in range(len(total)):
            total[a] += weights[a]
    if t < len(basis) or not at_least(s, s.rule.force * math.sqrt(t)):
        arm = basis[progress[FORCED] % len(basis)]
        progress[FORCED] += 1
        return arm
    arm, lowest = 0, math.inf
    for a in range(len(total)):
        if total[a] > 0.0 and pulled[a] - total[a] < lowest:
            arm, lowest = a, pulled[a] - total[a]
    return arm


@inlined
def count(s, arm):
    """Add one pull to A and to the pulls."""
    A, Z, w = s.A, s.Z, s.weight[arm]
    for i in range(len(A)):
        for j in range(len(A)):
            A[i, j] += w * (Z[arm, i] * Z[arm, j])
    s.pulled[arm] += 1
    s.progress[PULLS] += 1


@inlined
def shrink(s, inverse, arm):
    """Add one pull to a matrix by a rank-one update of its inverse; return w z'(inverse)z before.

    The product of the old inverse and z is left in `product`.
    """
    Z, product, w = s.Z, s.product, s.weight[arm]
    r = len(product)
    leverage = 0.0
    for i in range(r):
        dot = 0.0
        for j in range(r):
            dot += inverse[i, j] * Z[arm, j]
        product[i] = dot
        leverage += dot * Z[arm, i]
    leverage *= w
    scale = w / (1.0 + leverage)
    for i in range(r):
        factor = scale * product[i]
        for j in range(r):
            inverse[i, j] -= factor * product[j]
    return leverage


@inlined
def move(s, arm, reward):
    """Update the estimate, the variances and the determinant by one pull."""
    Z, means, spread, product, row = s.Z, s.means, s.spread, s.product, s.row
    s.log_det[0] += math.log1p(shrink(s, s.damped, arm))
    scale = s.weight[arm] / (1.0 + shrink(s, s.inverse, arm))
    step = (reward - means[arm]) * scale
    for b in range(len(row)):
        dot = 0.0
        for i in range(len(product)):
            dot += Z[b, i] * product[i]
        row[b] = dot
        means[b] += dot * step
    best = s.progress[BEST]
    if best >= 0:
        for b in range(len(row)):
            dot = row[best] - row[b]
            left = spread[b] - dot * dot * scale
            spread[b] = 0.0 if left < 0.0 else left  # NaN stays: it is not exact


@inlined
def learn(s, arm, reward):
    """Update the state by the reward of one pull; the estimate only once the pulled arms span."""
    count(s, arm)
    s.counts[arm] += 1
    s.sums[arm] += reward
    if s.progress[SPANS] == 1:
        move(s, arm, reward)


@inlined
def measure(s, best):
    """Write the variances of the differences between one arm and all others."""
    Z, inverse, spread, product = s.Z, s.inverse, s.spread, s.product
    r = len(product)
    for b in range(len(spread)):
        spread[b] = 0.0
        for i in range(r):
            product[i] = Z[best, i] - Z[b, i]
        for i in range(r):
            dot = 0.0
            for j in range(r):
                dot += inverse[i, j] * product[j]
            spread[b] += dot * product[i]
        if spread[b] < 0.0:
            spread[b] = 0.0


@inlined
def threshold(rule, t, log_det):
    """Return beta(delta, t) of the stopping rule, or one without proof."""
    log = 0.5 * log_det if rule.proven else math.log1p(math.log(t))
    return rule.scale * (log + rule.confidence)


@inlined
def judge(s):
    """Find out whether the arm that looks best beats every other one."""
    rule, who, means, spread, progress = s.rule, s.who, s.means, s.spread, s.progress
    if progress[SPANS] == 0:
        return
    best = who[0]
    for p in range(len(who)):
        if rule.sign * means[who[p]] > rule.sign * means[best]:
            best = who[p]
    if best != progress[BEST]:
        measure(s, best)
        progress[BEST] = best
    twice = 2.0 * threshold(rule, progress[PULLS], s.log_det[0])
    if not twice >= 0.0:
        return
    for p in range(len(who)):
        b = who[p]
        if b != best:
            gap = rule.sign * (means[best] - means[b]) + rule.epsilon
            gap -= ROUNDING * (abs(means[best]) + abs(means[b]))
            if not (gap > 0.0 and gap * gap > twice * spread[b]):  # false for NaN
                return
    if at_least(s, rule.enough):
        progress[WINNER] = best


@compiled
def plan(state, picks):
    """Fill `picks` with the next pulls without new rewards, and count them in the state."""
    for t in range(len(picks)):
        picks[t] = choose(state)
        count(state, picks[t])


absorb, examine = entry(learn), entry(judge)
run = runner(choose, learn, judge)  # called once the pulled arms span
