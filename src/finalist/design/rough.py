"""Designs for a few directions to a percent or so, fast: for decisions taken many times.

Multiplicative updates on both sides of  min over designs, max over weights m of directions, of
sum_j m_j y_j'Lambda^-1 y_j: an arm's weight grows with the square root of its derivative (Silvey,
Titterington and Torsney 1978), a direction's with that of its variance. That is slow to the last
digits and fast to the first two, which is all a batch needs. The result has the certificate of
`minimax`: value <= (1 + gap) optimum.

Of many arms and directions only a working set matters. Scans of all of them add the arms with the
largest derivatives and the directions with the largest variances, and give the certificate.
"""

import numpy as np
from jaxtyping import Float, Int

from finalist.compiled.arrays import read_only
from finalist.design.linalg import spanning_arms
from finalist.design.result import relative_gap
from finalist.inference.information import Information, information, row_norms

#: Steps after which the best so far is returned.
MAX_STEPS = 500
#: More arms or directions than this are treated by a working set.
SMALL = 256
#: With a working set: steps between two scans, the most scans, and what a scan adds at most.
STEPS, SCANS, ADDED = 100, 25, 24
#: The part of the weight that what is added begins with; less than `LIGHT` is dropped.
ENTRY, LIGHT = 0.1, 1e-5


def rough_design(
    Z: Float[np.ndarray, "K r"],
    Y: Float[np.ndarray, "M r"],
    tol: float = 1e-2,
    start: Float[np.ndarray, " K"] | None = None,
    steps: int = MAX_STEPS,
) -> tuple[Float[np.ndarray, " K"], float]:
    """Find a design that makes the largest y'Lambda^-1 y small.

    Parameters
    ----------
    Z : (K, r) array
        Arms in the coordinates of their span.
    Y : (M, r) array
        Directions in the same coordinates, none of them zero.
    tol : float
        The relative gap at which to stop.
    start : (K,) array, optional
        A design to start from; its arms and all others of a spanning set get some weight.
    steps : int
        The most steps.

    Returns
    -------
    weights : (K,) array
    gap : float
        How far, at most, the design is from the best one.

    Examples
    --------
    >>> weights, gap = rough_design(np.eye(2), np.array([[1.0, -2.0]]), tol=1e-3)
    >>> weights.round(2)
    array([0.33, 0.67])
    """
    weights, _, gap = rough_minimax(Z, Y, tol, start, steps)
    return weights, gap


def rough_minimax(
    Z: Float[np.ndarray, "K r"],
    Y: Float[np.ndarray, "M r"],
    tol: float = 1e-2,
    start: Float[np.ndarray, " K"] | None = None,
    steps: int = MAX_STEPS,
) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, " M"], float]:
    """Return what `rough_design` does, and between both the weights m of the directions.

    Examples
    --------
    >>> Y = np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 0.0]])
    >>> _, m, _ = rough_minimax(np.eye(2), Y, tol=1e-3)
    >>> m.round(2)
    array([0.5, 0.5, 0. ])
    """
    scaled = Y / np.abs(Y).max()
    if max(len(Z), len(Y)) <= SMALL:
        weights, m = np.empty(len(Z)), np.empty(len(Y))
        weights.fill(1.0 / len(Z))
        m.fill(1.0 / len(Y))
        if start is not None:
            weights = ENTRY * weights + (1.0 - ENTRY) * start / start.sum()
        gap = _improve(Z, scaled, weights, m, steps, tol)
        return weights, m, gap
    working, m = WorkingSet(Z, scaled, start), np.zeros(len(Y))
    weights, gap = working.solve(tol)
    m[working.directions] = working.m / working.m.sum()
    return weights, m, gap


def _improve(
    Z: Float[np.ndarray, "K r"],
    Y: Float[np.ndarray, "M r"],
    lam: Float[np.ndarray, " K"],
    m: Float[np.ndarray, " M"],
    steps: int,
    tol: float,
) -> float:
    """Improve the weights of arms and directions in place; return the gap."""
    import finalist.design.kernels.rough as kernels

    value, lower = kernels.run(read_only(Z), read_only(Y), lam, m, steps, tol)
    return relative_gap(float(value), float(lower))


