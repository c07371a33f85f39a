"""The compiled loops of `design.exchange`, cached on disk."""

import numpy as np
from numba import njit

from finalist.compiled.cache import kept

inlined = njit(inline="always", error_model="numpy")


@kept(error_model="numpy")
def raised(P, z, sign):
    """Change P = A^-1 in place to that of A + sign z z' (Sherman and Morrison 1950)."""
    Pz = P @ z
    factor = sign / (1.0 + sign * (z @ Pz))
    for i in range(len(z)):
        for j in range(len(z)):
            P[i, j] -= factor * Pz[i] * Pz[j]


@inlined
def restored(P, before):
    """Give P its values from before."""
    for i in range(len(P)):
        for j in range(len(P)):
            P[i, j] = before[i, j]


@kept(error_model="numpy")
def most_useful(Z, P, B, room):
    """Return the row whose pull lowers tr(M A^-1) most, B = P M P; -1 if none has room."""
    best, most = -1, -np.inf
    for i in range(len(Z)):
        if room[i] > 0:
            gain = (Z[i] @ B @ Z[i]) / (1.0 + Z[i] @ P @ Z[i])
            if gain > most:
                best, most = i, gain
    return best


@kept(error_model="numpy")
def improve(Z, counts, room, P, M, rounds, smallest):
    """Swap pulls while tr(M A^-1) falls by more than the part `smallest`; counts change in place.

    `room` is how many more pulls each row can have.
    """
    for _ in range(rounds):
        value = np.sum(P * M)
        B = P @ M @ P
        a = most_useful(Z, P, B, room)
        if a < 0:
            return
        before = P.copy()
        raised(P, Z[a], 1.0)
        counts[a] += 1
        B = P @ M @ P
        worst, least = -1, np.inf
        for i in range(len(Z)):
            if counts[i] > 0:
                left = 1.0 - Z[i] @ P @ Z[i]
                loss = (Z[i] @ B @ Z[i]) / left if left > 1e-9 else np.inf
                if loss < least:
                    worst, least = i, loss
        if worst == a or worst < 0:
            counts[a] -= 1
            restored(P, before)
            return
        raised(P, Z[worst], -1.0)
        counts[worst] -= 1
        if not np.sum(P * M) < (1.0 - smallest) * value:
            counts[a] -= 1
            counts[worst] += 1
            restored(P, before)
            return
        room[a] -= 1
        room[worst] += 1


@kept(error_model="numpy")
def descend(Z, left, P, M, order):
    """Fill `order` with rows, each time the one that lowers tr(M A^-1) most; `left` is used up."""
    for t in range(len(order)):
        i = most_useful(Z, P, P @ M @ P, left)
        if i < 0:
            return t
        order[t] = i
        left[i] -= 1
        raised(P, Z[i], 1.0)
    return len(order)
