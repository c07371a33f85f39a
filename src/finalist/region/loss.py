"""How much better the best point of a region can be than the best point of a net.

Let f(x) = phi(x)'theta, to be maximised (for a minimum theta is -theta), x* a best point of the
region, and let the points of the net be the centres of cells that cover the region. Each
bound below holds for every theta; with the largest values of |theta_j| and of norms that a
`Belief` allows, it holds for all its parameters at once.

Box, linear. Some corner is a best point, and the net has all corners: the loss is 0.

Box, quadratic. Let F be the coordinates in which x* is in the interior, and H the Hessian of f.
The net has the points y that agree with x* outside F (the grid contains both ends of every
coordinate) and that have in each coordinate i of F one of the two neighbours of x*_i in the grid,
a step 2 k_i apart. The gradient vanishes in F, so with v = y - x*, f(x*) - f(y) = -v'Hv / 2. Draw
the neighbours independently so that E v_i = 0. Then E v_i v_j = 0, E v_i^2 <= k_i^2, and the mean
of f(x*) - f(y) is at most

    sum over i of max(-H_ii, 0) k_i^2 / 2.

Some y is no worse than the mean. Mixed second derivatives do not matter. It is sharp: for a sum of
parabolas with peaks halfway between points of the grid it is the loss.

Ball. Points inside are at most rho from a point of the net; points of the sphere at most rho' from
one that is on the sphere as well. If x* is inside, the gradient is 0 and f(x*) - f(y) =
-v'Hv / 2 <= |H| rho^2 / 2. On the sphere the gradient is m x* with m >= 0 (or f would be larger
somewhere in the ball), and for y on the sphere x*'v = -|v|^2 / 2, so that f(x*) - f(y) =
(m |v|^2 - v'Hv) / 2 <= (m + |H|) rho'^2 / 2. With f = c + b'x + x'Hx / 2, m <= |b| + |H|. For a
linear basis H is 0 and this is |b| rho'^2 / 2 = |b| (1 - cos a), a the angle of the chord rho'.

A user-defined basis: |f(x*) - f(x)| <= r sum_j L_j |theta_j| for x within r. The x are the middles
of small parts of the cells. Such an x is better than the best of the net by at most
f(x) - f(y), y being the middle of its cell or the point that leads by the estimate, whichever is
less: near the leader both are small, and far from it the second is negative.
"""

import math
from itertools import product

import numpy as np

from finalist.errors import ArmsError
from finalist.region.belief import Belief
from finalist.region.space import Space
from finalist.shapes import Float

#: A user-defined basis is evaluated at about this many points of the region.
MAX_EVALUATIONS = 50_000


def radius_inside(steps: Float[np.ndarray, " d"]) -> float:
    """Return how far a point can be from the centre of its cell, in coded coordinates.

    `steps` are half the steps of the grid.
    """
    return float(np.linalg.norm(steps))


def radius_on_sphere(steps: Float[np.ndarray, " d"]) -> float:
    """Return how far a point of the sphere can be from a point of the net on the sphere.

    Seen from the centre it lies on a face of the cube, at most half the diagonal of a (d - 1)-
    dimensional cell of that face from a point of the grid. Projecting both onto the ball takes
    them to the sphere and moves no two points apart.
    """
    return float(np.linalg.norm(steps[1:]))


def largest_loss(
    space: Space,
    coded: Float[np.ndarray, "M d"],
    steps: Float[np.ndarray, " d"],
    belief: Belief,
) -> float:
    """Bound the loss over all possible parameters.

    Parameters
    ----------
    coded : (M, d) array
        The centres of the cells, in coded coordinates.
    steps : (d,) array
        Half the steps of the grid, in coded coordinates.
    """
    if not space.polynomial:
        return _of_a_function(space, coded, steps, belief)
    if space.shape == "ball":
        return _on_a_ball(space, steps, belief)
    return 0.0 if space.basis == "linear" else _in_a_box(space, steps * space.half, belief)


def _in_a_box(space: Space, k: Float[np.ndarray, " d"], belief: Belief) -> float:
    second = np.einsum("iip->ip", space.curvature())
    return float(np.maximum(belief.upper(-second), 0.0) @ k**2) / 2.0