class WorkingSet:
    """A few of many arms and directions, with their weights."""

    def __init__(
        self,
        Z: Float[np.ndarray, "K r"],
        Y: Float[np.ndarray, "M r"],
        start: Float[np.ndarray, " K"] | None,
    ) -> None:
        self._Z, self._Y = Z, Y
        self._always = spanning_arms(Z)  # without them the design matrix may become singular
        weights = np.zeros(len(Z))
        weights[self._always] = 1.0 / len(self._always)
        if start is not None:
            weights = ENTRY * weights + (1.0 - ENTRY) * start / start.sum()
        self.arms: Int[np.ndarray, " p"] = np.flatnonzero(weights)
        self.lam: Float[np.ndarray, " p"] = weights[self.arms]
        variances = self._variances(self._information())
        self.directions: Int[np.ndarray, " q"] = _largest(variances, 2 * ADDED)
        self.m: Float[np.ndarray, " q"] = np.full(len(self.directions), 1.0 / len(self.directions))

    def solve(self, tol: float) -> tuple[Float[np.ndarray, " K"], float]:
        """Return a design and its gap, at most `tol` unless `SCANS` scans do not suffice."""
        value, lower, best = np.inf, 0.0, np.zeros(len(self._Z))
        best[self.arms] = self.lam
        for _ in range(SCANS):
            working = self._Z[self.arms], self._Y[self.directions]
            _improve(*working, self.lam, self.m, STEPS, 0.5 * tol)
            info = self._information()
            variances, derivatives = self._variances(info), self._derivatives(info)
            if variances.max() < value:
                value, best = float(variances.max()), np.zeros(len(self._Z))
                best[self.arms] = self.lam
            # The certificate of `minimax` with m_j f_j^2, over all arms.
            bound = float(self.m @ variances[self.directions] ** 2 / derivatives.max())
            lower = max(lower, bound) if bound < np.inf else lower
            if value <= (1.0 + tol) * lower:
                break
            self._drop()
            self._add(variances, derivatives, tol)
        return best, relative_gap(value, lower)

    def _information(self) -> Information:
        return information(self._Z[self.arms], self.lam)

    def _variances(self, info: Information) -> Float[np.ndarray, " M"]:
        """Return y'A^-1 y of all directions."""
        return row_norms(self._Y, info.inverse_root)

    def _derivatives(self, info: Information) -> Float[np.ndarray, " K"]:
        """Return sum_j m_j (z'A^-1 y_j)^2 for all arms."""
        R = info.inverse_root
        P = (self._Y[self.directions] @ R.T) @ R
        return row_norms(self._Z, np.sqrt(self.m)[:, None] * P)

    def _drop(self) -> None:
        heavy = (self.lam > LIGHT) | np.isin(self.arms, self._always)
        self.arms, self.lam = self.arms[heavy], self.lam[heavy]
        heavy = self.m > LIGHT
        self.directions, self.m = self.directions[heavy], self.m[heavy]

    def _add(
        self,
        variances: Float[np.ndarray, " M"],
        derivatives: Float[np.ndarray, " K"],
        tol: float,
    ) -> None:
        """Add what is above its value within the set by more than a part of the tolerance."""
        level = (1.0 + 0.25 * tol) * float(variances[self.directions].max())
        self.directions, self.m = _entered(self.directions, self.m, variances, level)
        level = (1.0 + 0.25 * tol) * float(self.lam @ derivatives[self.arms] / self.lam.sum())
        self.arms, self.lam = _entered(self.arms, self.lam, derivatives, level)


def _largest(values: Float[np.ndarray, " n"], count: int) -> Int[np.ndarray, " c"]:
    """Return the positions of the largest values, not sorted."""
    if len(values) <= count:
        return np.arange(len(values))
    return np.argpartition(values, -count)[-count:]


def _entered(
    members: Int[np.ndarray, " p"],
    weights: Float[np.ndarray, " p"],
    values: Float[np.ndarray, " n"],
    level: float,
) -> tuple[Int[np.ndarray, " q"], Float[np.ndarray, " q"]]:
    """Return a working set with the largest values above a level added, and its weights."""
    new = np.sort(_largest(values, ADDED))
    new = np.setdiff1d(new[values[new] > level], members)
    if len(new) == 0:
        return members, weights / weights.sum()
    added = np.full(len(new), ENTRY / len(new))
    both = np.append((1.0 - ENTRY) * weights / weights.sum(), added)
    return np.append(members, new), both
