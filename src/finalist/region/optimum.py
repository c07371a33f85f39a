"""Where to measure: the G-optimal design over all points of a region, with a certificate.

The largest variance of an estimated mean over the region is at least the number p of basis
functions, whatever the design (Kiefer and Wolfowitz 1960). For the polynomials, designs that
attain it are known. In coded coordinates:

- linear, box: the corners, equally. Then Lambda = I and the variance is 1 + sum x_i^2.
- linear, ball: the ends of the axes, equally. Then it is 1 + d |x|^2.
- quadratic, box: points of {-1, 0, 1}^d, with weights that depend on the number of coordinates
  that are not 0 (Kiefer 1961; Farrell, Kiefer and Walbran 1967). Lambda is the same when signs
  and coordinates are exchanged, so the variance is a polynomial in s_i = x_i^2, of degree 2 in
  each, with a positive factor of s_i^2 (a diagonal entry of Lambda^-1). It is convex in each s_i,
  so that its maximum over the box is one over {-1, 0, 1}^d, and there are d + 1 cases.
- quadratic, ball: 1/p at the centre, the rest spread over the sphere with the moments of the
  uniform distribution up to order 4. By symmetry the variance is a polynomial of degree 2 in
  |x|^2, again with a positive leading factor: its maximum is at the centre or on the sphere.

For a user-defined basis the design comes from a grid to which points are added where the
variance is largest (column generation), and the maximum over the region is bounded by branch and
bound: its root is Lipschitz.
"""

import math
from dataclasses import dataclass, field
from itertools import combinations, product

import numpy as np

from finalist.arms import Arms
from finalist.design import optimal_design
from finalist.errors import ArmsError, OutsideSpanError
from finalist.inference.information import information, row_norms
from finalist.region.space import Space
from finalist.shapes import Float

#: For a user-defined basis: tolerance, number of initial points, rounds, and the cells that branch
#: and bound may visit in each round.
TOLERANCE, FIRST_POINTS, MAX_ROUNDS, MAX_CELLS = 0.02, 400, 12, 200_000


@dataclass(frozen=True, eq=False)
class Spread:
    """A design over the points of a region.

    Attributes
    ----------
    points : (n, d) array
    weights : (n,) array
        Shares of the pulls.
    value : float
        An upper bound on the variance of an estimated mean anywhere in the region, for sigma 1 and
        one pull; infinite if none is known.
    lower_bound : float
        The smallest possible maximal variance: the number of basis functions.
    """

    points: Float[np.ndarray, "n d"] = field(repr=False)
    weights: Float[np.ndarray, " n"] = field(repr=False)
    value: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """The certificate: the maximal variance is at most 1 + gap times the smallest possible."""
        return max(self.value / self.lower_bound - 1.0, 0.0)


def spread_over(space: Space) -> Spread:
    """Return the G-optimal design over a region."""
    if not space.polynomial:
        return generated(space)
    coded, weights = _KNOWN[space.shape, str(space.basis)](space.d)
    points = space.decoded(coded)
    p = len(space.features(points[:1])[0])
    # The variance is largest at one of these; see the docstring of the module.
    critical = coded if space.basis == "linear" else _levels(space.shape, space.d)
    root = _root(space, points, weights)
    value = float(row_norms(space.features(space.decoded(critical)), root).max())
    return Spread(points, weights, value, float(p))


def _corners(d: int) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, " n"]]:
    coded = np.array(list(product((-1.0, 1.0), repeat=d)))
    return coded, np.full(len(coded), 1.0 / len(coded))


def _axes(d: int) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, " n"]]:
    coded = np.vstack([-np.eye(d), np.eye(d)])
    return coded, np.full(2 * d, 1.0 / (2 * d))


