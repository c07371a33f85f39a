"""The compiled loop of LinGapE.

`run`, `plan`, `absorb` and `examine` are called from outside. A pull costs O(K r): of A^-1 only its
products with the arms are kept.
"""

import math
from typing import NamedTuple

import numpy as np

from finalist.shapes import Float, Int
from finalist.strategies.per_pull.kernels.common import (
    PULLS,
    ROUNDING,
    TIE,
    WINNER,
    compiled,
    entry,
    inlined,
    runner,
)

#: Further entries of `State.progress`; UNSEEN counts the arms that wait for a first pull.
LEADER, RIVAL, UNSEEN = 2, 3, 4


class Rule(NamedTuple):
    """Numbers of the rules; `sign` and `epsilon` are in `common`.

    Attributes
    ----------
    proven : bool
        Whether the radius is that of the determinant, or the heuristic one.
    ratio : bool
        Whether pulls follow the optimal shares of a direction, or greedily shrink it.
    confidence : float
        2 log(1/delta).
    sigma, bias : float
        Size of the noise, and sqrt(lambda) S.
    """

    sign: float
    epsilon: float
    proven: bool
    ratio: bool
    confidence: float
    sigma: float
    bias: float


class State(NamedTuple):
    """What a run knows, changed in place.

    Attributes
    ----------
    rule, Z, weight, who, leverage, means, log_det, counts, sums, pulled
        See `common`.
    V : (K, r) array
        The products A^-1 z_i.
    progress : (5,) array of int
        See `PULLS` and the others; winner, leader and rival are -1 while there is none.
    slot : (K, K) array of int
        Where the shares of a pair are, or -1; (0, 0) where they are not needed.
    support, share : (S, r) arrays
        The arms of the optimal shares of a pair, then -1, and the shares.
    step, value : (r,) and (K,) array
        Room for one step.
    """

    rule: Rule
    Z: Float[np.ndarray, "K r"]
    weight: Float[np.ndarray, " K"]
    who: Int[np.ndarray, " m"]
    V: Float[np.ndarray, "K r"]
    leverage: Float[np.ndarray, " K"]
    means: Float[np.ndarray, " K"]
    log_det: Float[np.ndarray, " 1"]
    pulled: Int[np.ndarray, " K"]
    counts: Int[np.ndarray, " K"]
    sums: Float[np.ndarray, " K"]
    progress: Int[np.ndarray, " 5"]
    slot: Int[np.ndarray, "k k"]
    support: Int[np.ndarray, "S r"]
    share: Float[np.ndarray, "S r"]
    step: Float[np.ndarray, " r"]
    value: Float[np.ndarray, " K"]


@inlined
def radius_of(rule, n, log_det):
    """Return the radius C after n pulls (Xu 2018, Prop. 1), or the one without proof."""
    log = log_det if rule.proven else 2.0 * math.log1p(math.log(n))
    return rule.sigma * math.sqrt(log + rule.confidence) + rule.bias


@inlined
def select(s):
    """Find the leader and its strongest rival; return how much better that one can be.

    Xu 2018, Alg. 2: i = argmax mean, j = argmax of gap plus width, and B(t).
    """
    rule, Z, who, V, means, progress = s.rule, s.Z, s.who, s.V, s.means, s.progress
    radius = radius_of(rule, progress[PULLS], s.log_det[0])
    leader = who[0]
    for p in range(1, len(who)):
        i = who[p]
        if rule.sign * (means[i] - means[leader]) > 0.0:
            leader = i
    most, rival = -math.inf, leader
    for p in range(len(who)):
        j = who[p]
        if j != leader:
            variance = 0.0
            for c in range(Z.shape[1]):
                variance += (Z[leader, c] - Z[j, c]) * (V[leader, c] - V[j, c])
            better = rule.sign * (means[j] - means[leader])
            better += radius * math.sqrt(0.0 if variance < 0.0 else variance)
            better += ROUNDING * (abs(means[leader]) + abs(means[j]))
            if not abs(better) < math.inf:
                better = math.inf  # not a number: nothing is known
            if better > most:
                most, rival = better, j
    progress[LEADER] = leader
    progress[RIVAL] = rival
    return most


