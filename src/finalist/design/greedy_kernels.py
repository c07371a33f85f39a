"""The compiled inner loop of the greedy rules.

Functions here are plain numba, cached on disk. `choose` and `absorb` are one step; `run`
takes many. The directions are all pairs of arms (`pairs`), or the rows of `Y`. The state
is a series of arrays, changed in place:

    inverse (r, r)   A^-1
    cross (K, K)     z_i'A^-1 z_j, kept for pairs only
    leverage (K,)    z_i'A^-1 z_i
    f (M,)           y'A^-1 y of every direction, pairs in the order (0,1), (0,2), ...
    rowmax (n,)      the largest f among the pairs (i, .), or among all directions
    a (r,), dots (n,), after (K,), total (K,)   room for one step
"""

from numba import njit

#: Values closer than this, relatively, are ties.
TIE = 1e-9
#: Rank-one updates between two fresh inverses.
REFRESH = 5000

# No NaN can arise, which lets the compiler vectorise maxima; sums keep their order.
_FLAGS = {"cache": True, "error_model": "numpy", "fastmath": {"nnan", "nsz"}}


@njit(**_FLAGS)
def multiply(M, v, out):  # type: ignore[no-untyped-def]
    """Write M v to `out`."""
    for i in range(len(M)):
        total = 0.0
        for j in range(len(v)):
            total += M[i, j] * v[j]
        out[i] = total


@njit(**_FLAGS)
def subtract(row, factor, v):  # type: ignore[no-untyped-def]
    """Subtract factor * v from a row."""
    for j in range(len(row)):
        row[j] -= factor * v[j]


@njit(**_FLAGS)
def lower(values, here, dots, scale):  # type: ignore[no-untyped-def]
    """Subtract (here - dots)^2 * scale from the values and return the largest that is left."""
    largest = 0.0
    for j in range(len(values)):
        dot = here - dots[j]
        values[j] -= dot * dot * scale
        largest = max(largest, values[j])
    return largest


@njit(**_FLAGS)
def consider(value, tied, dots, leverage, after, total):  # type: ignore[no-untyped-def]
    """Lower-bound what every arm leaves by what it leaves of one direction.

    Pulling z leaves y'A^-1 y - (z'A^-1 y)^2 / (1 + z'A^-1 z), by the matrix inversion lemma.
    """
    for i in range(len(leverage)):
        reduction = dots[i] * dots[i] / (1.0 + leverage[i])
        after[i] = max(after[i], value - reduction)
        if tied:
            total[i] += reduction


@njit(**_FLAGS)
def project(i, j, Z, Y, pairs, inverse, cross, a, dots):  # type: ignore[no-untyped-def]
    """Write z'A^-1 y of every arm to `dots`, y being the pair (i, j) or row j of Y."""
    if pairs:
        for c in range(len(Z)):
            dots[c] = cross[i, c] - cross[j, c]
    else:
        multiply(inverse, Y[j], a)
        multiply(Z, a, dots)


@njit(**_FLAGS)
def choose(Z, Y, pairs, inverse, cross, leverage, f, rowmax, a, dots, after, total):  # type: ignore[no-untyped-def]
    """Return argmin_i max_y y'(A + z_i z_i')^-1 y.

    Only directions above what the best reduction of the current worst one leaves can
    decide. Ties go to the largest total reduction over the current worst directions, then
    to the first arm (the paper does not say; without a rule one arm is pulled for ever).
    """
    K = len(Z)
    row = rowmax.argmax()
    top = rowmax[row]
    limit = top * (1.0 - TIE)
    after[:] = 0.0
    total[:] = 0.0
    floor = limit
    for turn in range(2):
        start = 0
        for i in range(len(rowmax)):
            width = K - 1 - i if pairs else len(f)
            # First the worst direction alone; then all that its best reduction leaves above.
            if (i == row) if turn == 0 else (rowmax[i] > floor):
                for k in range(width):
                    value = f[start + k]
                    if value == top if turn == 0 else value > floor:
                        j = i + 1 + k if pairs else k
                        project(i, j, Z, Y, pairs, inverse, cross, a, dots)
                        consider(value, turn == 1 and value >= limit, dots, leverage, after, total)
                        if turn == 0:
                            break
            start += width
        floor = min(after.min(), limit)
    least = after.min() * (1.0 + TIE)
    most = 0.0
    for i in range(K):
        if after[i] <= least:
            most = max(most, total[i])
    best = 0
    while after[best] > least or total[best] < most * (1.0 - TIE):
        best += 1
    return best


@njit(**_FLAGS)
def absorb(arm, Z, Y, pairs, inverse, cross, leverage, f, rowmax, a, dots, after, total):  # type: ignore[no-untyped-def]
    """Add one pull of an arm to the state by a rank-one update."""
    K = len(Z)
    scale = 1.0 / (1.0 + leverage[arm])
    multiply(inverse, Z[arm], a)
    if not pairs:
        multiply(Y, a, dots)
        rowmax[0] = lower(f, 0.0, dots, scale)
    multiply(Z, a, dots)
    if pairs:
        start = 0
        for i in range(K - 1):
            width = K - 1 - i
            rowmax[i] = lower(f[start : start + width], dots[i], dots[i + 1 :], scale)
            start += width
        for i in range(K):
            subtract(cross[i], dots[i] * scale, dots)
    for i in range(K):
        leverage[i] -= dots[i] * dots[i] * scale
    for i in range(len(a)):
        subtract(inverse[i], a[i] * scale, a)


@njit(**_FLAGS)
def run(picks, fresh, Z, Y, pairs, inverse, cross, leverage, f, rowmax, a, dots, after, total):  # type: ignore[no-untyped-def]
    """Fill `picks` with the next greedy pulls; `fresh` of them are allowed before a refresh."""
    steps = min(len(picks), fresh)
    for t in range(steps):
        arm = choose(Z, Y, pairs, inverse, cross, leverage, f, rowmax, a, dots, after, total)
        absorb(arm, Z, Y, pairs, inverse, cross, leverage, f, rowmax, a, dots, after, total)
        picks[t] = arm
    return steps