def _three_levels(d: int) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, " n"]]:
    """Return the design of three levels with the fewest points that has the best moments."""
    u, v = best_moments(d)
    kinds = range(d + 1)  # by the number of nonzero coordinates
    sizes = [math.comb(d, j) * 2**j for j in kinds]
    # E 1, E x_i^2 and E x_i^2 x_j^2 of each kind.
    rows = [[1.0, j / d, j * (j - 1) / (d * max(d - 1, 1))] for j in kinds]
    found: list[tuple[int, tuple[int, ...], np.ndarray]] = []
    size = min(3, d + 1)
    for some in combinations(kinds, size):
        shares = np.linalg.solve(np.array(rows)[list(some), :size].T, [1.0, u, v][:size])
        if (shares > 0.0).all():
            found.append((sum(sizes[j] for j in some), some, shares))
    _, some, shares = min(found, key=lambda one: one[0])
    points = np.array(list(product((-1.0, 0.0, 1.0), repeat=d)))
    kind = np.count_nonzero(points, axis=1)
    weights = np.zeros(len(points))
    for j, share in zip(some, shares.tolist(), strict=True):
        weights[kind == j] = share / sizes[j]
    used = weights > 0.0
    return points[used], weights[used]


def best_moments(d: int) -> tuple[float, float]:
    """Return E x_i^2 and E x_i^2 x_j^2 of the D-optimal quadratic design on [-1, 1]^d.

    They maximise log det Lambda = d log u + d (d - 1) / 2 log v + (d - 1) log(u - v) +
    log(u + (d - 1) v - d u^2) (Farrell, Kiefer and Walbran 1967).

    Examples
    --------
    >>> round(best_moments(1)[0], 9)  # thirds at -1, 0 and 1
    0.666666667
    """
    root = math.sqrt(4 * d**2 + 12 * d + 17)
    u = (2 * d**2 + 3 * d + 7 + (d - 1) * root) * (d + 3) / (4 * (d + 1) * (d + 2) ** 2)
    v = 4 * d**3 + 8 * d**2 + 11 * d - 5 + (2 * d**2 + d + 3) * root
    return u, v * (d + 3) / (8 * (d + 1) * (d + 2) ** 3)


def _centre_and_sphere(d: int) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, " n"]]:
    """Return the centre, ends of the axes and corners; the moments are those of the sphere.

    A share d / (d + 2) on the corners gives E x_i^2 x_j^2 = 1 / (d (d + 2)) and a third of
    E x_i^4, as the uniform distribution on the sphere has.
    """
    p = (d + 1) * (d + 2) / 2
    axes, corners = _axes(d)[0], _corners(d)[0] / math.sqrt(d)
    shares = np.array([1.0 / p, (1.0 - 1.0 / p) * 2 / (d + 2), (1.0 - 1.0 / p) * d / (d + 2)])
    groups = [np.zeros((1, d)), axes, corners]
    weights = [np.full(len(g), s / len(g)) for g, s in zip(groups, shares.tolist(), strict=True)]
    return np.vstack(groups), np.concatenate(weights)


_KNOWN = {
    ("box", "linear"): _corners,
    ("ball", "linear"): _axes,
    ("box", "quadratic"): _three_levels,
    ("ball", "quadratic"): _centre_and_sphere,
}


def _levels(shape: str, d: int) -> Float[np.ndarray, "n d"]:
    """Return a point of each kind at which the variance of a quadratic model may be largest."""
    if shape == "ball":
        return np.vstack([np.zeros((1, d)), np.eye(1, d)])
    return np.tril(np.ones((d + 1, d)), -1)


def _root(
    space: Space, points: Float[np.ndarray, "n d"], weights: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "s p"]:
    """Return R with |R phi(x)|^2 the variance at x."""
    arms = Arms(space.features(points))
    p = arms.features.shape[1]
    try:
        into_span = arms.to_span(np.eye(p))
    except OutsideSpanError as error:
        raise ArmsError(
            f"the {p} basis functions are not independent on this region (rank {arms.rank}). Leave "
            "out those that others determine; or, if the coordinates hardly vary beside their "
            "size, subtract a constant from them."
        ) from error
    info = information(arms.coordinates, weights)
    return np.asarray(info.inverse_root @ into_span.T)


# ---- a user-defined basis ----------------------------------------------------------------------


