"""The compiled loop of LinGapE, cached on disk.

`run`, `plan`, `absorb` and `examine` are called from outside; the pieces they share are inlined
into them. The file uses nothing compiled of another one: the cache would not see it change. A pull
costs O(K r): of A^-1 only its products with the arms are kept.
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
#: What the entries of `State.progress` are; UNSEEN counts the arms that wait for a pull.
PULLS, WINNER, LEADER, RIVAL, UNSEEN = 0, 1, 2, 3, 4

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
    """What a run knows, changed in place; A = lambda I + sum of w z z' over the pulls.

    Attributes
    ----------
    rule : Rule
    Z : (K, r) array
        The arms.
    weight : (K,) array
        What a pull counts: (sigma / sigma_x)^2, or 0 for an arm that cannot be pulled.
    who : (m,) array of int
        The candidates.
    V : (K, r) array
        Their products A^-1 z_i.
    leverage : (K,) array
        z_i'A^-1 z_i.
    means : (K,) array
        z_i'phi_hat, the ridge estimate of every mean.
    log_det : (1,) array
        log(det A / det(lambda I)).
    pulled : (K,) array of int
        Pulls of each arm.
    counts, sums : (K,) arrays
        Pulls and rewards of each arm since the last exact computation.
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
    Z: np.ndarray
    weight: np.ndarray
    who: np.ndarray
    V: np.ndarray
    leverage: np.ndarray
    means: np.ndarray
    log_det: np.ndarray
    pulled: np.ndarray
    counts: np.ndarray
    sums: np.ndarray
    progress: np.ndarray
    slot: np.ndarray
    support: np.ndarray
    share: np.ndarray
    step: np.ndarray
    value: np.ndarray


@inlined
def radius_of(rule, n, log_det):
    """Return the radius C after n pulls (Xu 2018, Prop. 1), or the one without proof."""
    log = log_det if rule.proven else 2.0 * math.log1p(math.log(n))
    return rule.sigma * math.sqrt(log + rule.confidence) + rule.bias


@inlined
def select(rule, radius, Z, who, V, means, progress):
    """Find the leader and its strongest rival; return how much better that one can be.

    Xu 2018, Alg. 2: i = argmax mean, j = argmax of gap plus width, and B(t).
    """
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
def shrink_most(Z, weight, V, leverage, leader, rival, step, value):
    """Return argmin_x y'(A + w xx')^-1 y, y being the difference of two arms (Xu 2018, greedy).

    Pulling x takes w (x'A^-1 y)^2 / (1 + w x'A^-1 x) away. Ties go to the first arm.
    """
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
def choose(rule, Z, weight, V, leverage, pulled, progress, slot, support, share, step, value):
    """Return the arm to pull, -1 if the shares of the pair are not known yet."""
    if progress[UNSEEN] > 0:
        arm = 0
        while pulled[arm] > 0 or weight[arm] == 0.0:
            arm += 1
        return arm
    leader, rival = progress[LEADER], progress[RIVAL]
    if not rule.ratio:
        return shrink_most(Z, weight, V, leverage, leader, rival, step, value)
    place = slot[leader, rival]
    if place < 0:
        return np.int64(-1)
    return most_behind(pulled, support[place], share[place])


@inlined
def extend(arm, Z, weight, V, leverage, log_det, pulled, progress, step, value):
    """Add one pull of an arm to A, by a rank-one update; `value` is z_i'A^-1 x from before."""
    scale = weight[arm] / (1.0 + weight[arm] * leverage[arm])
    log_det[0] += math.log1p(weight[arm] * leverage[arm])
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
    if pulled[arm] == 0 and weight[arm] > 0.0:
        progress[UNSEEN] -= 1
    pulled[arm] += 1
    progress[PULLS] += 1


@inlined
def learn(
    arm, reward, Z, weight, V, leverage, means, log_det, pulled, counts, sums, progress, step, value
):
    """Take over the reward of one pull."""
    change = weight[arm] * (reward - means[arm]) / (1.0 + weight[arm] * leverage[arm])
    extend(arm, Z, weight, V, leverage, log_det, pulled, progress, step, value)
    for i in range(len(means)):
        means[i] += value[i] * change
    counts[arm] += 1
    sums[arm] += reward


@inlined
def judge(rule, Z, who, V, means, log_det, progress):
    """Find the pair to tell apart, once all arms are seen, and whether there is a winner."""
    if progress[UNSEEN] == 0:
        radius = radius_of(rule, progress[PULLS], log_det[0])
        if select(rule, radius, Z, who, V, means, progress) <= rule.epsilon:
            progress[WINNER] = progress[LEADER]


@compiled
def absorb(state, arm, reward):
    """Take over the reward of one pull."""
    _, Z, weight, _, V, leverage, means, log_det, pulled, counts, sums, progress = state[:12]
    step, value = state[15:]
    learn(
        arm,
        reward,
        Z,
        weight,
        V,
        leverage,
        means,
        log_det,
        pulled,
        counts,
        sums,
        progress,
        step,
        value,
    )


@compiled
def examine(state):
    """Find the pair to tell apart and whether there is a winner."""
    rule, Z, _, who, V, _, means, log_det, _, _, _, progress = state[:12]
    judge(rule, Z, who, V, means, log_det, progress)


@compiled
def plan(state, picks, done):
    """Fill `picks` from `done` on, as if every reward were as expected; return how many there are.

    Such rewards leave the estimate as it is. All pulls but the last are added to A. Fewer than
    asked for mean that the shares of a pair are not known yet.
    """
    rule, Z, weight, who, V, leverage, means, log_det, pulled, _, _, progress = state[:12]
    slot, support, share, step, value = state[12:]
    for t in range(done, len(picks)):
        arm = choose(
            rule, Z, weight, V, leverage, pulled, progress, slot, support, share, step, value
        )
        if arm < 0:
            return t
        picks[t] = arm
        if t + 1 < len(picks):
            extend(arm, Z, weight, V, leverage, log_det, pulled, progress, step, value)
            if progress[UNSEEN] == 0:
                radius = radius_of(rule, progress[PULLS], log_det[0])
                select(rule, radius, Z, who, V, means, progress)
    return len(picks)


@compiled
def run(state, truth, spread, binary, noise):
    """Pull until there is a winner, the noise is used up, or shares are missing; return the pulls.

    A reward is the true mean plus noise times its spread, or `noise < mean` if binary.
    """
    rule, Z, weight, who, V, leverage, means, log_det, pulled, counts, sums, progress = state[:12]
    slot, support, share, step, value = state[12:]
    for t in range(len(noise)):
        arm = choose(
            rule, Z, weight, V, leverage, pulled, progress, slot, support, share, step, value
        )
        if arm < 0:
            return t
        if binary:
            reward = 1.0 if noise[t] < truth[arm] else 0.0
        else:
            reward = truth[arm] + spread[arm] * noise[t]
        learn(
            arm, reward, Z, weight, V, leverage, means, log_det, pulled, counts, sums, progress,
            step, value,
        )  # fmt: skip
        judge(rule, Z, who, V, means, log_det, progress)
        if progress[WINNER] >= 0:
            return t + 1
    return len(noise)
