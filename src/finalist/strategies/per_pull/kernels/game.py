"""The game of LinGame, compiled: an AdaHedge learner against nature's nearest alternative.

`play_round` is one round of it, on the `State` of `kernels.lingame`. Arrays that hold something for
one round only: `weights` of the experts, their `marginal` of each arm, the `share` of each arm for
the leader, `moved` by nature's answer, the gains `common` and `gained`.
"""

import math

from finalist.strategies.per_pull.kernels.common import PULLS, TIE, called, inlined

#: Nature answers to the learner's weights plus this much of every arm: a regular matrix.
FLOOR = 1e-8
#: Weights below this are nothing; exponents below this are no danger.
TINY, MODERATE = 1e-200, 50.0
#: An entry of `State.progress`: the number of answers that have a row of their own.
ROWS = 3


@inlined
def bonus_radius(rule, t):
    """Return the radius of the bonus c_t: sqrt(2 sigma^2 log t), or that of level t^-3."""
    if rule.practical:
        return rule.sigma * math.sqrt(2.0 * math.log(t))
    log = rule.d * math.log1p(t * rule.growth)
    return rule.sigma * math.sqrt(log + 6.0 * math.log(t)) + rule.bias


@inlined
def leader_of(s):
    """Return the first candidate that looks best."""
    sign, who, means = s.rule.sign, s.who, s.means
    top, size = -math.inf, 0.0
    for p in range(len(who)):
        top = max(top, sign * means[who[p]])
        size = max(size, abs(means[who[p]]))
    best = 0
    while sign * means[who[best]] < top - TIE * size:
        best += 1
    return who[best]


@inlined
def weight_of(away, rate):
    """Return the weight of an expert whose loss is so far away from the least."""
    if rate < math.inf:
        return math.exp(-rate * away)
    return 1.0 if away <= TIE else 0.0


@called
def hedge(s, known, rate):
    """Fill the rows of `weights` with those of AdaHedge, not yet normalised.

    Without a finite rate the smallest losses share the weight equally. Return the smallest loss
    and the sum of all weights, in which row K counts for every answer that never looked best.
    """
    losses, rows, weights = s.losses, s.rows, s.weights
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


@inlined
def mix_loss(low, total, rate, experts):
    """Return the loss that all experts together make at one rate."""
    return low - math.log(total / experts) / rate if rate < math.inf else low


@inlined
def factorise(V):
    """Replace the lower triangle of V by its Cholesky factor."""
    for p in range(len(V)):
        for q in range(p + 1):
            value = V[p, q]
            for c in range(q):
                value -= V[p, c] * V[q, c]
            V[p, q] = math.sqrt(value) if p == q else value / V[q, q]


@inlined
def whiten(s):
    """Fill `white` with the rows L^-1 z_a, where L L' = V_w is the matrix of the shares."""
    Z, weight, share, V, white = s.Z, s.weight, s.share, s.matrix, s.white
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


@inlined
def respond(s, leader):
    """Fill `moved` with <theta_hat - lambda, z_a> for nature's best answer lambda to `share`.

    Of the alternatives in which another arm j is more than epsilon better than the leader i, the
    nearest in the norm of V_w is theta_hat - g V_w^-1 y / ||y||^2_{V_w^-1}, where y = z_i - z_j
    and g = y'theta_hat + epsilon; half its squared distance is g^2 / (2 ||y||^2_{V_w^-1}).
    """
    rule, who, means, moved, white = s.rule, s.who, s.means, s.moved, s.white
    whiten(s)
    K, r = white.shape
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


@inlined
def share_out(s, leader, rate):
    """Fill `share` with the weights of the arms that the learner has for one answer, sum 1."""
    losses, weights, share = s.losses, s.weights, s.share
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


@inlined
def gain_of(rule, moved, bonus, cap):
    """Return the optimistic gain (|<theta_hat - lambda, a>| + c_t(a))^2 / (2 sigma^2)."""
    gain = (abs(moved) + bonus) / rule.sigma
    return min(0.5 * gain * gain, cap)


@inlined
def known_answers(s, leader):
    """Return how many answers have a row of their own, the leader now among them."""
    losses, rows, progress = s.losses, s.rows, s.progress
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


@inlined
def gather_gains(s, t):
    """Fill in the gain of an arm for all answers and that for the leader; return the largest.

    Where the noise differs the arm is the row z sqrt(w).
    """
    rule, weight, leverage = s.rule, s.weight, s.leverage
    moved, common, gained = s.moved, s.common, s.gained
    radius = bonus_radius(rule, t)
    cap = math.log(t) if rule.practical else rule.cap
    for a in range(len(gained)):
        bonus = radius * math.sqrt(weight[a] * max(leverage[a], 0.0))
        common[a] = gain_of(rule, 0.0, bonus, cap)
        gained[a] = gain_of(rule, math.sqrt(weight[a]) * moved[a], bonus, cap)
    return cap


@inlined
def incur(s, known, leader, total):
    """Subtract the gains from the losses; fill `marginal` with the weights of the arms."""
    losses, rows, weights = s.losses, s.rows, s.weights
    marginal, common, gained = s.marginal, s.common, s.gained
    m, K = len(rows), losses.shape[1]
    for a in range(K):
        column = (m - known) * weights[K, a] if known < m else 0.0
        for p in range(known):
            column += weights[rows[p], a]
            losses[rows[p], a] -= common[a]
        losses[K, a] -= common[a]
        losses[leader, a] -= gained[a] - common[a]
        marginal[a] = column / total


@inlined
def mixed_gain(s, rate, leader, total):
    """Return log(sum of weights times exp(rate gain)) / rate, where no exponent is large."""
    weights, marginal, common, gained = s.weights, s.marginal, s.common, s.gained
    mixed = 0.0
    for a in range(len(marginal)):
        part = weights[leader, a] / total
        mixed += (marginal[a] - part) * math.exp(rate * common[a])
        mixed += part * math.exp(rate * gained[a])
    return math.log(mixed) / rate


@inlined
def expected_gain(s, leader, total):
    """Return the sum of weights times gains."""
    weights, marginal, common, gained = s.weights, s.marginal, s.common, s.gained
    expected = 0.0
    for a in range(len(marginal)):
        expected += marginal[a] * common[a] + weights[leader, a] / total * (gained[a] - common[a])
    return expected


@called
def play_round(s):
    """Move the learner on by one round; `marginal` has then its weights of the arms."""
    experts, gaps, leader = s.rule.experts, s.mixability[0], leader_of(s)
    known = known_answers(s, leader)
    rate = math.log(experts) / gaps if gaps > 0.0 else math.inf
    low, total = hedge(s, known, rate)
    share_out(s, leader, rate)
    respond(s, leader)
    cap = gather_gains(s, float(s.progress[PULLS]))
    incur(s, known, leader, total)
    gap = -expected_gain(s, leader, total)
    if rate * cap < MODERATE:
        gap += mixed_gain(s, rate, leader, total)
    else:
        gap += mix_loss(low, total, rate, experts)
        low, total = hedge(s, known, rate)
        gap -= mix_loss(low, total, rate, experts)
    if gaps > 0.0 or gap > TIE:  # a first gap out of rounding would be a rate out of nothing
        s.mixability[0] += max(gap, 0.0)
