"""The compiled loops of what only chooses: over pairs of arms, cached on disk.

Nothing here sees the rewards of a test. `inverse` is R with R'R = A^-1, so that y'A^-1 y = |R y|^2.
A number that is not one is never the best, and a gap that is not one counts as none.
"""

import math

import numpy as np

from finalist.compiled.tiers import tiered

#: A matrix whose pivots are larger than this part of its largest entry is regular for certain.
CLEAR = 1e-10

inlined = tiered(inline="always", error_model="numpy")


@inlined
def difference(Z, i, j, y):
    """Write z_i - z_j."""
    for a in range(len(y)):
        y[a] = Z[i, a] - Z[j, a]


@inlined
def norm(inverse, y):
    """Return y'A^-1 y."""
    whole = 0.0
    for a in range(len(inverse)):
        part = 0.0
        for b in range(len(y)):
            part += inverse[a, b] * y[b]
        whole += part * part
    return whole


@inlined
def along(y, phi):
    """Return y'phi."""
    total = 0.0
    for a in range(len(y)):
        total += y[a] * phi[a]
    return total


@tiered(error_model="numpy", nogil=True)
def needed(
    Z,
    first,
    second,
    missing,
    phi,
    inverse,
    known,
    sign,
    epsilon,
    of_batch,
    spanned,
    pulls,
    limit,
    lowered,
    least,
):
    """Return how many pulls like those of a batch the slowest pair still needs (`sizes`).

    `known` and `spanned` are the pairs that the past and the batch can compare; `sign` and
    `epsilon` are in units of sigma. A pair of which the past says nothing needs nothing.
    """
    y, most = np.empty(Z.shape[1]), 0.0
    for j in range(len(first)):
        difference(Z, first[j], second[j], y)
        error = math.sqrt(norm(inverse, y))
        if not (known[j] and error < math.inf):
            continue
        gap = sign * along(y, phi) + epsilon
        gap = max(gap - lowered * error, least * error)
        rate = 1.0 / (norm(of_batch, y) * pulls) if spanned[j] else 0.0
        work, speed = missing[j] * limit, 0.5 * gap * gap * rate
        if speed != 0.0:
            pulls_left = work / speed
        else:
            pulls_left = math.inf if work > 0.0 else 0.0
        if pulls_left > most:  # and is a number
            most = pulls_left if pulls_left < math.inf else 1e15
    return most


@tiered(error_model="numpy", nogil=True)
def widths(Y, inverse, spanned, width):
    """Write the roots of y'A^-1 y of spanned directions; return which of them are not 0."""
    tested, y = np.zeros(len(Y), dtype=np.bool_), np.empty(Y.shape[1])
    for j in range(len(Y)):
        for a in range(len(y)):
            y[a] = Y[j, a]
            tested[j] |= spanned[j] and Y[j, a] != 0.0
        if tested[j]:
            width[j] = math.sqrt(norm(inverse, y))
    return tested


@tiered(error_model="numpy", nogil=True)
def difference_of(now, before, later, earlier):
    """Return d'V^-1 d, d the difference of two estimates; NaN if V is not clearly regular.

    V is the sum of R'R of both estimates.
    """
    r = len(now)
    V, x, high = np.empty((r, r)), np.empty(r), 0.0
    for a in range(r):
        x[a] = now[a] - before[a]
        for b in range(a + 1):
            total = 0.0
            for c in range(r):
                total += later[c, a] * later[c, b] + earlier[c, a] * earlier[c, b]
            V[a, b] = total
        high = max(high, V[a, a])
    square = 0.0
    for a in range(r):
        for b in range(a + 1):
            total = V[a, b]
            for c in range(b):
                total -= V[a, c] * V[b, c]
            if a == b and not total > CLEAR * high:
                return math.nan
            V[a, b] = total / V[b, b] if a > b else math.sqrt(total)
        for c in range(a):
            x[a] -= V[a, c] * x[c]
        x[a] /= V[a, a]
        square += x[a] * x[a]
    return square


@tiered(error_model="numpy", nogil=True)
def aim(Z, first, second, missing, thetas, off, inverse, sigma, epsilon, rule, out):
    """Write (first - second) / gap with the weight of each pair, for each parameter.

    `rule` has the standard errors that a gap is at least, the most times the smallest that it
    counts, and the least evidence that is missing (`targets`).
    """
    least, most, lowest = rule
    n, y = len(first), np.empty(Z.shape[1])
    gaps, widths, smallest = np.empty((len(thetas), n)), np.empty(n), math.inf
    for j in range(n):
        difference(Z, first[j], second[j], y)
        widths[j] = sigma * math.sqrt(norm(inverse, y))
    for s in range(len(thetas)):
        close = math.inf
        for j in range(n):
            difference(Z, first[j], second[j], y)
            gap = 0.0
            for a in range(len(y)):
                gap += y[a] * thetas[s, a]
            gap += off[first[j]] - off[second[j]]
            gaps[s, j] = (gap if gap > least * widths[j] else least * widths[j]) + epsilon
            close = min(close, gaps[s, j])
        for j in range(n):
            gaps[s, j] = min(gaps[s, j], most * close)
        smallest = min(smallest, close)
    # Nothing is known yet: batches of one, each with a constant of its own.
    blind = smallest == 0.0
    if blind:
        smallest = 1.0
    for j in range(n):
        difference(Z, first[j], second[j], y)
        weight = smallest * math.sqrt(max(lowest, missing[j]))
        for s in range(len(thetas)):
            for a in range(len(y)):
                out[s, j, a] = y[a] * (weight if blind else weight / gaps[s, j])


@tiered(error_model="numpy", nogil=True)
def strongest(W, means, rivals, arms, chosen):
    """Write for each arm the first rival with the largest score expected; or -1."""
    for k in range(len(arms)):
        x, best = arms[k], -math.inf
        chosen[k] = -1
        for a in rivals:
            square = 0.0
            for c in range(W.shape[1]):
                part = W[a, c] - W[x, c]
                square += part * part
            if square > 0.0:
                score = (means[a] - means[x]) / math.sqrt(square)
                if score > best:
                    best, chosen[k] = score, a
