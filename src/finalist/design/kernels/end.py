"""The compiled loop of `design.end`, cached on disk."""

import math

import numpy as np

from finalist.compiled.tiers import tiered

LOG_2_PI = math.log(2.0 * math.pi)
#: A variance falls by at least this part of what it is.
LEAST_FALL = 1e-9

inlined = tiered(inline="always", error_model="numpy")


@tiered(error_model="numpy")
def invert(A, P):
    """Write the inverse of a positive definite matrix, given by its lower triangle, to P."""
    r = len(A)
    for a in range(r):  # A = LL'
        for b in range(a + 1):
            total = A[a, b]
            for c in range(b):
                total -= A[a, c] * A[b, c]
            A[a, b] = total / A[b, b] if a > b else math.sqrt(total)
    for a in range(r):  # the rows of L^-1
        for b in range(r):
            P[a, b] = 1.0 if a == b else 0.0
        for c in range(a):
            for b in range(c + 1):
                P[a, b] -= A[a, c] * P[c, b]
        for b in range(a + 1):
            P[a, b] /= A[a, a]
    for a in range(r):
        for b in range(r):
            A[a, b] = 0.0
        for c in range(a, r):
            for b in range(c + 1):
                A[a, b] += P[c, a] * P[c, b]
    for a in range(r):
        for b in range(r):
            P[a, b] = A[a, b]


@inlined
def image_of(X, i, P, image):
    """Write Px of row i."""
    for b in range(len(P)):
        image[b] = 0.0
    for a in range(len(P)):
        if X[i, a] != 0.0:
            for b in range(len(P)):
                image[b] += X[i, a] * P[a, b]


@tiered(error_model="numpy")
def log_slope(lead, now, left, epsilon):
    """Log of d E[error] / dv of a pair when its variance has gone from `now` to `left`."""
    fall = max(now - left, LEAST_FALL * now)
    return -0.5 * (lead * lead / fall + epsilon * epsilon / left + math.log(left * fall)) - LOG_2_PI


@tiered(error_model="numpy")
def improve(Z, A, Y, leads, variances, pulls, epsilon, steps, weights, M):
    """Improve a design in place, by multiplicative updates.

    Parameters
    ----------
    Z : (K, r) array, A : (r, r) array, Y : (n, r) array
    leads, variances : (n,) arrays
    pulls, epsilon : float
    steps : int
    weights : (K,) array, M : (r, r) array
        Changed; M is that of the last step.
    """
    K, r = Z.shape
    full, P, logs = np.empty((r, r)), np.empty((r, r)), np.empty(len(Y))
    image, other = np.empty(r), np.empty((1, r))
    for _ in range(steps):
        for a in range(r):
            for b in range(r):
                full[a, b], M[a, b] = A[a, b], 0.0
        for i in range(K):
            for a in range(r):
                scaled = pulls * weights[i] * Z[i, a]
                if scaled != 0.0:
                    for b in range(r):
                        full[a, b] += scaled * Z[i, b]
        invert(full, P)
        top = -math.inf
        for j in range(len(Y)):
            image_of(Y, j, P, image)
            left = 0.0
            for a in range(r):
                left += image[a] * Y[j, a]
            logs[j] = log_slope(leads[j], variances[j], left, epsilon)
            top = max(top, logs[j])
        for j in range(len(Y)):
            slope = math.exp(logs[j] - top)
            for a in range(r):
                scaled = slope * Y[j, a]
                if scaled != 0.0:
                    for b in range(r):
                        M[a, b] += scaled * Y[j, b]
        whole = 0.0
        for i in range(K):
            image_of(Z, i, P, image)
            for a in range(r):
                other[0, a] = image[a]
            image_of(other, 0, M, image)
            total = 0.0
            for a in range(r):
                total += image[a] * other[0, a]
            weights[i] *= math.sqrt(max(total, 0.0))
            whole += weights[i]
        for i in range(K):
            weights[i] /= whole
