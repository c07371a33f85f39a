"""The compiled loops of `design.exchange`, cached on disk.

Rows are short, so that plain loops are faster than calls of BLAS, and compile sooner.
"""

import math

import numpy as np

from finalist.compiled.tiers import tiered

inlined = tiered(inline="always", error_model="numpy")


@tiered(error_model="numpy")
def form(Z, i, P, image):
    """Return z'Pz of row i; `image` is room for Pz."""
    r, total = len(P), 0.0
    for b in range(r):
        image[b] = 0.0
    for a in range(r):
        entry = Z[i, a]
        if entry != 0.0:
            for b in range(r):
                image[b] += entry * P[a, b]
    for b in range(r):
        total += image[b] * Z[i, b]
    return total


@inlined
def product(X, Y, out):
    """Write the product of two square matrices."""
    r = len(X)
    for a in range(r):
        for b in range(r):
            out[a, b] = 0.0
        for c in range(r):
            for b in range(r):
                out[a, b] += X[a, c] * Y[c, b]


@tiered(error_model="numpy")
def effect(P, M, half, B):
    """Write P M P to B; `half` is room for a product."""
    product(P, M, half)
    product(half, P, B)


@tiered(error_model="numpy")
def raised(P, Z, i, sign, Pz):
    """Change P = A^-1 in place to that of A + sign z z' (Sherman and Morrison 1950), z = z_i."""
    r, whole = len(P), 0.0
    for a in range(r):
        Pz[a] = 0.0
        for b in range(r):
            Pz[a] += P[a, b] * Z[i, b]
    for a in range(r):
        whole += Z[i, a] * Pz[a]
    factor = sign / (1.0 + sign * whole)
    for a in range(r):
        for b in range(r):
            P[a, b] -= factor * Pz[a] * Pz[b]


@inlined
def trace(P, M):
    """Return tr(M P)."""
    total = 0.0
    for a in range(len(P)):
        for b in range(len(P)):
            total += P[a, b] * M[a, b]
    return total


@tiered(error_model="numpy")
def most_useful(Z, P, B, room, image):
    """Return the row whose pull lowers tr(M A^-1) most, B = P M P; -1 if none has room.

    `image` is room for a row.
    """
    best, most = -1, -math.inf
    for i in range(len(Z)):
        if room[i] > 0:
            gain = form(Z, i, B, image) / (1.0 + form(Z, i, P, image))
            if gain > most:
                best, most = i, gain
    return best


@tiered(error_model="numpy")
def improve(Z, counts, room, P, M, rounds, smallest):
    """Swap pulls while tr(M A^-1) falls by more than the part `smallest`; counts change in place.

    `room` is how many more pulls each row can have. P = A^-1 is used up.
    """
    r = len(P)
    half, B, Pz = np.empty((r, r)), np.empty((r, r)), np.empty(r)
    for _ in range(rounds):
        value = trace(P, M)
        effect(P, M, half, B)
        a = most_useful(Z, P, B, room, Pz)
        if a < 0:
            return
        raised(P, Z, a, 1.0, Pz)
        counts[a] += 1
        effect(P, M, half, B)
        worst, least = a, math.inf
        for i in range(len(Z)):
            if counts[i] > 0:
                left = 1.0 - form(Z, i, P, Pz)
                loss = form(Z, i, B, Pz) / left if left > 1e-9 else math.inf
                if loss < least:
                    worst, least = i, loss
        if worst == a:
            counts[a] -= 1
            return
        raised(P, Z, worst, -1.0, Pz)
        counts[worst] -= 1
        if not trace(P, M) < (1.0 - smallest) * value:
            counts[a] -= 1
            counts[worst] += 1
            return
        room[a] -= 1
        room[worst] += 1


@tiered(error_model="numpy")
def descend(Z, left, P, M, order):
    """Fill `order` with rows, each time the one that lowers tr(M A^-1) most.

    `left` and P = A^-1 are used up.
    """
    r = len(P)
    half, B, Pz = np.empty((r, r)), np.empty((r, r)), np.empty(r)
    for t in range(len(order)):
        effect(P, M, half, B)
        i = most_useful(Z, P, B, left, Pz)
        if i < 0:
            return t
        order[t] = i
        left[i] -= 1
        raised(P, Z, i, 1.0, Pz)
    return len(order)
