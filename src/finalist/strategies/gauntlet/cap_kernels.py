"""The compiled search for the cap of a bet, cached on disk; `betting` explains it.

What has no cap that is known to be affordable has none.
"""

import math

import numpy as np

from finalist.compiled.tiers import tiered

#: Where the cap is looked for; beyond it there is none.
WIDEST = 9.0
#: How far below 1 the price of a capped factor may be.
TOLERANCE = 1e-11
#: From here on the ratio of Mills is a continued fraction; below, the error function is exact.
FAR, TERMS = 10.0, 20
#: Likelihood ratios above exp(-FAINT) are numbers with all their digits, and so are their terms.
FAINT = 500.0
#: Steps of Newton towards the score at which LR alone would do, and of the search.
FIRST_STEPS, STEPS = 4, 200

compiled = tiered(error_model="numpy")
inlined = tiered(inline="always", error_model="numpy")


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


@compiled
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


@inlined
def log_ratio(z, drifts, log_weights):
    """Log of sum_i w_i exp(l_i z - l_i^2 / 2), z <= WIDEST, and its slope."""
    total = slope = 0.0
    for i in range(len(drifts)):
        part = math.exp(log_weights[i] + drifts[i] * (z - 0.5 * drifts[i]))
        total += part
        slope += part * drifts[i]
    return math.log(total), slope / total


@compiled
def find_cap(room, drifts, log_weights):
    """Return the z at which the capped factor costs 1, or a hair less; infinity if there is no cap.

    Newton's steps, from where LR reaches the limit by itself; where one leaves what is known, what
    is known is halved. What is returned can be paid for: a price that is no number cannot.

    Here a price is (C / LR) sum_i w_i Phi(z - l_i) + C Phi(-z) as it stands, which is fast. Where
    LR is too faint for that it is that of `log_price`.
    """
    low, high, hair = -WIDEST, WIDEST, 0.5 * TOLERANCE
    z, cap, weights = high, math.inf, np.empty(len(drifts))
    for i in range(len(drifts)):
        weights[i] = math.exp(log_weights[i])
    for _ in range(FIRST_STEPS):
        ratio, slope = log_ratio(z, drifts, log_weights)
        if not (ratio > room + 1e-3 and ratio > -FAINT):
            break
        z = max(z - (ratio - room) / slope, low)
    for _ in range(STEPS):
        ratio, slope = log_ratio(z, drifts, log_weights)
        if ratio > -FAINT:
            below = 0.0
            for i in range(len(drifts)):
                below += weights[i] * normal_cdf(z - drifts[i])
            share = below * math.exp(-ratio)
            value = room + math.log(share + normal_cdf(-z)) + hair
            fall = slope * share / (share + normal_cdf(-z))
        else:
            value, fall = log_price(z, room, drifts, log_weights) + hair, math.nan
        if value <= 0.0:
            high, cap = z, z
        elif z == high or not value > 0.0:
            return math.inf
        else:
            low = z
        if abs(value) <= hair:
            return z
        z += value / fall
        if not low < z < high:
            z = 0.5 * (low + high)
    return cap
