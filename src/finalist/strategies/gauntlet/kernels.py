"""The compiled bet of one arm after another, cached on disk; `betting` explains it.

A number that is not finite never speaks against an arm: what has no cap that is known to be
affordable has none, and a score that is no number counts as the lowest.
"""

import math

import numpy as np
from numba import njit

from finalist.compiled.cache import kept

#: Where the cap is looked for; beyond it there is none.
WIDEST = 9.0
#: How far below 1 the price of a capped factor may be.
TOLERANCE = 1e-11
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
#: From here on the ratio of Mills is a continued fraction; below, the error function is exact.
FAR, TERMS = 10.0, 20

compiled = kept(error_model="numpy")
inlined = njit(inline="always", error_model="numpy")


@inlined
def normal_cdf(x):
    """P(N(0, 1) <= x)."""
    return 0.5 * math.erfc(-x * 0.7071067811865476)


@compiled
def mills(u):
    """P(N(0, 1) > u) over the density at u, which does not vanish for large u (Laplace 1805)."""
    if u < FAR:
        return 2.5066282746310002 * math.exp(0.5 * u * u) * normal_cdf(-u)
    below = u
    for n in range(TERMS, 0, -1):
        below = u + n / below
    return 1.0 / below


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
def log_price(z, room, drifts, log_weights):
    """Log of what the factor that is capped at z costs: its mean under N(0, 1), with b = C / LR.

    (C / LR(z)) sum_i w_i Phi(z - l_i) + C Phi(-z), C = exp(room), which decreases in z. With
    p_i = w_i exp(l_i z - l_i^2 / 2) / LR(z) and the ratio of Mills R, the first part is
    C phi(z) sum_i p_i R(l_i - z): no factor of it vanishes or overflows for drifts of any size.
    """
    top = -math.inf
    for i in range(len(drifts)):
        value = log_weights[i] + drifts[i] * (z - 0.5 * drifts[i])
        top = value if value > top else top
    total = below = 0.0
    for i in range(len(drifts)):
        part = math.exp(log_weights[i] + drifts[i] * (z - 0.5 * drifts[i]) - top)
        if part > 0.0:
            total += part
            below += part * mills(drifts[i] - z)
    density = 0.3989422804014327 * math.exp(-0.5 * z * z)
    return room + math.log(density * (below / total) + normal_cdf(-z))


@compiled
def find_cap(room, drifts, log_weights):
    """Return the z at which the capped factor costs 1, or a hair less; infinity if there is no cap.

    Between two ends of different sign the secant, halved where it would creep (Illinois). What is
    returned can be paid for: a price that is no number cannot.
    """
    low, high, hair = -WIDEST, WIDEST, 0.5 * TOLERANCE
    above = log_price(high, room, drifts, log_weights) + hair
    if not above <= 0.0:
        return math.inf
    below = log_price(low, room, drifts, log_weights) + hair
    side = 0
    for _ in range(200):
        middle = (low * above - high * below) / (above - below)
        if not low < middle < high:
            middle = 0.5 * (low + high)
        value = log_price(middle, room, drifts, log_weights) + hair
        if value <= 0.0:
            high, above = middle, value
            below = 0.5 * below if side == -1 else below
            side = -1
        else:
            low, below = middle, value
            above = 0.5 * above if side == 1 else above
            side = 1
        if abs(value) <= hair:
            return middle
    return high


@inlined
def reaches(room, drifts, weights):
    """Return whether LR(NEAR) >= exp(room): otherwise a cap is worth nothing."""
    top = -math.inf
    for j in range(len(drifts)):
        value = drifts[j] * (NEAR - 0.5 * drifts[j])
        top = value if value > top else top
    if not top >= room:
        return False
    total = 0.0
    for j in range(len(drifts)):
        total += weights[j] * math.exp(drifts[j] * (NEAR - 0.5 * drifts[j]) - room)
    return total >= 1.0


@kept(error_model="numpy", nogil=True)
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
            log_weights[i] = np.logaddexp(tilted[i] + wealth[k, 0], prior[i] + wealth[k, 2])
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


@kept(error_model="numpy", nogil=True)
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
    tilted, weights, plain = np.empty(g), np.empty(g), np.empty(g)
    for j in range(g):
        plain[j] = math.exp(prior[j])
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
            able, top = True, -math.inf
            for j in range(g):
                drifts[j] = min(rates[j] * speed, LARGEST_DRIFT)
                tilted[j] = prior[j] + rates[j] * (before - 0.5 * rates[j] * known)
                able = able and drifts[j] >= 0.0
                top = tilted[j] if tilted[j] > top else top
            total = 0.0
            for j in range(g):
                tilted[j] = math.exp(tilted[j] - top)
                total += tilted[j]
            share = 1.0 / (1.0 + math.exp(wealth[k, 2] - wealth[k, 0]))
            if not (able and math.isfinite(total) and math.isfinite(share)):
                continue  # the past gives nothing to bet on: the wealth stays
            for j in range(g):
                tilted[j] /= total
                weights[j] = share * tilted[j] + (1.0 - share) * plain[j]
            score = min(max(z, -LARGEST_SCORE), LARGEST_SCORE) if z == z else -LARGEST_SCORE
            room, cap = limit[k] - log_m[k], math.inf
            if capped and reaches(room, drifts, weights):
                for j in range(g):
                    parts[j] = math.log(weights[j])
                cap = find_cap(room, drifts, parts)
            if score >= cap:
                log_m[k] = limit[k]
            elif cap < math.inf:
                log_m[k] = limit[k] + min(log_growth(score, cap, drifts, parts), 0.0)
            top = -math.inf
            for j in range(g):
                parts[j] = drifts[j] * (score - 0.5 * drifts[j])
                top = parts[j] if parts[j] > top else top
            ratio = first = last = SMALLEST
            for j in range(g):
                part = math.exp(parts[j] - top)
                ratio += weights[j] * part
                first += tilted[j] * part
                last += plain[j] * part
            if cap == math.inf:
                log_m[k] = min(log_m[k] + top + math.log(ratio), limit[k])
            wealth[k, 0] += top + math.log(first)
            wealth[k, 2] += top + math.log(last)
