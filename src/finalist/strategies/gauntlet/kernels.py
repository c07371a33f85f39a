"""The compiled bet of one arm after another, cached on disk; `betting` explains it.

A number that is not finite never speaks against an arm: what has no cap that is known to be
affordable has none, and a score that is no number counts as the lowest.
"""

import math

import numpy as np

from finalist.compiled.tiers import tiered
from finalist.strategies.gauntlet.cap_kernels import find_cap, inlined

#: Scores are cut here: the factor stays nondecreasing, and nothing overflows.
LARGEST_SCORE = 1e4
#: Drifts are cut here: a bet may take any, and the square of this one is a number.
LARGEST_DRIFT = 1e8
#: At looks inside an epoch there is a cap if it is reached below this score. A higher one would
#: hardly ever be reached: without it the factor is as valid, and smaller by less than 1e-8.
NEAR = 7.0
#: What is added to sums of weighted likelihood ratios, of which the largest ratio is 1: logarithms
#: are numbers, and a factor grows by less than this part of its largest value.
SMALLEST = 1e-300
LOG_2 = math.log(2.0)


@inlined
def log_likelihood_ratio(z, drifts, log_weights):
    """Log of sum_i w_i exp(l_i z - l_i^2 / 2)."""
    top = -math.inf
    for i in range(len(drifts)):
        value = log_weights[i] + drifts[i] * (z - 0.5 * drifts[i])
        top = value if value > top else top
    total = 0.0
    for i in range(len(drifts)):
        total += math.exp(log_weights[i] + drifts[i] * (z - 0.5 * drifts[i]) - top)
    return top + math.log(total)


@inlined
def log_sum(log_weights):
    """Log of the sum of weights given by their logarithms."""
    top = -math.inf
    for i in range(len(log_weights)):
        top = log_weights[i] if log_weights[i] > top else top
    total = 0.0
    for i in range(len(log_weights)):
        total += math.exp(log_weights[i] - top)
    return top + math.log(total)


@inlined
def normalise(log_weights):
    """Make weights, given by their logarithms, sum to 1; return whether they are numbers."""
    total = log_sum(log_weights)
    for i in range(len(log_weights)):
        log_weights[i] -= total
    return math.isfinite(total)


@inlined
def log_add(x, y):
    """Log of exp(x) + exp(y)."""
    if x == y:  # infinities, too
        return x + LOG_2
    if x > y:
        return x + math.log1p(math.exp(y - x))
    return y + math.log1p(math.exp(x - y))


@inlined
def log_growth(z, cap, drifts, log_weights):
    """Log of LR(z) / LR(cap), by what each drift has of LR(cap): nothing large is subtracted."""
    top = most = -math.inf
    for i in range(len(drifts)):
        value = log_weights[i] + drifts[i] * (cap - 0.5 * drifts[i])
        top = value if value > top else top
        value += drifts[i] * (z - cap)
        most = value if value > most else most
    before = after = 0.0
    for i in range(len(drifts)):
        value = log_weights[i] + drifts[i] * (cap - 0.5 * drifts[i])
        before += math.exp(value - top)
        after += math.exp(value - most + drifts[i] * (z - cap))
    return most - top + math.log(after / before)


@inlined
def reaches(room, drifts, weights):
    """Return whether LR(NEAR) >= exp(room): otherwise a cap is worth nothing."""
    total = 0.0
    for j in range(len(drifts)):
        value = drifts[j]
        total += weights[j] * math.exp(value * (NEAR - 0.5 * value) - room)
    return total >= 1.0


@tiered(error_model="numpy", nogil=True)
def bet(
    z,
    speed,
    drift,
    time,
    expert,
    tested,
    capped,
    limit,
    grid,
    prior,
    temper,
    log_m,
    scale,
    wealth,
    caps,
):
    """Place the bets of all tested arms and settle them.

    Parameters
    ----------
    z, speed : (K,) arrays
        Scores, and 1 / sqrt(v) of their directions.
    drift, time : (K,) arrays
        S and V: what earlier pulls say about the same directions.
    expert : (K, q) array
        Drifts that the expert expects of the scores; q may be 0.
    tested : (K,) array of bool
    capped : bool
    limit : (K,) array
        log(1 / delta).
    grid, prior : (g,) arrays
        Drifts in units of 1 / sqrt(V1), and the logarithms of their weights.
    temper : float
        The part of what earlier pulls say by which the weights are tilted.
    log_m, scale : (K,) arrays, wealth : (K, 3) array
        Of `betting.Bets`, changed in place.
    caps : (K,) array
        Out: the score at which an arm was to be rejected; infinite without a cap.
    """
    g, q = len(grid), expert.shape[1]
    drifts, log_weights, tilted = np.empty(g + q), np.empty(g + q), np.empty(g)
    for k in range(len(z)):
        if not tested[k] or log_m[k] >= limit[k]:
            continue
        if scale[k] == 0.0:
            scale[k] = speed[k] * speed[k]
        usable = speed[k] > 0.0
        for i in range(g):
            rate = grid[i] / math.sqrt(scale[k])
            drifts[i] = min(rate * speed[k], LARGEST_DRIFT)
            tilted[i] = prior[i] + temper * rate * (drift[k] - 0.5 * rate * time[k])
            usable = usable and drifts[i] >= 0.0
        usable = normalise(tilted) and usable
        for i in range(g):  # the same drifts, by what the past says and by what was said at first
            log_weights[i] = log_add(tilted[i] + wealth[k, 0], prior[i] + wealth[k, 2])
        for i in range(q):
            drifts[g + i] = min(expert[k, i], LARGEST_DRIFT)
            log_weights[g + i] = wealth[k, 1] - math.log(q)
            usable = usable and drifts[g + i] >= 0.0
        if not (normalise(log_weights) and usable):
            continue  # the past gives nothing to bet on: the wealth stays
        score = min(max(z[k], -LARGEST_SCORE), LARGEST_SCORE) if z[k] == z[k] else -LARGEST_SCORE
        caps[k] = find_cap(limit[k] - log_m[k], drifts, log_weights) if capped else math.inf
        if score >= caps[k]:
            log_m[k] = limit[k]
        elif caps[k] < math.inf:
            log_m[k] = limit[k] + min(log_growth(score, caps[k], drifts, log_weights), 0.0)
        else:
            factor = log_likelihood_ratio(score, drifts, log_weights)
            log_m[k] = min(log_m[k] + factor, limit[k])
        wealth[k, 0] += log_likelihood_ratio(score, drifts[:g], tilted)
        if q > 0:
            for i in range(g, g + q):
                log_weights[i] = -math.log(q)
            wealth[k, 1] += log_likelihood_ratio(score, drifts[g:], log_weights[g:])
        wealth[k, 2] += log_likelihood_ratio(score, drifts[:g], prior)


