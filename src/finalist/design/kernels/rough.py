"""The compiled loop of `rough_design`, cached on disk."""

import math

import numpy as np
from numba import njit

from finalist.compiled.cache import kept

#: No weight becomes smaller than this, so that the design matrix stays regular.
LEAST_WEIGHT = 1e-9

inlined = njit(inline="always", error_model="numpy", fastmath={"nsz", "contract", "reassoc"})


@inlined
def invert(A, L, inverse):
    """Write the inverse of the symmetric matrix A, given by its lower triangle."""
    r = len(A)
    for a in range(r):
        for b in range(a + 1):
            total = A[a, b]
            for c in range(b):
                total -= L[a, c] * L[b, c]
            L[a, b] = total / L[b, b] if a > b else math.sqrt(max(total, 1e-300))
    # The inverse of the factor, in place of the upper triangle of `inverse`.
    for a in range(r):
        inverse[a, a] = 1.0 / L[a, a]
        for b in range(a):
            total = 0.0
            for c in range(b, a):
                total -= L[a, c] * inverse[b, c]
            inverse[b, a] = total / L[a, a]
    for a in range(r):
        for b in range(a + 1):
            total = 0.0
            for c in range(a, r):
                total += inverse[a, c] * inverse[b, c]
            L[a, b] = total
    for a in range(r):
        for b in range(a + 1):
            inverse[a, b] = L[a, b]
            inverse[b, a] = L[a, b]


@inlined
def weighted_squares(X, weights, out):
    """Write sum_i w_i x_i x_i', its lower triangle, to `out`."""
    for a in range(X.shape[1]):
        for b in range(X.shape[1]):
            out[a, b] = 0.0
    for i in range(len(X)):
        for a in range(X.shape[1]):
            scaled = weights[i] * X[i, a]
            for b in range(a + 1):
                out[a, b] += scaled * X[i, b]


@inlined
def rescale(weights, worth, scale):
    """Multiply weights by the roots of what each is worth, for a scale, so that they sum to 1."""
    whole = 0.0
    for i in range(len(weights)):
        weights[i] = max(weights[i] * math.sqrt(worth[i] / scale), LEAST_WEIGHT)
        whole += weights[i]
    for i in range(len(weights)):
        weights[i] /= whole


@kept(error_model="numpy", fastmath={"nsz", "contract", "reassoc"})
def run(Z, Y, lam, m, steps, tol):
    """Improve weights `lam` of arms and `m` of directions; return value and lower bound.

    `lam` ends as the best design found. Both sum to 1 and are changed in place.
    """
    K, r = Z.shape
    M = len(Y)
    A, L, inverse, B = np.empty((r, r)), np.empty((r, r)), np.empty((r, r)), np.empty((r, r))
    P, f, d, best = np.empty((M, r)), np.empty(M), np.empty(K), lam.copy()
    value, lower = np.inf, 0.0
    for _ in range(steps):
        weighted_squares(Z, lam, A)
        invert(A, L, inverse)
        top = 0.0
        for j in range(M):
            total = 0.0
            for a in range(r):
                dot = 0.0
                for b in range(r):
                    dot += inverse[a, b] * Y[j, b]
                P[j, a] = dot
                total += dot * Y[j, a]
            f[j] = total
            top = total if total > top else top
        # d_i = sum_j m_j (z_i'A^-1 y_j)^2, and the certificate of `minimax` with m_j f_j^2.
        weighted_squares(P, m, B)
        mean, most, bound = 0.0, 0.0, 0.0
        for i in range(K):
            total = 0.0
            for a in range(r):
                dot = 0.5 * B[a, a] * Z[i, a]
                for b in range(a):
                    dot += B[a, b] * Z[i, b]
                total += dot * Z[i, a]
            d[i] = 0.0 if total < 0.0 else 2.0 * total  # rounding may make a zero negative
            mean += lam[i] * d[i]
            most = d[i] if d[i] > most else most
        for j in range(M):
            bound += m[j] * f[j] * f[j]
        if not (bound < np.inf and mean < np.inf and most > 0.0):
            break  # not a number: neither a value nor a certificate
        if top < value:
            value = top
            for i in range(K):
                best[i] = lam[i]
        lower = bound / most if bound / most > lower else lower
        if value <= (1.0 + tol) * lower:
            break
        rescale(lam, d, mean)
        rescale(m, f, top)
    for i in range(K):
        lam[i] = best[i]
    return value, lower
