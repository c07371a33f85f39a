"""The compiled loop of lazy track-and-stop, cached on disk.

`plan`, `absorb`, `examine` and `run` are called from outside; the pieces they share are inlined
into them. The file uses nothing compiled of another one: the cache would not see it change.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from finalist.compiled.cache import kept

#: Eigenvalues often equal what they are compared with exactly; the last digits must not decide.
SLACK = 1e-9
#: Gaps below this part of the means are rounding.
ROUNDING = 64 * 2.0**-52
#: What the entries of `State.progress` are.
PULLS, FORCED, SPANS, BEST, WINNER = 0, 1, 2, 3, 4

# NaN is not assumed away: where it arises, a comparison with it is false and decides nothing.
_FLAGS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"nsz"}}
inlined = njit(inline="always", **_FLAGS)
compiled = kept(**_FLAGS)


class Rule(NamedTuple):
    """Numbers of the rules that stay the same.

    Attributes
    ----------
    sign : float
        1 when large rewards are good, -1 when small ones are.
    epsilon : float
        How far the answer may be from the best.
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
    rule : Rule
    Z : (K, r) array
        The arms.
    weight : (K,) array
        w, what a pull counts: (sigma / sigma_x)^2, or 0 for an arm that cannot be pulled.
    who : (m,) array of int
        The candidates.
    basis : (r,) array of int
        The spanning arms A_0.
    A, inverse, damped : (r, r) arrays
        A, A^-1 and (A + u c I)^-1.
    log_det : (1,) array
        log det(A / (u c) + I).
    least : (1,) array
        A lower bound of lambda_min(A).
    means : (K,) array
        The estimate of every mean.
    spread : (K,) array
        (z - z_b)'A^-1 (z - z_b) for the arm z that looks best.
    weights, total : (K,) arrays
        The allocation now, and the sum of those of all times before.
    pulled : (K,) array of int
        All pulls of each arm.
    counts, sums : (K,) arrays
        Pulls and rewards of each arm since the last exact computation.
    progress : (5,) array of int
        Pulls; forced ones among them; 1 once the pulled arms span; the arm of `spread` or -1;
        winner or -1.
    product, row : (r,) and (K,) arrays
        Room for one step.
    """

    rule: Rule
    Z: np.ndarray
    weight: np.ndarray
    who: np.ndarray
    basis: np.ndarray
    A: np.ndarray
    inverse: np.ndarray
    damped: np.ndarray
    log_det: np.ndarray
    least: np.ndarray
    means: np.ndarray
    spread: np.ndarray
    weights: np.ndarray
    total: np.ndarray
    pulled: np.ndarray
    counts: np.ndarray
    sums: np.ndarray
    progress: np.ndarray
    product: np.ndarray
    row: np.ndarray


@inlined
def at_least(level, A, least):
    """Tell whether lambda_min(A) reaches a level. It never falls, so the last value often says."""
    wanted = level * (1.0 - SLACK)
    if least[0] < wanted:
        least[0] = np.linalg.eigvalsh(A)[0]
    return least[0] >= wanted


@inlined
def choose(rule, basis, A, least, weights, total, pulled, progress):
    """Return the next arm, forced or tracking (Jedra and Proutiere 2020, Alg. 1)."""
    t = progress[PULLS]
    if t > 0:
        for a in range(len(total)):
            total[a] += weights[a]
    if t < len(basis) or not at_least(rule.force * math.sqrt(t), A, least):
        arm = basis[progress[FORCED] % len(basis)]
        progress[FORCED] += 1
        return arm
    arm, lowest = 0, math.inf
    for a in range(len(total)):
        if total[a] > 0.0 and pulled[a] - total[a] < lowest:
            arm, lowest = a, pulled[a] - total[a]
    return arm


@inlined
def count(arm, Z, weight, A, pulled, progress):
    """Add one pull to A and to the pulls."""
    for i in range(len(A)):
        for j in range(len(A)):
            A[i, j] += weight[arm] * (Z[arm, i] * Z[arm, j])
    pulled[arm] += 1
    progress[PULLS] += 1


@inlined
def shrink(arm, Z, weight, inverse, product):
    """Add one pull to a matrix by a rank-one update of its inverse; return w z'(inverse)z before.

    The product of the old inverse and z is left in `product`.
    """
    r = len(product)
    leverage = 0.0
    for i in range(r):
        dot = 0.0
        for j in range(r):
            dot += inverse[i, j] * Z[arm, j]
        product[i] = dot
        leverage += dot * Z[arm, i]
    leverage *= weight[arm]
    scale = weight[arm] / (1.0 + leverage)
    for i in range(r):
        factor = scale * product[i]
        for j in range(r):
            inverse[i, j] -= factor * product[j]
    return leverage


@inlined
def learn(arm, reward, Z, weight, inverse, damped, log_det, means, spread, progress, product, row):
    """Move the estimate, the variances and the determinant by one pull."""
    log_det[0] += math.log1p(shrink(arm, Z, weight, damped, product))
    scale = weight[arm] / (1.0 + shrink(arm, Z, weight, inverse, product))
    step = (reward - means[arm]) * scale
    for b in range(len(row)):
        dot = 0.0
        for i in range(len(product)):
            dot += Z[b, i] * product[i]
        row[b] = dot
        means[b] += dot * step
    best = progress[BEST]
    if best >= 0:
        for b in range(len(row)):
            dot = row[best] - row[b]
            left = spread[b] - dot * dot * scale
            spread[b] = 0.0 if left < 0.0 else left  # NaN stays: it is not exact


@inlined
def measure(best, Z, inverse, spread, product):
    """Write the variances of the differences between one arm and all others."""
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
def judge(rule, Z, who, A, inverse, log_det, least, means, spread, progress, product):
    """Find out whether the arm that looks best beats every other one."""
    if progress[SPANS] == 0:
        return
    best = who[0]
    for p in range(len(who)):
        if rule.sign * means[who[p]] > rule.sign * means[best]:
            best = who[p]
    if best != progress[BEST]:
        measure(best, Z, inverse, spread, product)
        progress[BEST] = best
    twice = 2.0 * threshold(rule, progress[PULLS], log_det[0])
    if not twice >= 0.0:
        return
    for p in range(len(who)):
        b = who[p]
        if b != best:
            gap = rule.sign * (means[best] - means[b]) + rule.epsilon
            gap -= ROUNDING * (abs(means[best]) + abs(means[b]))
            if not (gap > 0.0 and gap * gap > twice * spread[b]):  # false for NaN
                return
    if at_least(rule.enough, A, least):
        progress[WINNER] = best


@compiled
def plan(state, picks):
    """Fill `picks` with the next pulls without new rewards, and count them in the state."""
    rule, Z, weight, basis, A = state.rule, state.Z, state.weight, state.basis, state.A
    least, weights, total = state.least, state.weights, state.total
    pulled, progress = state.pulled, state.progress
    for t in range(len(picks)):
        picks[t] = choose(rule, basis, A, least, weights, total, pulled, progress)
        count(picks[t], Z, weight, A, pulled, progress)


@compiled
def absorb(state, arm, reward):
    """Take over the reward of one pull."""
    Z, weight, A, inverse, damped = state.Z, state.weight, state.A, state.inverse, state.damped
    log_det, means, spread, progress = state.log_det, state.means, state.spread, state.progress
    count(arm, Z, weight, A, state.pulled, progress)
    state.counts[arm] += 1
    state.sums[arm] += reward
    if progress[SPANS] == 1:
        learn(
            arm, reward, Z, weight, inverse, damped, log_det, means, spread, progress,
            state.product, state.row,
        )  # fmt: skip


@compiled
def examine(state):
    """Find out whether there is a winner."""
    A, inverse, log_det, least = state.A, state.inverse, state.log_det, state.least
    means, spread, progress, product = state.means, state.spread, state.progress, state.product
    judge(
        state.rule, state.Z, state.who, A, inverse, log_det, least, means, spread, progress, product
    )


@compiled
def run(state, truth, size, binary, noise):
    """Pull until there is a winner or the noise is used up; return the number of pulls.

    The pulled arms span already. A reward is the true mean plus noise times its size, or
    `noise < mean` if binary.
    """
    rule, Z, weight, who, basis, A, inverse, damped, log_det, least = state[:10]
    means, spread, weights, total, pulled, counts, sums = state[10:17]
    progress, product, row = state[17:]
    for t in range(len(noise)):
        arm = choose(rule, basis, A, least, weights, total, pulled, progress)
        if binary:
            reward = 1.0 if noise[t] < truth[arm] else 0.0
        else:
            reward = truth[arm] + size[arm] * noise[t]
        count(arm, Z, weight, A, pulled, progress)
        counts[arm] += 1
        sums[arm] += reward
        learn(
            arm, reward, Z, weight, inverse, damped, log_det, means, spread, progress, product, row
        )
        judge(rule, Z, who, A, inverse, log_det, least, means, spread, progress, product)
        if progress[WINNER] >= 0:
            return t + 1
    return len(noise)
