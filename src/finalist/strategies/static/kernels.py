"""The compiled loop of the static strategies: absorb pulls, stop when the rule first holds.

The rule of Soare 2014, eq:emp.stop.condition.2, is decided after every pull, but hardly ever
evaluated. When it was evaluated and did not hold, some rival blocks each arm, by a margin. Let A
be the design matrix then, m the estimated means, s = sum of z_i S_i with S_i the sum of the later
residuals r - m_i of arm i, A_n and v_n = ||y||_{A_n^-1} what belongs to a later n. Then the
estimated gap is y'phi + y'A_n^-1 s, and y'A_n^-1 s <= v_n ||s||_{A^-1}, because A <= A_n. If no
count has grown by more than a factor k^2, also A_n <= k^2 A and v_n >= v / k. So a rival at the
direction y goes on blocking while

    ||s||_{A^-1} < radius - max(1, k) (gap + epsilon) / v       (without the factor if negative)

and ||s||_{A^-1} <= sum of ||z_i||_{A^-1} |S_i|. The margin is shared among the arms as limits of
|S_i|, the counts get limits too, and the rule is evaluated again when a limit is passed. It
stops at exactly the first n at which the rule holds.

`run`, `look` and `evaluate` take the `StaticState` and `StaticRule` of `static`.
"""

import math

import numpy as np
from numba import njit

from finalist.compiled.cache import kept

#: A pivot smaller than this, relatively, is zero: the pulls do not span yet.
SINGULAR = 1e-14
#: The margin is made smaller by this much, relatively, for rounding errors.
SAFETY = 1e-9
#: Counts may grow by no more than the square of this until the rule is evaluated again.
MAX_GROWTH = 2.0

inlined = njit(inline="always", error_model="numpy")


@inlined
def factor(Z, counts, L):
    """Write the Cholesky factor of sum n_i z_i z_i' to L; return whether it is regular."""
    K, r = Z.shape
    for a in range(r):
        for b in range(r):
            L[a, b] = 0.0
    for i in range(K):
        if counts[i] > 0:
            for a in range(r):
                for b in range(a + 1):
                    L[a, b] += counts[i] * Z[i, a] * Z[i, b]
    regular = True
    for a in range(r):
        for b in range(a + 1):
            whole = L[a, b]
            total = whole
            for c in range(b):
                total -= L[a, c] * L[b, c]
            if a > b:
                L[a, b] = total / L[b, b]
            elif total > SINGULAR * whole:
                L[a, a] = math.sqrt(total)
            else:
                regular = False
                L[a, a] = 1.0
    return regular


@inlined
def solve_lower(L, v):
    """Solve L x = v in place."""
    for a in range(len(v)):
        for b in range(a):
            v[a] -= L[a, b] * v[b]
        v[a] /= L[a, a]


@inlined
def solve_upper(L, v):
    """Solve L'x = v in place."""
    for k in range(len(v)):
        a = len(v) - 1 - k
        for b in range(a + 1, len(v)):
            v[a] -= L[b, a] * v[b]
        v[a] /= L[a, a]


@inlined
def fit(state, L, phi):
    """Write the least-squares estimate to phi, and the means that it gives to the state.

    Solving again for the residuals brings back the digits that large rewards lose.
    """
    Z, counts, first, excess, m = state.Z, state.counts, state.first, state.excess, state.means
    K, r = Z.shape
    for a in range(r):
        phi[a] = 0.0
    for i in range(K):
        m[i] = 0.0
    step = np.empty(r)
    for _ in range(3):
        for a in range(r):
            step[a] = 0.0
        for i in range(K):
            if counts[i] > 0:
                residual = counts[i] * (first[i] - m[i]) + excess[i]
                for a in range(r):
                    step[a] += Z[i, a] * residual
        solve_lower(L, step)
        solve_upper(L, step)
        for a in range(r):
            phi[a] += step[a]
        for i in range(K):
            total = 0.0
            for a in range(r):
                total += Z[i, a] * phi[a]
            m[i] = total


