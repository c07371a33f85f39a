"""`Region`: the best point of a box or a ball, for a model that is linear in a basis."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from finalist.arms import Arms
from finalist.errors import ArmsError
from finalist.region.net import Net
from finalist.region.optimum import spread_over
from finalist.region.space import Basis, Space, ball_space, box_space, whole_grid
from finalist.shapes import Float


@dataclass(frozen=True, eq=False)
class Region:
    """A region of points, one of which is best; make one with `box` or `ball`.

    The mean of a point x is phi(x)'theta, with a basis phi and an unknown theta. `net` gives
    finitely many points to choose from; from the rewards, it bounds how much better a point
    between them can be.

    Examples
    --------
    >>> import finalist as fl
    >>> oven = fl.Region.box([150, 10], [250, 60], names=("celsius", "minutes"))
    >>> net = oven.net(per_axis=11)
    >>> net.arms.feature_names
    ('constant', 'celsius', 'minutes', 'celsius^2', 'celsius*minutes', 'minutes^2')
    >>> net.arms.names[0], int(net.arms.measurable.sum()), len(net.arms)
    ('celsius=150, minutes=10', 9, 121)
    >>> round(net.design.gap, 9)  # no other points to measure would be better
    0.0
    """

    space: Space

    @classmethod
    def box(
        cls,
        low: ArrayLike,
        high: ArrayLike,
        basis: Basis = "quadratic",
        *,
        names: Sequence[str] | None = None,
        lipschitz: Any = None,
    ) -> "Region":
        """Return a box.

        Parameters
        ----------
        low, high : (d,) sequences of float
            Its ends in each coordinate.
        basis : "linear", "quadratic" or function
            (1, x_i), or these and x_i x_j for i <= j, or a function of (n, d) points that returns
            (n, p) values.
        names : sequence of str, optional
            Of the coordinates; by default x1, x2, ...
        lipschitz : float or (p,) sequence, optional
            For a function: each of its values changes by at most this much times the Euclidean
            distance of two points, with every coordinate scaled so that the box is [-1, 1]^d.
            Needed to say anything about points between those of a net.
        """
        return cls(box_space(low, high, basis, names, lipschitz))

    @classmethod
    def ball(
        cls,
        d: int,
        basis: Basis = "linear",
        *,
        names: Sequence[str] | None = None,
        lipschitz: Any = None,
    ) -> "Region":
        """Return the unit ball of d dimensions; see `box`."""
        return cls(ball_space(d, basis, names, lipschitz))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the coordinates."""
        return self.space.names

    def features(self, points: ArrayLike) -> Float[np.ndarray, "n p"]:
        """Return the basis functions at (n, d) points.

        Examples
        --------
        >>> Region.box([0], [1]).features([[0.5]])
        array([[1.  , 0.5 , 0.25]])
        """
        return self.space.features(points)

    def net(
        self,
        per_axis: int | Sequence[int] = 21,
        measure: Literal["design", "all"] = "design",
    ) -> Net:
        """Return points to choose from, and points to measure.

        Parameters
        ----------
        per_axis : int or (d,) sequence of int
            Points along each coordinate, from end to end. A linear model on a box needs only the
            corners and always gets two. On a ball, this is a grid on the surrounding cube, of
            which the points that matter are kept.
        measure : "design" or "all"
            Measure only the points of the G-optimal design over the whole region, which determine
            the model as well as any (`net.design.gap` says how well), or every point of the net.
        """
        if measure not in ("design", "all"):
            raise ArmsError(f"measure is {measure!r}; it must be 'design' or 'all'.")
        space = self.space
        counts = np.zeros(1)
        if _whole(per_axis, space.d):
            counts = np.array(np.broadcast_to(per_axis, space.d))
        if counts.min() < 2 or (space.shape == "ball" and len(set(counts.tolist())) > 1):
            raise ArmsError(
                f"per_axis is {per_axis!r}; give a whole number, 2 or more, for all {space.d} "
                "coordinates, or for a box one for each."
            )
        grid = tuple(int(m) for m in counts)
        if space.shape == "box" and space.basis == "linear":
            grid = (2,) * space.d
        return Net(space, grid, whole_grid(space, grid), spread_over(space), measure)

    def arms(
        self,
        per_axis: int | Sequence[int] = 21,
        measure: Literal["design", "all"] = "design",
    ) -> Arms:
        """Return the arms of a net (see `net`), for a study or a simulation.

        Examples
        --------
        >>> Region.ball(2).arms(per_axis=5)
        Arms(K=16, d=3, rank=3)
        """
        return self.net(per_axis, measure).arms


def _whole(value: object, d: int) -> bool:
    array = np.asarray(value)
    return array.dtype.kind in "iu" and array.shape in ((), (d,))