@tiered("finalist.strategies.gauntlet.rows.bet_along", error_model="numpy", nogil=True)
def bet_along(
    S, V, at, drift, time, capped, limit, grid, prior, temper, log_m, scale, wealth, path, smallest
):
    """Place the bets on the looks of an epoch, one after the other, until an arm is rejected.

    Parameters
    ----------
    S, V : (L, t) arrays
        What the epoch says up to each look, for some arms; V is 0 where it says nothing yet.
    at : (t,) array of int
        Which arms.
    drift, time : (K,) arrays
        S and V of what was before the epoch.
    capped, limit, grid, prior, temper, log_m, scale, wealth
        As in `bet`; there is no expert.
    path : (2, K) array
        S and V of the last look, changed in place.
    smallest : float
        A look that adds less than this part to V is left out.
    """
    g = len(grid)
    drifts, rates, parts = np.empty(g), np.empty(g), np.empty(g)
    tilted, weights, plain, logs = np.empty(g), np.empty(g), np.empty(g), np.empty(g)
    for j in range(g):
        logs[j], plain[j] = prior[j], math.exp(prior[j])
    for i in range(len(at)):
        k = at[i]
        usable = scale[k] > 0.0
        for j in range(g):
            rates[j] = grid[j] / math.sqrt(scale[k])
        for n in range(len(S)):
            if not usable or log_m[k] >= limit[k]:
                break
            more = V[n, i] - path[1, k]
            if not more > smallest * V[n, i]:
                continue
            speed = math.sqrt(more)
            z = (S[n, i] - path[0, k]) / speed
            before, known = temper * drift[k] + path[0, k], temper * time[k] + path[1, k]
            path[0, k], path[1, k] = S[n, i], V[n, i]
            score = min(max(z, -LARGEST_SCORE), LARGEST_SCORE) if z == z else -LARGEST_SCORE
            able, top, most, near = True, -math.inf, -math.inf, -math.inf
            for j in range(g):
                rate = rates[j]
                slope = rate * speed
                slope = LARGEST_DRIFT if slope > LARGEST_DRIFT else slope
                able = able and slope >= 0.0
                drifts[j] = slope
                value = slope * (score - 0.5 * slope)
                most = value if value > most else most
                parts[j] = value
                value = slope * (NEAR - 0.5 * slope)
                near = value if value > near else near
                value = logs[j] + rate * (before - 0.5 * rate * known)
                top = value if value > top else top
                tilted[j] = value
            total = 0.0
            for j in range(g):
                value = math.exp(tilted[j] - top)
                total += value
                tilted[j] = value
            share = 1.0 / (1.0 + math.exp(wealth[k, 2] - wealth[k, 0]))
            if not (able and math.isfinite(total) and math.isfinite(share)):
                continue  # the past gives nothing to bet on: the wealth stays
            other = 1.0 - share
            ratio = first = last = SMALLEST
            for j in range(g):
                learnt, at_first = tilted[j] / total, plain[j]
                weight = share * learnt + other * at_first
                weights[j] = weight
                part = math.exp(parts[j] - most)
                ratio += weight * part
                first += learnt * part
                last += at_first * part
            room, cap = limit[k] - log_m[k], math.inf
            if capped and near >= room and reaches(room, drifts, weights):
                for j in range(g):
                    parts[j] = math.log(weights[j])
                cap = find_cap(room, drifts, parts)
            if score >= cap:
                log_m[k] = limit[k]
            elif cap < math.inf:
                log_m[k] = limit[k] + min(log_growth(score, cap, drifts, parts), 0.0)
            else:
                log_m[k] = min(log_m[k] + most + math.log(ratio), limit[k])
            wealth[k, 0] += most + math.log(first)
            wealth[k, 2] += most + math.log(last)