def _on_a_ball(space: Space, steps: Float[np.ndarray, " d"], belief: Belief) -> float:
    b, h = largest_gradient(space, belief), largest_curvature(space, belief)
    inside, sphere = radius_inside(steps) ** 2, radius_on_sphere(steps) ** 2
    return max(h * inside, (b + 2.0 * h) * sphere) / 2.0


def largest_gradient(space: Space, belief: Belief) -> float:
    """Bound the length of the gradient at the centre of a ball, |b|."""
    return belief.largest_norm(space.slopes(np.zeros((1, space.d)))[0])


def largest_curvature(space: Space, belief: Belief) -> float:
    """Bound the spectral norm of the Hessian.

    What is added to that of the estimate is at most the Frobenius norm of the difference.
    """
    if space.basis == "linear":
        return 0.0
    second = space.curvature()
    middle = float(np.linalg.norm(belief.estimates(second), 2))
    once = np.array([second[i, j] * (1.0 if i == j else math.sqrt(2.0)) for i, j in space.pairs])
    return middle + belief.largest_norm(once) - float(np.linalg.norm(belief.estimates(once)))


def _of_a_function(
    space: Space,
    coded: Float[np.ndarray, "M d"],
    steps: Float[np.ndarray, " d"],
    belief: Belief,
) -> float:
    steep = _steepest(space, belief)
    parts = max(int((MAX_EVALUATIONS / len(coded)) ** (1.0 / space.d)), 1)
    inner = np.arange(1 - parts, parts, 2) / parts
    around = np.array(list(product(inner, repeat=space.d))) * steps
    F = space.features(space.decoded(coded))
    best = F[leader_of(F, belief)]
    worst = 0.0
    for cell, own in zip(coded, F, strict=True):
        values = space.features(space.decoded(cell + around))
        lead = np.minimum(belief.upper(values - own), belief.upper(values - best))
        worst = max(worst, float(lead.max()))
    return worst + steep * radius_inside(steps) / parts


def leader_of(features: Float[np.ndarray, "M p"], belief: Belief) -> int:
    """Return the row with the best estimate; only differences may be known."""
    return int(belief.estimates(features - features[0]).argmax())


def _steepest(space: Space, belief: Belief) -> float:
    """Bound sum_j L_j |theta_j|."""
    L = space.lipschitz
    if L is None:
        raise ArmsError(
            "the basis is a function without Lipschitz constants, so nothing is known between the "
            "points of the net. Give lipschitz=..., one number for each basis function."
        )
    steep = np.flatnonzero(L > 0.0)  # for a constant even the estimate may be unknown
    return float(L[steep] @ belief.largest(np.eye(len(L))[steep])) if len(steep) else 0.0


def largest_lead(
    space: Space,
    points: Float[np.ndarray, "n d"],
    steps: Float[np.ndarray, " d"],
    leader: Float[np.ndarray, " d"],
    belief: Belief,
) -> Float[np.ndarray, " n"]:
    """Bound, for each cell, how much better than the leader any of its points can be.

    For x in the cell of y, f(x) - f(leader) = (f(y) - f(leader)) + (f(x) - f(y)), and with
    u = x - y the second part is grad f(y)'u + u'Hu / 2: in a box |u_i| <= k_i, in a ball
    |u| <= rho. With a user-defined basis it is at most rho sum_j L_j |theta_j|.
    """
    first = belief.upper(space.features(points) - space.features(leader[None]))
    if not space.polynomial:
        return np.asarray(first + _steepest(space, belief) * radius_inside(steps))
    slopes = space.slopes(points)
    if space.shape == "ball":
        rho = radius_inside(steps)
        sizes = np.linalg.norm(belief.estimates(slopes), axis=1)
        errors = np.linalg.norm(belief.widths(slopes), axis=1)  # at least the spectral norm
        curved = largest_curvature(space, belief) * rho**2 / 2.0
        return np.asarray(first + (sizes + errors) * rho + curved)
    k = steps * space.half
    curved = float(k @ belief.largest(space.curvature()) @ k) / 2.0
    return np.asarray(first + belief.largest(slopes) @ k + curved)
