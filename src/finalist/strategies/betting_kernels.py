"""The compiled bet of one arm after another, cached on disk; `betting` explains it."""

import math

import numpy as np
from numba import njit

from finalist.compiled import kept

#: Where the cap is looked for; beyond it there is none.
WIDEST = 9.0
#: How exactly the cap is found.
CAP_TOLERANCE = 1e-11
#: Scores are cut here: the factor stays nondecreasing, and nothing overflows.
LARGEST_SCORE = 1e4

compiled = kept(error_model="numpy")
inlined = njit(inline="always", error_model="numpy")


@inlined
def normal_cdf(x):
    """P(N(0, 1) <= x)."""
    return 0.5 * math.erfc(-x * 0.7071067811865476)


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
    log_weights -= total
    return math.isfinite(total)


@inlined
def log_price(z, room, drifts, weights, log_weights):
    """Log of what the factor that is capped at z costs: its mean under N(0, 1), with b = C / LR.

    (C / LR(z)) sum_i w_i Phi(z - l_i) + C Phi(-z), C = exp(room), which decreases in z.
    """
    below = 0.0
    for i in range(len(drifts)):
        below += weights[i] * normal_cdf(z - drifts[i])
    scale = math.exp(-log_likelihood_ratio(z, drifts, log_weights))
    return room + math.log(scale * below + normal_cdf(-z))


@compiled
def find_cap(room, drifts, log_weights):
    """Return the z at which the capped factor costs exactly 1; infinity if there is no cap.

    Between two ends of different sign the secant, halved where it would creep (Illinois).
    """
    low, high, weights = -WIDEST, WIDEST, np.exp(log_weights)
    above = log_price(high, room, drifts, weights, log_weights)
    if above > 0.0:
        return math.inf
    below = log_price(low, room, drifts, weights, log_weights)
    if below <= 0.0:
        return low
    side = 0
    for _ in range(200):
        middle = (low * above - high * below) / (above - below)
        if not low < middle < high:
            middle = 0.5 * (low + high)
        value = log_price(middle, room, drifts, weights, log_weights)
        if value > 0.0:
            if middle - low < CAP_TOLERANCE and side == 1:
                return middle
            low, below = middle, value
            above = 0.5 * above if side == 1 else above
            side = 1
        else:
            if high - middle < CAP_TOLERANCE and side == -1:
                return middle
            high, above = middle, value
            below = 0.5 * below if side == -1 else below
            side = -1
        if high - low < CAP_TOLERANCE:
            break
    return 0.5 * (low + high)


@kept(error_model="numpy", nogil=True)
def bet(
    z, speed, drift, time, expert, tested, capped, limit, grid, prior, log_m, scale, wealth, caps
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
    log_m, scale : (K,) arrays, wealth : (K, 2) array
        Of `betting.Bets`, changed in place.
    caps : (K,) array
        Out: the score at which an arm was to be rejected; infinite without a cap.
    """
    g, q = len(grid), expert.shape[1]
    drifts, log_weights = np.empty(g + q), np.empty(g + q)
    for k in range(len(z)):
        if not tested[k] or log_m[k] >= limit[k]:
            continue
        d = speed[k]
        if scale[k] == 0.0:
            scale[k] = d * d
        for i in range(g):
            rate = grid[i] / math.sqrt(scale[k])
            drifts[i] = rate * d
            log_weights[i] = prior[i] + rate * (drift[k] - 0.5 * rate * time[k])
        usable = normalise(log_weights[:g]) and math.isfinite(z[k])
        log_weights[:g] += wealth[k, 0]
        for i in range(q):
            drifts[g + i] = expert[k, i]
            log_weights[g + i] = wealth[k, 1] - math.log(q)
            usable = usable and math.isfinite(expert[k, i])
        if not (normalise(log_weights) and usable):
            continue  # nothing to bet on: the wealth stays
        score = min(max(z[k], -LARGEST_SCORE), LARGEST_SCORE)
        caps[k] = find_cap(limit[k] - log_m[k], drifts, log_weights) if capped else math.inf
        factor = log_likelihood_ratio(score, drifts, log_weights)
        if score >= caps[k]:
            log_m[k] = limit[k]
        elif caps[k] < math.inf:
            gain = factor - log_likelihood_ratio(caps[k], drifts, log_weights)
            log_m[k] = limit[k] + min(gain, 0.0)
        else:
            log_m[k] = min(log_m[k] + factor, limit[k])
        for half, (first, last) in enumerate(((0, g), (g, g + q))):
            if last > first:
                log_weights[first:last] -= log_sum(log_weights[first:last])
                wealth[k, half] += log_likelihood_ratio(
                    score, drifts[first:last], log_weights[first:last]
                )