def generated(space: Space) -> Spread:
    """Return a design by column generation, with a bound if Lipschitz constants are known."""
    side = max(2 * int(FIRST_POINTS ** (1.0 / space.d) / 2) + 1, 3)
    coded = np.array(list(product(np.linspace(-1.0, 1.0, side), repeat=space.d)))
    points = np.unique(space.decoded(coded), axis=0)
    best: Spread | None = None
    for _ in range(MAX_ROUNDS):
        # Points with the same basis values are merged.
        points = points[np.unique(space.features(points), axis=0, return_index=True)[1]]
        arms = Arms(space.features(points))
        weights = optimal_design(arms, "g", 1e-4).weights
        used = np.flatnonzero(weights > 0.0)
        root = _root(space, points[used], weights[used])
        p = float(root.shape[1])
        value, peaks = largest_variance(space, root, (1.0 + TOLERANCE) * p)
        if best is None or value < best.value:
            best = Spread(points[used], weights[used], value, p)
        if len(peaks) == 0:
            break
        points = np.vstack([points, peaks])
    assert best is not None
    return _simpler(space, best)


def _simpler(space: Space, spread: Spread) -> Spread:
    """Drop points with small weights if the rest is certified to be as good."""
    enough = (1.0 + TOLERANCE) * spread.lower_bound
    points = spread.points[spread.weights >= 0.1 * spread.weights.max()]
    arms = Arms(space.features(points))
    if len(points) == len(spread.points) or arms.rank < spread.lower_bound:
        return spread
    weights = optimal_design(arms, "g", 1e-4).weights
    used = np.flatnonzero(weights > 0.0)
    value, peaks = largest_variance(space, _root(space, points[used], weights[used]), enough)
    if len(peaks) > 0 or value > max(enough, spread.value):
        return spread
    return Spread(points[used], weights[used], value, spread.lower_bound)


def largest_variance(
    space: Space, root: Float[np.ndarray, "s p"], enough: float
) -> tuple[float, Float[np.ndarray, "m d"]]:
    """Bound |R phi(x)|^2 over the region by branch and bound.

    In a cell with centre c, whose points are within rho of it in coded coordinates,
    |R phi(x)| <= |R phi(c)| + rho sum_j L_j |R e_j|. For a ball the centre is projected, which
    does not move it away from points of the ball.

    Parameters
    ----------
    enough : float
        Cells in which it cannot be larger than this are not split.

    Returns
    -------
    bound : float
        Infinite without Lipschitz constants.
    peaks : (m, d) array
        Points at which it is larger than `enough`, the d + 2 highest.
    """
    known = space.lipschitz
    steep = 0.0 if known is None else float(known @ np.linalg.norm(root, axis=0))
    side = 4 if space.d > 1 else 64
    axis = np.arange(-side + 1, side, 2) / side
    cells, half = np.array(list(product(axis, repeat=space.d))), 1.0 / side
    bound, seen, peaks, heights = 0.0, 0, np.empty((0, space.d)), np.empty(0)
    corners = np.array(list(product((-0.5, 0.5), repeat=space.d)))
    while len(cells) > 0:
        if space.shape == "ball":
            nearest = np.maximum(np.abs(cells) - half, 0.0)
            cells = cells[np.linalg.norm(nearest, axis=1) <= 1.0]
        points = space.decoded(cells)
        variance = row_norms(space.features(points), root)
        high = variance > enough
        heights = np.append(heights, variance[high])
        peaks = np.vstack([peaks, points[high]])
        seen += len(cells)
        upper = (np.sqrt(variance) + steep * half * math.sqrt(space.d)) ** 2
        left = upper > enough
        bound = max(bound, float(upper[~left].max(initial=0.0)))
        full = seen + np.count_nonzero(left) * len(corners) > MAX_CELLS
        # If it exceeds `enough` anyway, its exact value does not matter.
        close = heights.size and upper.max() <= (1.0 + 0.1 * TOLERANCE) * heights.max()
        if full or close or known is None:
            bound = max(bound, float(upper[left].max(initial=0.0)))
            break
        cells = (cells[left][:, None] + half * corners).reshape(-1, space.d)
        half /= 2
    top = np.argsort(-heights, kind="stable")[: space.d + 2]
    return (math.inf if known is None else bound), peaks[top]
