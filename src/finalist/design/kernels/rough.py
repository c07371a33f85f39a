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
def weighted_squares(X, weights, scaled, out):
    """Write sum_i w_i x_i x_i' for columns x_i, its lower triangle, to `out`."""
    for a in range(len(X)):
        for i in range(len(weights)):
            scaled[i] = weights[i] * X[a, i]
        for b in range(a + 1):
            total = 0.0
            for i in range(len(weights)):
                total += scaled[i] * X[b, i]
            out[a, b] = total


@inlined
def transposed(X):
    """Return the rows of X as columns, one entry of all of them after the other in memory."""
    out = np.empty((X.shape[1], len(X)))
    for i in range(len(X)):
        for a in range(X.shape[1]):
            out[a, i] = X[i, a]
    return out


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
    Zt, Yt, P, f, d = transposed(Z), transposed(Y), np.empty((r, M)), np.empty(M), np.empty(K)
    of_arms, of_directions, best = np.empty(K), np.empty(M), lam.copy()
    value, lower = np.inf, 0.0
    for _ in range(steps):
        weighted_squares(Zt, lam, of_arms, A)
        invert(A, L, inverse)
        for j in range(M):
            f[j] = 0.0
        for a in range(r):
            for j in range(M):
                P[a, j] = 0.0
            for b in range(r):
                entry = inverse[a, b]
                for j in range(M):
                    P[a, j] += entry * Yt[b, j]
            for j in range(M):
                f[j] += P[a, j] * Yt[a, j]
        top = 0.0
        for j in range(M):
            top = f[j] if f[j] > top else top
        # d_i = sum_j m_j (z_i'A^-1 y_j)^2, and the certificate of `minimax` with m_j f_j^2.
        weighted_squares(P, m, of_directions, B)
        for i in range(K):
            d[i] = 0.0
        for a in range(r):
            entry = 0.5 * B[a, a]
            for i in range(K):
                of_arms[i] = entry * Zt[a, i]
            for b in range(a):
                entry = B[a, b]
                for i in range(K):
                    of_arms[i] += entry * Zt[b, i]
            for i in range(K):
                d[i] += of_arms[i] * Zt[a, i]
        mean, most, bound = 0.0, 0.0, 0.0
        for i in range(K):
            d[i] = 0.0 if d[i] < 0.0 else 2.0 * d[i]  # rounding may make a zero negative
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
