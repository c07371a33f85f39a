"""The compiled loop of the fully adaptive strategy, cached on disk.

`run`, `plan`, `absorb` and `examine` are called from outside; the pieces they share are inlined
into them. The file uses nothing compiled of another one: the cache would not see it change. The
choice of a pull is that of `finalist.design.kernels.greedy` for the pairs of some arms.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from finalist.compiled.cache import kept

#: Values closer than this, relatively, are ties.
TIE = 1e-9
#: Gaps below this part of the means are rounding.
ROUNDING = 64 * 2.0**-52
#: What the entries of `State.progress` are.
PULLS, LEFT, WINNER = 0, 1, 2

# NaN is not assumed away: where it arises, a comparison with it is false and decides nothing.
_FLAGS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"nsz"}}
inlined = njit(inline="always", **_FLAGS)
compiled = kept(**_FLAGS)


class Rule(NamedTuple):
    """Numbers of the stopping rule that stay the same.

    Attributes
    ----------
    sign : float
        1 when large rewards are good, -1 when small ones are.
    epsilon : float
        How far the answer may be from the best.
    printed : bool
        Whether the radius is Prop. 2 as printed, or that of the determinant.
    d, growth : float
        Of Prop. 2: the dimension and L^2 / eta.
    confidence : float
        d log(1/delta) of Prop. 2, 2 log(1/delta) of the determinant.
    sigma, bias : float
        Size of the noise, and sqrt(eta) S.
    """

    sign: float
    epsilon: float
    printed: bool
    d: float
    growth: float
    confidence: float
    sigma: float
    bias: float


class State(NamedTuple):
    """What a run knows, changed in place; A = eta I + sum of w z z' over the pulls.

    Attributes
    ----------
    rule : Rule
    weight : (K,) array
        w, what a pull counts: (sigma / sigma_x)^2, or 0 for an arm that cannot be pulled.
    cross : (K, K) array
        z_i'A^-1 z_j.
    leverage : (K,) array
        z_i'A^-1 z_i.
    spread : (K, K) array
        (z_i - z_j)'A^-1 (z_i - z_j) where i < j are survivors.
    means : (K,) array
        z_i'phi_hat, the ridge estimate of every mean.
    log_det : (1,) array
        log(det A / det(eta I)).
    counts, sums : (K,) arrays
        Pulls and rewards of each arm since the last exact computation.
    alive : (K,) array of int
        The survivors in increasing order, then others.
    progress : (3,) array of int
        Pulls so far, number of survivors, winner or -1.
    row, after, total, out : (K,) arrays
        Room for one step.
    """

    rule: Rule
    weight: np.ndarray
    cross: np.ndarray
    leverage: np.ndarray
    spread: np.ndarray
    means: np.ndarray
    log_det: np.ndarray
    counts: np.ndarray
    sums: np.ndarray
    alive: np.ndarray
    progress: np.ndarray
    row: np.ndarray
    after: np.ndarray
    total: np.ndarray
    out: np.ndarray


@inlined
def radius_of(rule, n, log_det):
    """Return the radius after n pulls (Soare 2014, Prop. 2; or Abbasi-Yadkori 2011, Thm. 2)."""
    log = rule.d * math.log1p(n * rule.growth) if rule.printed else log_det
    return rule.sigma * math.sqrt(log + rule.confidence) + rule.bias


@inlined
def consider(value, tied, first, second, weight, leverage, after, total):
    """Lower-bound what every arm leaves of the worst variance by what it leaves of one pair.

    Pulling z leaves y'A^-1 y - w (z'A^-1 y)^2 / (1 + w z'A^-1 z), by the matrix inversion lemma.
    """
    for c in range(len(after)):
        dot = first[c] - second[c]
        reduction = weight[c] * (dot * dot) / (1.0 + weight[c] * leverage[c])
        left = value - reduction
        after[c] = left if left > after[c] else after[c]
        total[c] += tied * reduction


@inlined
def choose(weight, cross, leverage, spread, alive, left, after, total):
    """Return argmin_x max_y y'(A + w xx')^-1 y over all arms x and the pairs y of survivors.

    Only pairs above what the best reduction of the current worst one leaves can decide. Ties go
    to the largest total reduction over the current worst pairs, then to the first arm.
    """
    top, worst, other = -1.0, alive[0], alive[1]
    for p in range(left - 1):
        i = alive[p]
        for q in range(p + 1, left):
            j = alive[q]
            if spread[i, j] > top:
                top, worst, other = spread[i, j], i, j
    limit = top * (1.0 - TIE)
    after[:] = 0.0
    total[:] = 0.0
    consider(top, 0.0, cross[worst], cross[other], weight, leverage, after, total)
    least = after[0]
    for c in range(len(after)):
        least = after[c] if after[c] < least else least
    floor = least if least < limit else limit
    for p in range(left - 1):
        i = alive[p]
        for q in range(p + 1, left):
            j = alive[q]
            value = spread[i, j]
            if value > floor:
                tied = 1.0 if value >= limit else 0.0
                consider(value, tied, cross[i], cross[j], weight, leverage, after, total)
    least = after[0]
    for c in range(len(after)):
        least = after[c] if after[c] < least else least
    least *= 1.0 + TIE
    most = 0.0
    for c in range(len(after)):
        if after[c] <= least and total[c] > most:
            most = total[c]
    best = 0
    while after[best] > least or total[best] < most * (1.0 - TIE) or weight[best] == 0.0:
        best += 1
    return best


@inlined
def shrink(arm, weight, cross, leverage, spread, alive, left, row):
    """Add one pull of an arm to A, by a rank-one update of everything that A^-1 is in."""
    scale = weight[arm] / (1.0 + weight[arm] * leverage[arm])
    row[:] = cross[arm]
    for p in range(left - 1):
        i = alive[p]
        for q in range(p + 1, left):
            j = alive[q]
            dot = row[i] - row[j]
            value = spread[i, j] - dot * dot * scale
            spread[i, j] = 0.0 if value < 0.0 else value  # NaN stays: it is not exact
    for i in range(len(row)):
        factor = row[i] * scale
        for c in range(len(row)):
            cross[i, c] -= factor * row[c]
        leverage[i] -= factor * row[i]


@inlined
def learn(arm, reward, weight, cross, leverage, means, log_det, counts, sums, progress):
    """Move the estimate by one reward; A^-1 is still the one before the pull."""
    step = weight[arm] * (reward - means[arm]) / (1.0 + weight[arm] * leverage[arm])
    log_det[0] += math.log1p(weight[arm] * leverage[arm])
    for i in range(len(means)):
        means[i] += cross[arm, i] * step
    counts[arm] += 1
    sums[arm] += reward
    progress[PULLS] += 1


@inlined
def discard(rule, radius, means, spread, alive, progress, out):
    """Drop every survivor that another one beats surely (Soare 2014, Lemma 4)."""
    left = progress[LEFT]
    dropped = False
    for p in range(left):
        out[p] = False
    for p in range(left - 1):
        i = alive[p]
        for q in range(p + 1, left):
            j = alive[q]
            gap = rule.sign * (means[i] - means[j])
            width = radius * math.sqrt(spread[i, j])
            width += ROUNDING * (abs(means[i]) + abs(means[j]))
            if abs(gap) > width:
                out[q if gap > 0.0 else p] = True
                dropped = True
    if dropped:
        kept = 0
        for p in range(left):
            if not out[p]:
                alive[kept] = alive[p]
                kept += 1
        progress[LEFT] = kept


@inlined
def possibly_better(p, left, rule, radius, means, spread, alive):
    """Return by how much another survivor can be better than the one at place p.

    Infinity if that is not a number for one of them: then nothing is known.
    """
    i, most = alive[p], -math.inf
    for q in range(left):
        if q != p:
            j = alive[q]
            variance = spread[i, j] if i < j else spread[j, i]
            better = rule.sign * (means[j] - means[i]) + radius * math.sqrt(variance)
            if not abs(better) < math.inf:
                return math.inf
            most = better if better > most else most
    return most


@inlined
def judge(rule, means, spread, log_det, alive, progress, out):
    """Drop survivors and find out whether there is a winner."""
    radius = radius_of(rule, progress[PULLS], log_det[0])
    discard(rule, radius, means, spread, alive, progress, out)
    left = progress[LEFT]
    if left == 1:
        progress[WINNER] = alive[0]
    elif rule.epsilon > 0.0:
        least = math.inf
        for p in range(left):
            most = possibly_better(p, left, rule, radius, means, spread, alive)
            if most <= rule.epsilon and most < least:
                least = most
                progress[WINNER] = alive[p]


@compiled
def absorb(state, arm, reward):
    """Take over the reward of one pull."""
    _, weight, cross, leverage, spread, means, log_det, counts, sums, alive, progress = state[:11]
    row = state[11]
    learn(arm, reward, weight, cross, leverage, means, log_det, counts, sums, progress)
    shrink(arm, weight, cross, leverage, spread, alive, progress[LEFT], row)


@compiled
def examine(state):
    """Drop survivors and find out whether there is a winner."""
    rule, _, _, _, spread, means, log_det, _, _, alive, progress, _, _, _, out = state
    judge(rule, means, spread, log_det, alive, progress, out)


@compiled
def plan(state, picks):
    """Fill `picks` with the next pulls without new rewards; all but the last are added to A."""
    _, weight, cross, leverage, spread, _, _, _, _, alive, progress, row, after, total, _ = state
    for t in range(len(picks)):
        if t > 0:
            shrink(picks[t - 1], weight, cross, leverage, spread, alive, progress[LEFT], row)
        picks[t] = choose(weight, cross, leverage, spread, alive, progress[LEFT], after, total)


@compiled
def run(state, truth, size, binary, noise):
    """Pull until there is a winner or the noise is used up; return the number of pulls.

    A reward is the true mean plus noise times its size, or `noise < mean` if binary.
    """
    rule, weight, cross, leverage, spread, means, log_det, counts, sums, alive, progress = state[
        :11
    ]
    row, after, total, out = state[11:]
    for t in range(len(noise)):
        arm = choose(weight, cross, leverage, spread, alive, progress[LEFT], after, total)
        if binary:
            reward = 1.0 if noise[t] < truth[arm] else 0.0
        else:
            reward = truth[arm] + size[arm] * noise[t]
        learn(arm, reward, weight, cross, leverage, means, log_det, counts, sums, progress)
        shrink(arm, weight, cross, leverage, spread, alive, progress[LEFT], row)
        judge(rule, means, spread, log_det, alive, progress, out)
        if progress[WINNER] >= 0:
            return t + 1
    return len(noise)
