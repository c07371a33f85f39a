"""The compiled inner loop of the greedy rules, cached on disk.

`run` and `run_mean` are all that is called from outside; the steps they are made of are inlined.
Maxima are written as comparisons, which the compiler turns into fast code, unlike `max`.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from finalist.compiled.cache import kept

#: Values closer than this, relatively, are ties.
TIE = 1e-9
#: Rank-one updates between two fresh inverses.
REFRESH = 5000

# NaN is not assumed away: where it arises, a comparison with it is false and decides nothing.
_FLAGS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"nsz"}}
inlined = njit(inline="always", **_FLAGS)


class State(NamedTuple):
    """Arms, directions, the design matrix A and the variances under it, changed in place.

    Attributes
    ----------
    Z : (K, r) array
        The arms.
    Y : (M, r) array
        The directions, unless they are all pairs of arms.
    pairs : bool
        Whether they are.
    inverse : (r, r) array
        A^-1, kept for a list of directions.
    cross : (K, K) array
        z_i'A^-1 z_j, kept for pairs.
    leverage : (K,) array
        z_i'A^-1 z_i.
    f : (M,) array
        y'A^-1 y of every direction, pairs in the order (0, 1), (0, 2), ...
    rowmax : (K - 1,) or (1,) array
        The largest f among the pairs (i, .), or among all directions.
    a, dots, after, total : (r,), (max(K, M),), (K,), (K,) arrays
        Room for one step.
    """

    Z: np.ndarray
    Y: np.ndarray
    pairs: bool
    inverse: np.ndarray
    cross: np.ndarray
    leverage: np.ndarray
    f: np.ndarray
    rowmax: np.ndarray
    a: np.ndarray
    dots: np.ndarray
    after: np.ndarray
    total: np.ndarray


@inlined
def multiply(M, v, out):
    """Write M v to `out`."""
    for i in range(len(M)):
        total = 0.0
        for j in range(len(v)):
            total += M[i, j] * v[j]
        out[i] = total


@inlined
def consider(value, tied, leverage, dots, after, total):
    """Lower-bound what every arm leaves by what it leaves of one direction.

    Pulling z leaves y'A^-1 y - (z'A^-1 y)^2 / (1 + z'A^-1 z), by the matrix inversion lemma.
    """
    for c in range(len(after)):
        reduction = dots[c] * dots[c] / (1.0 + leverage[c])
        left = value - reduction
        after[c] = left if left > after[c] else after[c]
        total[c] += tied * reduction


@inlined
def project(i, j, Z, Y, pairs, inverse, cross, a, dots):
    """Write z'A^-1 y of every arm to `dots`, y being the pair (i, j) or row j of Y."""
    if pairs:
        for c in range(len(Z)):
            dots[c] = cross[i, c] - cross[j, c]
    else:
        multiply(inverse, Y[j], a)
        multiply(Z, a, dots)


@inlined
def choose(Z, Y, pairs, inverse, cross, leverage, f, rowmax, a, dots, after, total):
    """Return argmin_i max_y y'(A + z_i z_i')^-1 y.

    Only directions above what the best reduction of the current worst one leaves can
    decide. Ties go to the largest total reduction over the current worst directions, then
    to the first arm (the paper does not say; without a rule one arm is pulled for ever).
    """
    K = len(Z)
    row, start = 0, 0
    skip = 0
    for i in range(len(rowmax)):
        if rowmax[i] > rowmax[row]:
            row, start = i, skip
        skip += K - 1 - i
    top = rowmax[row]
    limit = top * (1.0 - TIE)
    k = start
    while k < len(f) - 1 and f[k] != top:  # NaN is equal to nothing
        k += 1
    for c in range(K):
        after[c] = 0.0
    project(row, row + 1 + k - start if pairs else k, Z, Y, pairs, inverse, cross, a, dots)
    consider(top, 0.0, leverage, dots, after, total)
    floor = min(after.min(), limit)
    for c in range(K):
        total[c] = 0.0
    start = 0
    for i in range(len(rowmax)):
        width = K - 1 - i if pairs else len(f)
        if rowmax[i] > floor:
            for k in range(width):
                value = f[start + k]
                if value > floor:
                    j = i + 1 + k if pairs else k
                    project(i, j, Z, Y, pairs, inverse, cross, a, dots)
                    tied = 1.0 if value >= limit else 0.0
                    consider(value, tied, leverage, dots, after, total)
        start += width
    least = after.min() * (1.0 + TIE)
    most = 0.0
    for i in range(K):
        if after[i] <= least and total[i] > most:
            most = total[i]
    best = 0
    while after[best] > least or total[best] < most * (1.0 - TIE):
        best += 1
    return best


@inlined
def lower(values, here, dots, scale):
    """Subtract (here - dots)^2 * scale from the values and return the largest that is left."""
    for j in range(len(values)):
        dot = here - dots[j]
        values[j] -= dot * dot * scale
    largest = values[0]
    for j in range(len(values)):
        largest = values[j] if values[j] > largest else largest
    return largest


@inlined
def absorb(arm, Z, Y, pairs, inverse, cross, leverage, f, rowmax, a, dots):
    """Add one pull of an arm to the state by a rank-one update."""
    K, r = Z.shape
    scale = 1.0 / (1.0 + leverage[arm])
    if pairs:
        for c in range(K):
            dots[c] = cross[arm, c]
        start = 0
        for i in range(K):
            if i < K - 1:
                width = K - 1 - i
                rowmax[i] = lower(f[start : start + width], dots[i], dots[i + 1 :], scale)
                start += width
            factor = dots[i] * scale
            for c in range(K):
                cross[i, c] -= factor * dots[c]
    else:
        multiply(inverse, Z[arm], a)
        multiply(Y, a, dots)
        rowmax[0] = lower(f, 0.0, dots, scale)
        multiply(Z, a, dots)
        for i in range(r):
            for j in range(r):
                inverse[i, j] -= a[i] * a[j] * scale
    for i in range(K):
        leverage[i] -= dots[i] * dots[i] * scale


@kept(**_FLAGS)
def run(state, picks, fresh):
    """Fill `picks` with the next greedy pulls; `fresh` of them are allowed before a refresh."""
    Z, Y, pairs, inverse, cross, leverage, f, rowmax, a, dots, after, total = state
    steps = min(len(picks), fresh)
    for t in range(steps):
        arm = choose(Z, Y, pairs, inverse, cross, leverage, f, rowmax, a, dots, after, total)
        absorb(arm, Z, Y, pairs, inverse, cross, leverage, f, rowmax, a, dots)
        picks[t] = arm
    return steps


class MeanState(NamedTuple):
    """Arms and the design matrix A, changed in place.

    Attributes
    ----------
    Z : (K, r) array
        The arms in span coordinates, in which the mean of z z' is I.
    solved : (K, r) array
        A^-1 z_i.
    leverage : (K,) array
        z_i'A^-1 z_i.
    """

    Z: np.ndarray
    solved: np.ndarray
    leverage: np.ndarray


@kept(**_FLAGS)
def run_mean(state, picks, fresh):
    """Fill `picks` like `run`, with argmin_i of the mean over arms y of y'(A + z_i z_i')^-1 y.

    By the matrix inversion lemma the mean, which is tr A^-1 where the mean of y y' is I, falls by
    ||A^-1 z_i||^2 / (1 + z_i'A^-1 z_i). Ties go to the first arm.
    """
    Z, solved, leverage = state
    K, r = Z.shape
    a, gain = np.empty(r), np.empty(K)
    steps = min(len(picks), fresh)
    for t in range(steps):
        most = 0.0
        for i in range(K):
            square = 0.0
            for j in range(r):
                square += solved[i, j] * solved[i, j]
            gain[i] = square / (1.0 + leverage[i])
            most = gain[i] if gain[i] > most else most
        arm = 0
        while gain[arm] < most * (1.0 - TIE):
            arm += 1
        scale = 1.0 / (1.0 + leverage[arm])
        for j in range(r):
            a[j] = solved[arm, j]
        for i in range(K):
            dot = 0.0
            for j in range(r):
                dot += Z[i, j] * a[j]
            for j in range(r):
                solved[i, j] -= dot * scale * a[j]
            leverage[i] -= dot * dot * scale
        picks[t] = arm
    return steps
