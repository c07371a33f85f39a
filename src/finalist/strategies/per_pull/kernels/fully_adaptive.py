"""The compiled loop of the fully adaptive strategy.

`run`, `plan`, `absorb` and `examine` are called from outside. The choice of a pull is that of
`finalist.design.kernels.greedy` for the pairs of some arms.
"""

import math
from typing import NamedTuple

import numpy as np

from finalist.shapes import Bool, Float, Int
from finalist.strategies.per_pull.kernels.common import (
    PULLS,
    ROUNDING,
    TIE,
    WINNER,
    entry,
    inlined,
    move_estimate,
    planner,
    runner,
)

#: One more entry of `State.progress`: the number of survivors.
LEFT = 2


class Rule(NamedTuple):
    """Numbers of the stopping rule; `sign` and `epsilon` are in `common`.

    Attributes
    ----------
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
    """What a run knows, changed in place.

    Attributes
    ----------
    rule, weight, cross, leverage, means, log_det, counts, sums
        See `common`.
    spread : (K, K) array
        (z_i - z_j)'A^-1 (z_i - z_j) where i < j are survivors.
    alive : (K,) array of int
        The survivors in increasing order, then others.
    progress : (3,) array of int
        Pulls so far, winner or -1, number of survivors.
    row, after, total, out : (K,) arrays
        Room for one step.
    """

    rule: Rule
    weight: Float[np.ndarray, " K"]
    cross: Float[np.ndarray, "K K"]
    leverage: Float[np.ndarray, " K"]
    spread: Float[np.ndarray, "K K"]
    means: Float[np.ndarray, " K"]
    log_det: Float[np.ndarray, " 1"]
    counts: Int[np.ndarray, " K"]
    sums: Float[np.ndarray, " K"]
    alive: Int[np.ndarray, " K"]
    progress: Int[np.ndarray, " 3"]
    row: Float[np.ndarray, " K"]
    after: Float[np.ndarray, " K"]
    total: Float[np.ndarray, " K"]
    out: Bool[np.ndarray, " K"]


@inlined
def radius_of(rule, n, log_det):
    """Return the radius after n pulls (Soare 2014, Prop. 2; or Abbasi-Yadkori 2011, Thm. 2)."""
    log = rule.d * math.log1p(n * rule.growth) if rule.printed else log_det
    return rule.sigma * math.sqrt(log + rule.confidence) + rule.bias


@inlined
def consider(s, i, j, value, tied):
    """Lower-bound what every arm leaves of the worst variance by what it leaves of one pair.

    Pulling z leaves y'A^-1 y - w (z'A^-1 y)^2 / (1 + w z'A^-1 z), by the matrix inversion lemma.
    """
    first, second, after, total = s.cross[i], s.cross[j], s.after, s.total
    weight, leverage = s.weight, s.leverage
    for c in range(len(after)):
        dot = first[c] - second[c]
        reduction = weight[c] * (dot * dot) / (1.0 + weight[c] * leverage[c])
        left = value - reduction
        after[c] = left if left > after[c] else after[c]
        total[c] += tied * reduction


@inlined
def smallest(values):
    """Return the least of some numbers."""
    least = values[0]
    for c in range(len(values)):
        least = values[c] if values[c] < least else least
    return least


@inlined
def choose(s):
    """Return argmin_x max_y y'(A + w xx')^-1 y over all arms x and the pairs y of survivors.

    Only pairs above what the best reduction of the current worst one leaves can decide. Ties go
    to the largest total reduction over the current worst pairs, then to the first arm.
    """
    weight, spread, alive, after, total = s.weight, s.spread, s.alive, s.after, s.total
    left = s.progress[LEFT]
    top, worst, other = -1.0, alive[0], alive[1]
    for p in range(left - 1):
        i = alive[p]
        for q in range(p + 1, left):
            j = alive[q]
            if spread[i, j] > top:
                top, worst, other = spread[i, j], i, j
    limit = top * (1.0 - TIE)
    for c in range(len(after)):
        after[c] = total[c] = 0.0
    consider(s, worst, other, top, 0.0)
    least = smallest(after)
    floor = least if least < limit else limit
    for p in range(left - 1):
        i = alive[p]
        for q in range(p + 1, left):
            j = alive[q]
            value = spread[i, j]
            if value > floor:
                consider(s, i, j, value, 1.0 if value >= limit else 0.0)
    least = smallest(after) * (1.0 + TIE)
    most = 0.0
    for c in range(len(after)):
        if after[c] <= least and total[c] > most:
            most = total[c]
    best = 0
    while after[best] > least or total[best] < most * (1.0 - TIE) or weight[best] == 0.0:
        best += 1
    return best


@inlined
def shrink(s, arm):
    """Add one pull of an arm to A, by a rank-one update of everything that A^-1 is in."""
    cross, leverage, spread, alive, row = s.cross, s.leverage, s.spread, s.alive, s.row
    left, w = s.progress[LEFT], s.weight[arm]
    scale = w / (1.0 + w * leverage[arm])
    for i in range(len(row)):
        row[i] = cross[arm, i]
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
def discard(s, radius):
    """Drop every survivor that another one beats for certain (Soare 2014, Lemma 4)."""
    rule, means, spread, alive, out = s.rule, s.means, s.spread, s.alive, s.out
    left = s.progress[LEFT]
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
        s.progress[LEFT] = kept


@inlined
def possibly_better(s, p, radius):
    """Return by how much another survivor can be better than the one at place p.

    Infinity if that is not a number for one of them: then nothing is known.
    """
    rule, means, spread, alive = s.rule, s.means, s.spread, s.alive
    i, most = alive[p], -math.inf
    for q in range(s.progress[LEFT]):
        if q != p:
            j = alive[q]
            variance = spread[i, j] if i < j else spread[j, i]
            better = rule.sign * (means[j] - means[i]) + radius * math.sqrt(variance)
            if not abs(better) < math.inf:
                return math.inf
            most = better if better > most else most
    return most


@inlined
def judge(s):
    """Drop survivors and find out whether there is a winner."""
    rule, alive, progress = s.rule, s.alive, s.progress
    radius = radius_of(rule, progress[PULLS], s.log_det[0])
    discard(s, radius)
    if progress[LEFT] == 1:
        progress[WINNER] = alive[0]
    elif rule.epsilon > 0.0:
        least = math.inf
        for p in range(progress[LEFT]):
            most = possibly_better(s, p, radius)
            if most <= rule.epsilon and most < least:
                least = most
                progress[WINNER] = alive[p]


@inlined
def learn(s, arm, reward):
    """Update the estimate, then A, by the reward of one pull."""
    move_estimate(s, arm, reward)
    shrink(s, arm)
    s.progress[PULLS] += 1


absorb, examine = entry(learn), entry(judge)
plan = planner(choose, shrink)
run = runner(choose, learn, judge)
