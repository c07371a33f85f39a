"""The small dense linear algebra that the design solvers share.

Arms are rows z of span coordinates. The solvers never form a K x K or a pairs x d matrix:
what they need from all arms is a scan of squared row norms, done in blocks.
"""

import numpy as np
from scipy.linalg import qr
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri

from finalist.inference.information import row_norms
from finalist.shapes import Float, Int


def design_matrix(
    Z: Float[np.ndarray, "p r"], nu: Float[np.ndarray, " p"]
) -> Float[np.ndarray, "r r"]:
    """Return N = sum_i nu_i z_i z_i'."""
    return np.asarray((Z * nu[:, None]).T @ Z)


def inverse_root(N: Float[np.ndarray, "r r"]) -> Float[np.ndarray, "r r"]:
    """Return the lower triangular R with R'R = N^-1; raises LinAlgError if N is singular."""
    lower, failed = dpotrf(N, lower=1, clean=1)
    if not failed:
        lower, failed = dtrtri(lower, lower=1)
    if failed:
        raise np.linalg.LinAlgError("the design matrix is singular")
    return np.asarray(lower)


class PositiveSystem:
    """A factorised positive semidefinite matrix.

    Near-duplicate arms make the Newton matrix numerically singular. A ridge of relative
    size 1e-14, raised until the Cholesky factor exists, only shortens the step: the
    certificate does not depend on it.
    """

    def __init__(self, M: Float[np.ndarray, "p p"]) -> None:
        self._factor, failed = dpotrf(M, lower=1, clean=0)
        ridge = 1e-14 * float(M.diagonal().max())
        while failed:
            if not np.isfinite(ridge) or ridge == 0.0:
                raise np.linalg.LinAlgError("the Newton matrix is not finite")
            self._factor, failed = dpotrf(M + ridge * np.eye(len(M)), lower=1, clean=0)
            ridge *= 100.0

    def solve(self, b: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        """Return M^-1 b."""
        return np.asarray(dpotrs(self._factor, b, lower=1)[0])


def step_length(fraction: float, *relative_changes: Float[np.ndarray, " _"]) -> float:
    """Return the step in [0, 1] that keeps positive what changes by these parts of itself.

    `fraction` of the way to the boundary is used when the full step leaves it.
    """
    steepest = min(float(change.min()) for change in relative_changes)
    return min(1.0, -fraction / steepest) if steepest < 0.0 else 1.0


def largest(values: Float[np.ndarray, " n"], count: int) -> Int[np.ndarray, " m"]:
    """Return the indices of the `count` largest values, in increasing order of index."""
    if len(values) <= count:
        return np.arange(len(values))
    return np.sort(np.argpartition(-values, count - 1)[:count])


def spanning_arms(Z: Float[np.ndarray, "K r"]) -> Int[np.ndarray, " r"]:
    """Return r linearly independent arms, long ones first to be chosen, sorted by index.

    The arms of highest leverage usually span. Where they do not (the corners of a cube all
    have the same), each missing dimension takes the arm with the longest residual.
    """
    K, r = Z.shape
    leverage = np.einsum("ij,ij->i", Z, Z)
    top = largest(leverage, min(K, 8 * r))
    Q, upper, pivot = qr(Z[top].T, mode="economic", pivoting=True, check_finite=False)
    size = np.abs(np.diag(upper))
    found = int(np.count_nonzero(size > 1e-6 * size[0]))
    chosen = list(top[pivot[:found]])
    Q = Q[:, :found]
    while len(chosen) < r:
        chosen.append(int(np.argmax(leverage - row_norms(Z, Q.T))))
        Q = qr(Z[chosen].T, mode="economic", check_finite=False)[0]
    return np.sort(np.asarray(chosen, dtype=np.int64))
