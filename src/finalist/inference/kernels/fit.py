"""The compiled factorisation of `inference.quick`, cached on disk.

What is not clearly regular, or not a number, is left to `information`, which takes more care.
"""

import math

import numpy as np

from finalist.compiled.tiers import tiered

#: A triangular factor whose diagonal varies by less than this is regular for certain.
CLEARLY_REGULAR = 1e-6
#: Rows that are sorted one by one; of more, LAPACK is as fast.
MOST_ROWS = 400

inlined = tiered(inline="always", error_model="numpy")


@tiered(error_model="numpy")
def heaviest_first(Z, w, rows, size):
    """Write the rows with weight, times its root, by their largest entry; return how many."""
    p, r = 0, Z.shape[1]
    for i in range(len(Z)):
        if not w[i] > 0.0:
            continue
        if p == len(rows):
            return -1
        root, largest, at = math.sqrt(w[i]), 0.0, p
        for a in range(r):
            largest = max(largest, abs(root * Z[i, a]))
        while at > 0 and size[at - 1] < largest:
            size[at] = size[at - 1]
            for a in range(r):
                rows[at, a] = rows[at - 1, a]
            at -= 1
        size[at] = largest
        for a in range(r):
            rows[at, a] = root * Z[i, a]
        p += 1
    return p


@tiered(error_model="numpy")
def triangle(rows):
    """Make rows upper triangular, by Householder reflections with LAPACK's signs."""
    p, r = rows.shape
    for j in range(r):
        below = 0.0
        for i in range(j + 1, p):
            below += rows[i, j] * rows[i, j]
        if below == 0.0:
            continue
        alpha = rows[j, j]
        beta = -math.copysign(math.sqrt(alpha * alpha + below), alpha)
        tau = (beta - alpha) / beta
        for i in range(j + 1, p):
            rows[i, j] /= alpha - beta
        rows[j, j] = beta
        for c in range(j + 1, r):
            total = rows[j, c]
            for i in range(j + 1, p):
                total += rows[i, j] * rows[i, c]
            total *= tau
            rows[j, c] -= total
            for i in range(j + 1, p):
                rows[i, c] -= total * rows[i, j]


@tiered(error_model="numpy")
def factorise(Z, w, root, inverse):
    """Write R with R'R = sum_i w_i z_i z_i', and R'^-1; return whether it is clearly regular."""
    r = Z.shape[1]
    count = 0
    for i in range(len(Z)):
        count += w[i] > 0.0
    if count < r or count > MOST_ROWS:
        return False
    rows, size = np.empty((count, r)), np.empty(count)
    heaviest_first(Z, w, rows, size)
    triangle(rows)
    low, high = math.inf, 0.0
    for a in range(r):
        low, high = min(low, abs(rows[a, a])), max(high, abs(rows[a, a]))
        for b in range(r):
            root[a, b] = rows[a, b] if b >= a else 0.0
    if not (low > CLEARLY_REGULAR * high and high < math.inf):
        return False
    for b in range(r):  # the columns of R'^-1, which is lower triangular
        for a in range(r):
            total = 1.0 if a == b else 0.0
            for c in range(b, a):
                total -= root[c, a] * inverse[c, b]
            inverse[a, b] = total / root[a, a] if a >= b else 0.0
            if not math.isfinite(root[b, a] + inverse[a, b]):
                return False
    return True


@tiered(error_model="numpy")
def solve(Z, w, mean, inverse, phi):
    """Write the least-squares estimate, refined twice on its residuals as in `estimate`."""
    K, r = Z.shape
    side, half = np.empty(r), np.empty(r)
    for a in range(r):
        phi[a] = 0.0
    for _ in range(3):
        for a in range(r):
            side[a] = 0.0
        for i in range(K):
            if w[i] > 0.0:
                rest = mean[i]
                for a in range(r):
                    rest -= Z[i, a] * phi[a]
                rest *= w[i]
                for a in range(r):
                    side[a] += Z[i, a] * rest
        for a in range(r):
            half[a] = 0.0
            for b in range(a + 1):
                half[a] += inverse[a, b] * side[b]
        for b in range(r):
            for a in range(b, r):
                phi[b] += inverse[a, b] * half[a]