@inlined
def lowest_ratio(x, m, W, epsilon):
    """Return the smallest (gap + epsilon) / ||x - x'||_{A^-1} over the rivals x' of an arm.

    -Infinity if that is not a number for one of them: then nothing is known.
    """
    lowest = np.inf
    for i in range(len(m)):
        if i != x:
            variance = 0.0
            for a in range(W.shape[1]):
                variance += (W[x, a] - W[i, a]) ** 2
            gap = m[x] - m[i] + epsilon
            ratio = gap / math.sqrt(variance)
            if not abs(gap) < np.inf or math.isnan(ratio):
                return -np.inf
            lowest = ratio if ratio < lowest else lowest
    return lowest


@kept(error_model="numpy")
def evaluate(state, radius, epsilon):
    """Return the candidate for which the rule holds, the best if there are several; -1 if none.

    If none, the state gets the estimated means, and the limits up to which the rule cannot hold.
    """
    Z, C, counts, limit, most = state.Z, state.C, state.counts, state.limit, state.most
    K, r = Z.shape
    L, W, phi = np.empty((r, r)), np.empty((len(C), r)), np.empty(r)
    for i in range(K):
        most[i] = 0
    if not factor(Z, counts, L):
        return -1
    fit(state, L, phi)
    mean = np.empty(len(C))
    leader = 0
    for i in range(len(C)):
        total = 0.0
        for a in range(r):
            W[i, a] = C[i, a]
            total += C[i, a] * phi[a]
        mean[i] = total
        solve_lower(L, W[i])
        if mean[i] > mean[leader]:
            leader = i
    winner = -1
    highest = lowest_ratio(leader, mean, W, epsilon)
    if highest >= radius:
        return leader
    if epsilon > 0.0:
        # Another arm may be good enough before the leader is.
        for x in range(len(C)):
            ratio = lowest_ratio(x, mean, W, epsilon)
            if ratio >= radius and (winner < 0 or mean[x] > mean[winner]):
                winner = x
            highest = ratio if ratio > highest else highest
        if winner >= 0:
            return winner
    # Half of the margin is for growing counts, the rest for the rewards.
    growth = MAX_GROWTH
    if highest > 0.0:
        growth = min(growth, 1.0 + 0.5 * (radius - highest) / highest)
        margin = radius - growth * highest
    else:
        margin = radius - highest
    total = 0.0
    row = np.empty(r)
    for i in range(K):
        for a in range(r):
            row[a] = Z[i, a]
        solve_lower(L, row)
        size = 0.0
        for a in range(r):
            size += row[a] * row[a]
        total += math.sqrt(size * counts[i])
    for i in range(K):
        limit[i] = (1.0 - SAFETY) * margin * math.sqrt(counts[i]) / total
        most[i] = int(growth * growth * counts[i])
    return -1


@kept(error_model="numpy")
def look(state, rule):
    """Evaluate the rule now; return the candidate that wins or -1."""
    n = state.counts.sum()
    radius = rule.scale * math.sqrt(max(rule.log + 2.0 * math.log(n), 0.0))
    for i in range(len(state.later)):
        state.later[i] = 0.0
    return evaluate(state, radius, rule.epsilon)


@kept(error_model="numpy")
def run(state, rule, picks, rewards):
    """Absorb pulls until the rule holds; return how many, and the candidate that wins or -1.

    The rule cannot hold before as many pulls as the rank.
    """
    counts, first, excess = state.counts, state.first, state.excess
    later, m, limit, most = state.later, state.means, state.limit, state.most
    n = counts.sum()
    for t in range(len(picks)):
        i, reward = picks[t], rewards[t]
        if counts[i] == 0:
            first[i] = reward
        counts[i] += 1
        excess[i] += reward - first[i]
        later[i] += reward - m[i]
        n += 1
        if (counts[i] > most[i] or abs(later[i]) > limit[i]) and n >= rule.rank:
            winner = look(state, rule)
            if winner >= 0:
                return t + 1, winner
    return len(picks), -1
