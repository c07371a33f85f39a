"""The compiled walk through the rewards of an epoch, cached on disk; `epochs` explains it."""

import math

import numpy as np

from finalist.compiled.tiers import tiered

#: A triangular factor whose diagonal varies by less than this is regular for certain.
CLEARLY_REGULAR = 1e-6


@tiered(error_model="numpy")
def add_row(R, d, row, value):
    """Add a row to a least-squares problem R x = d in place, by Givens rotations; row is used."""
    r = len(row)
    for j in range(r):
        if row[j] == 0.0:
            continue
        length = math.hypot(R[j, j], row[j])
        c, s = R[j, j] / length, row[j] / length
        R[j, j] = length
        for k in range(j + 1, r):
            upper, lower = R[j, k], row[k]
            R[j, k] = c * upper + s * lower
            row[k] = c * lower - s * upper
        upper = d[j]
        d[j] = c * upper + s * value
        value = c * value - s * upper


@tiered(error_model="numpy")
def is_regular(R):
    """Return whether all directions can be estimated, without a doubt."""
    low, high = math.inf, 0.0
    for j in range(len(R)):
        low, high = min(low, abs(R[j, j])), max(high, abs(R[j, j]))
    return low > CLEARLY_REGULAR * high


@tiered(error_model="numpy")
def walk(R, d, rows, values, look, Y, V, gaps):
    """Add rows one by one; after those with a look write 1 / (y'A^-1 y) and y'theta_hat.

    Parameters
    ----------
    R : (r, r) array, d : (r,) array
        The least-squares problem so far, changed in place.
    rows : (n, r) array, values : (n,) array
        Weighted rows and rewards.
    look : (n + 1,) array of bool
        Whether to look before the first row, then after each.
    Y : (m, r) array
        Directions.
    V, gaps : (L, m) arrays
        Out, one row for each look; V stays as it is where A is not regular yet.
    """
    at, w = 0, np.empty(R.shape[1])
    for t in range(len(rows) + 1):
        if t > 0:
            for j in range(len(w)):
                w[j] = rows[t - 1, j]
            add_row(R, d, w, values[t - 1])
        if not look[t]:
            continue
        if is_regular(R):
            for m in range(len(Y)):
                square = gap = 0.0
                for j in range(len(w)):  # R'w = y
                    w[j] = Y[m, j]
                    for i in range(j):
                        w[j] -= R[i, j] * w[i]
                    w[j] /= R[j, j]
                    square += w[j] * w[j]
                    gap += w[j] * d[j]
                V[at, m], gaps[at, m] = 1.0 / square, gap
        at += 1