@inlined
def shrink_most(s, leader, rival):
    """Return argmin_x y'(A + w xx')^-1 y, y being the difference of two arms (Xu 2018, greedy).

    Pulling x takes w (x'A^-1 y)^2 / (1 + w x'A^-1 x) away. Ties go to the first arm.
    """
    Z, weight, V, leverage, step, value = s.Z, s.weight, s.V, s.leverage, s.step, s.value
    for c in range(Z.shape[1]):
        step[c] = V[leader, c] - V[rival, c]
    most = 0.0
    for a in range(len(value)):
        dot = 0.0
        for c in range(Z.shape[1]):
            dot += Z[a, c] * step[c]
        value[a] = weight[a] * (dot * dot) / (1.0 + weight[a] * leverage[a])
        most = value[a] if value[a] > most else most
    best = 0
    while value[best] < most * (1.0 - TIE) or weight[best] == 0.0:
        best += 1
    return best


@inlined
def most_behind(pulled, support, share):
    """Return argmin T_a / p_a over the arms with a share (Xu 2018); ties go to the first."""
    best, least = -1, math.inf
    for k in range(len(support)):
        if support[k] >= 0:
            ratio = pulled[support[k]] / share[k]
            if ratio < least * (1.0 - TIE):
                best, least = support[k], ratio
    return best


@inlined
def choose(s):
    """Return the arm to pull, or -1 while the shares of the pair are missing."""
    weight, pulled, progress = s.weight, s.pulled, s.progress
    if progress[UNSEEN] > 0:
        arm = 0
        while pulled[arm] > 0 or weight[arm] == 0.0:
            arm += 1
        return arm
    leader, rival = progress[LEADER], progress[RIVAL]
    if not s.rule.ratio:
        return shrink_most(s, leader, rival)
    place = s.slot[leader, rival]
    if place < 0:
        return np.int64(-1)
    return most_behind(pulled, s.support[place], s.share[place])


@inlined
def extend(s, arm):
    """Add one pull of an arm to A, by a rank-one update; `value` is z_i'A^-1 x from before."""
    Z, weight, V, leverage, step, value = s.Z, s.weight, s.V, s.leverage, s.step, s.value
    scale = weight[arm] / (1.0 + weight[arm] * leverage[arm])
    s.log_det[0] += math.log1p(weight[arm] * leverage[arm])
    for c in range(Z.shape[1]):
        step[c] = V[arm, c]
    for i in range(len(value)):
        dot = 0.0
        for c in range(Z.shape[1]):
            dot += Z[i, c] * step[c]
        value[i] = dot
        factor = dot * scale
        for c in range(Z.shape[1]):
            V[i, c] -= factor * step[c]
        leverage[i] -= factor * dot
    if s.pulled[arm] == 0 and weight[arm] > 0.0:
        s.progress[UNSEEN] -= 1
    s.pulled[arm] += 1
    s.progress[PULLS] += 1


@inlined
def learn(s, arm, reward):
    """Update the estimate by the reward of one pull."""
    weight, means, value = s.weight, s.means, s.value
    change = weight[arm] * (reward - means[arm]) / (1.0 + weight[arm] * s.leverage[arm])
    extend(s, arm)
    for i in range(len(means)):
        means[i] += value[i] * change
    s.counts[arm] += 1
    s.sums[arm] += reward


@inlined
def judge(s):
    """Once all arms are seen, find the pair to tell apart and whether there is a winner."""
    if s.progress[UNSEEN] == 0 and select(s) <= s.rule.epsilon:
        s.progress[WINNER] = s.progress[LEADER]


absorb, examine = entry(learn), entry(judge)
run = runner(choose, learn, judge)


@compiled
def plan(state, picks, done):
    """Fill `picks` from `done` on, as if every reward were as expected; return how many there are.

    Such rewards leave the estimate as it is. All pulls but the last are added to A. Fewer than
    asked for mean that the shares of a pair are missing.
    """
    for t in range(done, len(picks)):
        arm = choose(state)
        if arm < 0:
            return t
        picks[t] = arm
        if t + 1 < len(picks):
            extend(state, arm)
            if state.progress[UNSEEN] == 0:
                select(state)
    return len(picks)
