"""The compiled loop of LinGame, cached on disk.

`run`, `plan`, `absorb`, `examine` and `possible` are called from outside. The file uses nothing
compiled of another one: the cache would not see it change.
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
#: Nature answers to the learner's weights plus this much of every arm: a regular matrix.
FLOOR = 1e-8
#: Weights below this are nothing; exponents below this are no danger.
TINY, MODERATE = 1e-200, 50.0
#: What the entries of `State.progress` are.
PULLS, STARTED, ROWS, WINNER = 0, 1, 2, 3
#: What `Rule.threshold` is.
PROVEN, DETERMINANT, HEURISTIC = 0, 1, 2

# NaN is not assumed away: where it arises, a comparison with it is false and decides nothing.
_FLAGS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"nsz"}}
piece = njit(**_FLAGS)
compiled = kept(**_FLAGS)


class Rule(NamedTuple):
    """Numbers that stay the same.

    Attributes
    ----------
    sign : float
        1 when large rewards are good, -1 when small ones are.
    epsilon : float
        How far the answer may be from the best.
    sigma, bias : float
        Size of the noise, and sqrt(eta) M.
    d, growth : float
        The dimension and L^2 / (eta d).
    confidence : float
        log(1/delta).
    threshold : int
        Which radius ends the run.
    practical : bool
        Whether the bonus is that of the authors' program, or that of the analysis.
    cap : float
        The largest gain of the analysis, (2 L M)^2 / (2 sigma^2).
    experts : float
        Pairs of an answer and an arm that can be pulled.
    """

    sign: float
    epsilon: float
    sigma: float
    bias: float
    d: float
    growth: float
    confidence: float
    threshold: int
    practical: bool
    cap: float
    experts: float


class State(NamedTuple):
    """What a run knows, changed in place; V = eta I + sum of w z z' over the pulls.

    Attributes
    ----------
    rule : Rule
    Z : (K, r) array
        The arms.
    weight : (K,) array
        w, what a pull counts: (sigma / sigma_x)^2, or 0 for an arm that cannot be pulled.
    who : (m,) array of int
        The candidates, which are the answers.
    cross : (K, K) array
        z_i'V^-1 z_j.
    leverage : (K,) array
        z_i'V^-1 z_i.
    spread : (K, K) array
        (z_i - z_j)'V^-1 (z_i - z_j).
    means : (K,) array
        z_i'phi_hat, the ridge estimate of every mean.
    log_det : (1,) array
        log(det V / det(eta I)).
    counts, sums : (K,) arrays
        Pulls and rewards of each arm since the last exact computation.
    pulled, tracked : (K,) arrays
        All pulls of each arm, and the weights they follow: the sum of the learner's.
    losses : (K + 1, K) array
        The learner's loss so far of every answer (row) and arm; row K is that of the answers
        that never looked best, which are all alike. Infinite for arms that cannot be pulled: such
        experts have no weight.
    rows : (m,) array of int
        The answers that once looked best, in the order in which they did, then others.
    mixability : (1,) array
        Delta of AdaHedge, the sum of the mixability gaps.
    progress : (4,) array of int
        Pulls so far, arms known to be pulled, number of answers in `rows`, winner or -1.
    weights, marginal, share, moved, common, gained, matrix, white
        Room for one step.
    """

    rule: Rule
    Z: np.ndarray
    weight: np.ndarray
    who: np.ndarray
    cross: np.ndarray
    leverage: np.ndarray
    spread: np.ndarray
    means: np.ndarray
    log_det: np.ndarray
    counts: np.ndarray
    sums: np.ndarray
    pulled: np.ndarray
    tracked: np.ndarray
    losses: np.ndarray
    rows: np.ndarray
    mixability: np.ndarray
    progress: np.ndarray
    weights: np.ndarray
    marginal: np.ndarray
    share: np.ndarray
    moved: np.ndarray
    common: np.ndarray
    gained: np.ndarray
    matrix: np.ndarray
    white: np.ndarray


@piece
def radius_of(rule, t, log_det):
    """Return sqrt(2 sigma^2 beta(t, delta)), which multiplies ||y||_{V^-1}."""
    if rule.threshold == HEURISTIC:
        log = 2.0 * math.log1p(math.log(t))
    else:
        log = log_det if rule.threshold == DETERMINANT else rule.d * math.log1p(t * rule.growth)
    return rule.sigma * math.sqrt(log + 2.0 * rule.confidence) + rule.bias


@piece
def bonus_radius(rule, t):
    """Return the radius of the bonus c_t: sqrt(2 sigma^2 log t), or that of level t^-3."""
    if rule.practical:
        return rule.sigma * math.sqrt(2.0 * math.log(t))
    log = rule.d * math.log1p(t * rule.growth)
    return rule.sigma * math.sqrt(log + 6.0 * math.log(t)) + rule.bias


@piece
def leader_of(sign, who, means):
    """Return the first candidate that looks best."""
    top, size = -math.inf, 0.0
    for p in range(len(who)):
        top = max(top, sign * means[who[p]])
        size = max(size, abs(means[who[p]]))
    best = 0
    while sign * means[who[best]] < top - TIE * size:
        best += 1
    return who[best]


@piece
def weight_of(away, rate):
    """Return the weight of an expert whose loss is so far away from the least."""
    if rate < math.inf:
        return math.exp(-rate * away)
    return 1.0 if away <= TIE else 0.0


@piece
def hedge(losses, rows, known, rate, weights):
    """Fill the rows of `weights` with those of AdaHedge, not yet normalised.

    Without a finite rate the smallest losses share the weight alike. Return the smallest loss
    and the sum of all weights, in which row K counts for every answer that never looked best.
    """
    m, K = len(rows), losses.shape[1]
    low = math.inf
    for p in range(known + (known < m)):
        i = rows[p] if p < known else K
        for a in range(K):
            low = min(low, losses[i, a])
    total = 0.0
    for p in range(known + (known < m)):
        i = rows[p] if p < known else K
        part = 0.0
        for a in range(K):
            away = losses[i, a] - low
            weights[i, a] = weight_of(away, rate)
            part += weights[i, a]
        total += part if p < known else part * (m - known)
    return low, total


@piece
def mix_loss(low, total, rate, experts):
    """Return the loss that all experts together make at one rate."""
    return low - math.log(total / experts) / rate if rate < math.inf else low


@piece
def respond(rule, Z, weight, who, means, leader, share, moved, V, white):
    """Fill `moved` with <theta_hat - lambda, z_a> for nature's best answer lambda to `share`.

    Of the alternatives in which another arm j is more than epsilon better than the leader i, the
    nearest in the norm of V_w is theta_hat - g V_w^-1 y / ||y||^2_{V_w^-1}, where y = z_i - z_j
    and g = y'theta_hat + epsilon; half its squared distance is g^2 / (2 ||y||^2_{V_w^-1}).
    """
    K, r = Z.shape
    for p in range(r):
        for q in range(p + 1):
            V[p, q] = 0.0
    for a in range(K):
        for p in range(r):
            factor = weight[a] * (share[a] + FLOOR) * Z[a, p]
            for q in range(p + 1):
                V[p, q] += factor * Z[a, q]
    factorise(V)
    for a in range(K):
        for p in range(r):
            value = Z[a, p]
            for q in range(p):
                value -= V[p, q] * white[a, q]
            white[a, p] = value / V[p, p]
    least, rival, gap, variance = math.inf, leader, 0.0, 1.0
    for q in range(len(who)):
        j = who[q]
        if j != leader:
            g = max(rule.sign * (means[leader] - means[j]), 0.0) + rule.epsilon
            v = 0.0
            for p in range(r):
                v += (white[leader, p] - white[j, p]) ** 2
            if g * g < least * v:
                least, rival, gap, variance = g * g / v, j, g, v
    for a in range(K):
        dot = 0.0
        for p in range(r):
            dot += white[a, p] * (white[leader, p] - white[rival, p])
        moved[a] = gap * dot / variance


@piece
def factorise(V):
    """Replace the lower triangle of V by its Cholesky factor."""
    for p in range(len(V)):
        for q in range(p + 1):
            value = V[p, q]
            for s in range(q):
                value -= V[p, s] * V[q, s]
            V[p, q] = math.sqrt(value) if p == q else value / V[q, q]


@piece
def shares(losses, leader, rate, weights, share):
    """Fill `share` with the weights of the arms that the learner has for one answer, sum 1."""
    total = 0.0
    for a in range(len(share)):
        share[a] = weights[leader, a]
        total += share[a]
    if total < TINY:  # next to all the other answers these weights are nothing
        low, total = math.inf, 0.0
        for a in range(len(share)):
            low = min(low, losses[leader, a])
        for a in range(len(share)):
            share[a] = weight_of(losses[leader, a] - low, rate)
            total += share[a]
    for a in range(len(share)):
        share[a] /= total


@piece
def gain_of(rule, moved, bonus, cap):
    """Return the optimistic gain (|<theta_hat - lambda, a>| + c_t(a))^2 / (2 sigma^2)."""
    gain = (abs(moved) + bonus) / rule.sigma
    return min(0.5 * gain * gain, cap)


@piece
def known_answers(losses, rows, progress, leader):
    """Return how many answers have a row of their own, the leader now among them."""
    known = progress[ROWS]
    fresh = True
    for p in range(known):
        fresh = fresh and rows[p] != leader
    if fresh:
        rows[known] = leader
        for a in range(losses.shape[1]):
            losses[leader, a] = losses[losses.shape[1], a]
        known += 1
        progress[ROWS] = known
    return known


@piece
def gather_gains(rule, t, weight, leverage, moved, common, gained):
    """Fill in the gain of an arm for all answers and that for the leader; return the largest.

    Where the noise differs the arm is the row z sqrt(w).
    """
    radius = bonus_radius(rule, t)
    cap = math.log(t) if rule.practical else rule.cap
    for a in range(len(gained)):
        bonus = radius * math.sqrt(weight[a] * max(leverage[a], 0.0))
        common[a] = gain_of(rule, 0.0, bonus, cap)
        gained[a] = gain_of(rule, math.sqrt(weight[a]) * moved[a], bonus, cap)
    return cap


@piece
def incur(losses, rows, known, leader, weights, total, marginal, common, gained):
    """Add the gains to the losses; fill `marginal` with the weights of the arms."""
    m, K = len(rows), losses.shape[1]
    for a in range(K):
        column = (m - known) * weights[K, a] if known < m else 0.0
        for p in range(known):
            column += weights[rows[p], a]
            losses[rows[p], a] -= common[a]
        losses[K, a] -= common[a]
        losses[leader, a] -= gained[a] - common[a]
        marginal[a] = column / total


@piece
def mixed_gain(rate, weights, leader, total, marginal, common, gained):
    """Return log(sum of weights times exp(rate gain)) / rate, where no exponent is large."""
    mixed = 0.0
    for a in range(len(marginal)):
        part = weights[leader, a] / total
        mixed += (marginal[a] - part) * math.exp(rate * common[a])
        mixed += part * math.exp(rate * gained[a])
    return math.log(mixed) / rate


@piece
def expected_gain(weights, leader, total, marginal, common, gained):
    """Return the sum of weights times gains."""
    expected = 0.0
    for a in range(len(marginal)):
        expected += marginal[a] * common[a] + weights[leader, a] / total * (gained[a] - common[a])
    return expected


@piece
def choose(
    rule, Z, weight, who, leverage, means, pulled, tracked, losses, rows, mixability, progress,
    weights, marginal, share, moved, common, gained, matrix, white,
):  # fmt: skip
    """Return the next arm and move the learner on: first every arm once, then C-tracking."""
    K = len(pulled)
    best = progress[STARTED]
    while best < K and (pulled[best] > 0 or weight[best] == 0.0):
        best += 1
    progress[STARTED] = best
    if best < K:
        tracked[best] += 1.0
    else:
        leader = leader_of(rule.sign, who, means)
        known = known_answers(losses, rows, progress, leader)
        experts, gaps = rule.experts, mixability[0]
        rate = math.log(experts) / gaps if gaps > 0.0 else math.inf
        low, total = hedge(losses, rows, known, rate, weights)
        shares(losses, leader, rate, weights, share)
        respond(rule, Z, weight, who, means, leader, share, moved, matrix, white)
        cap = gather_gains(rule, float(progress[PULLS]), weight, leverage, moved, common, gained)
        incur(losses, rows, known, leader, weights, total, marginal, common, gained)
        gap = -expected_gain(weights, leader, total, marginal, common, gained)
        if rate * cap < MODERATE:
            gap += mixed_gain(rate, weights, leader, total, marginal, common, gained)
        else:
            gap += mix_loss(low, total, rate, experts)
            low, total = hedge(losses, rows, known, rate, weights)
            gap -= mix_loss(low, total, rate, experts)
        if gaps > 0.0 or gap > TIE:  # a first gap out of rounding would be a rate out of nothing
            mixability[0] += max(gap, 0.0)
        least = math.inf
        for a in range(K):
            tracked[a] += marginal[a]
            if weight[a] > 0.0:
                least = min(least, pulled[a] - tracked[a])
        best = 0
        while pulled[best] - tracked[best] > least + TIE or weight[best] == 0.0:
            best += 1
    return best


@piece
def shrink(arm, weight, cross, leverage, spread, pulled, progress, row):
    """Add one pull of an arm to V, by a rank-one update of everything that V^-1 is in."""
    scale = weight[arm] / (1.0 + weight[arm] * leverage[arm])
    for i in range(len(row)):
        row[i] = cross[arm, i]
    for i in range(len(row)):
        factor = row[i] * scale
        for j in range(len(row)):
            dot = row[i] - row[j]
            value = spread[i, j] - dot * dot * scale
            spread[i, j] = 0.0 if value < 0.0 else value  # NaN stays: it is not exact
            cross[i, j] -= factor * row[j]
        leverage[i] -= factor * row[i]
    pulled[arm] += 1
    progress[PULLS] += 1


@piece
def learn(arm, reward, weight, cross, leverage, means, log_det, counts, sums):
    """Move the estimate by one reward; V^-1 is still the one before the pull."""
    step = weight[arm] * (reward - means[arm]) / (1.0 + weight[arm] * leverage[arm])
    log_det[0] += math.log1p(weight[arm] * leverage[arm])
    for i in range(len(means)):
        means[i] += cross[arm, i] * step
    counts[arm] += 1
    sums[arm] += reward


@piece
def beaten(rule, radius, means, spread, i, j, epsilon):
    """Tell whether arm j is surely less than epsilon better than arm i."""
    gap = rule.sign * (means[i] - means[j]) + epsilon
    width = radius * math.sqrt(spread[i, j])
    return gap > width + ROUNDING * (abs(means[i]) + abs(means[j]))


@piece
def judge(rule, weight, who, means, spread, log_det, pulled, progress):
    """Find out whether the candidate that looks best is surely good enough."""
    radius = radius_of(rule, float(progress[PULLS]), log_det[0])
    leader = leader_of(rule.sign, who, means)
    sure = True
    for p in range(len(who)):
        j = who[p]
        better = j == leader or beaten(rule, radius, means, spread, leader, j, rule.epsilon)
        sure = sure and better
    for a in range(len(pulled)):
        sure = sure and (pulled[a] > 0 or weight[a] == 0.0)
    if sure:
        progress[WINNER] = leader


@compiled
def absorb(state, arm, reward):
    """Take over the reward of one pull."""
    _, _, weight, _, cross, leverage, spread, means, log_det, counts, sums, pulled = state[:12]
    learn(arm, reward, weight, cross, leverage, means, log_det, counts, sums)
    shrink(arm, weight, cross, leverage, spread, pulled, state.progress, state.share)


@compiled
def examine(state):
    """Find out whether there is a winner."""
    weight, who, log_det = state.weight, state.who, state.log_det
    judge(state.rule, weight, who, state.means, state.spread, log_det, state.pulled, state.progress)


@compiled
def possible(state, out):
    """Fill `out` with whether each arm is a candidate that can still be the best."""
    rule, means, spread, t = state.rule, state.means, state.spread, float(state.progress[PULLS])
    out[:] = False
    for p in range(len(state.who)):
        out[state.who[p]] = True
    if t > 0.0:
        radius = radius_of(rule, t, state.log_det[0])
        for i in state.who:
            for j in state.who:
                if i != j and beaten(rule, radius, means, spread, i, j, 0.0):
                    out[j] = False


@compiled
def plan(state, picks):
    """Fill `picks` with the next pulls without new rewards; all but the last are added to V."""
    rule, Z, weight, who, cross, leverage, spread, means, _, _, _, pulled, tracked = state[:13]
    losses, rows, mixability, progress = state[13:17]
    weights, marginal, share, moved, common, gained, matrix, white = state[17:]
    for t in range(len(picks)):
        if t > 0:
            shrink(picks[t - 1], weight, cross, leverage, spread, pulled, progress, share)
        picks[t] = choose(
            rule, Z, weight, who, leverage, means, pulled, tracked, losses, rows, mixability,
            progress, weights, marginal, share, moved, common, gained, matrix, white,
        )  # fmt: skip


@compiled
def run(state, truth, size, binary, noise):
    """Pull until there is a winner or the noise is used up; return the number of pulls.

    A reward is the true mean plus noise times its size, or `noise < mean` if binary.
    """
    rule, Z, weight, who, cross, leverage, spread, means, log_det, counts, sums = state[:11]
    pulled, tracked, losses, rows, mixability, progress = state[11:17]
    weights, marginal, share, moved, common, gained, matrix, white = state[17:]
    for t in range(len(noise)):
        arm = choose(
            rule, Z, weight, who, leverage, means, pulled, tracked, losses, rows, mixability,
            progress, weights, marginal, share, moved, common, gained, matrix, white,
        )  # fmt: skip
        if binary:
            reward = 1.0 if noise[t] < truth[arm] else 0.0
        else:
            reward = truth[arm] + size[arm] * noise[t]
        learn(arm, reward, weight, cross, leverage, means, log_det, counts, sums)
        shrink(arm, weight, cross, leverage, spread, pulled, progress, share)
        judge(rule, weight, who, means, spread, log_det, pulled, progress)
        if progress[WINNER] >= 0:
            return t + 1
    return len(noise)
