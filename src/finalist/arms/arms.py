"""The arms: the finite set of candidates, with names, features and coordinates in their span.

Arms with identical features cannot be told apart by any measurement; they are one arm with
several names. Every other module works in span coordinates Z with X = Z B, in which the arms
are well scaled (Z'Z / K = I, over the arms that can be pulled): features of any size, collinear
features and d > K then need no special care, and X theta = Z phi.
"""

from collections.abc import Iterable
from dataclasses import fields
from os import PathLike
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike

from finalist.arms import files
from finalist.arms.inputs import read_input
from finalist.arms.models import remodelled
from finalist.arms.parts import Mask, Parts, as_mask, join, merged
from finalist.arms.recipes import Recipe, as_given
from finalist.arms.sources import Sources
from finalist.arms.span import Span, as_directions, as_parameter, factorise, finite_rewards
from finalist.shapes import Float

if TYPE_CHECKING:
    import pandas as pd

#: How far a combination of features may be from 1 and still count as constant.
CONSTANT = 1e-9


@final
class Arms(Sources):
    """A finite set of arms, immutable.

    Parameters
    ----------
    features : (N, d) array-like or data frame
        One row per arm. In a data frame the column `name`, or else the first text column,
        names the arms; the other columns are the features. The numbers are copied.
    names : sequence of str, optional
        A name for each row; by default x1, x2, ... Rows with identical features become one
        arm with several names, so there may be fewer arms than rows.
    measurable : (N,) sequence of bool, optional
        Which rows can be pulled; by default all. The others can still win: they are judged by
        measuring the rest.

    Examples
    --------
    >>> arms = Arms([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], names=["a", "b", "c"])
    >>> arms
    Arms(K=2, d=2, rank=2)
    >>> arms.aliases
    (('a', 'c'), ('b',))
    >>> arms.index("c")
    0
    """

    __slots__ = ("_coordinates", "_parts", "_span")

    def __init__(
        self,
        features: Any,
        names: Iterable[str] | None = None,
        *,
        measurable: ArrayLike | None = None,
    ) -> None:
        table = read_input(features, names)
        self._fill(merged(table, as_mask("measurable", measurable, len(table.features))))

    @classmethod
    def _of(cls, parts: Parts) -> "Arms":
        arms = cls.__new__(cls)
        arms._fill(parts)
        return arms

    def _fill(self, parts: Parts) -> None:
        self._parts = parts
        self._span: Span | None = None
        self._coordinates: Float[np.ndarray, "K r"] | None = None

    @property
    def features(self) -> Float[np.ndarray, "K d"]:
        """The distinct arms, one per row, in order of first appearance, read-only."""
        return self._parts.features

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the d features; f1, f2, ... for an array."""
        return self._parts.feature_names

    @property
    def names(self) -> tuple[str, ...]:
        """The first name of each arm."""
        return self._parts.names.first

    @property
    def aliases(self) -> tuple[tuple[str, ...], ...]:
        """All names of each arm; the first is the one in `names`."""
        return self._parts.names.aliases

    @property
    def table(self) -> dict[str, Any]:
        """The user's table, a row per name as in `to_frame`: arrays of numbers, tuples of text."""
        return self._parts.table().whole()

    @property
    def recipe(self) -> Recipe:
        """How the features were made from the table. It does not count in comparisons."""
        return self._parts.recipe

    @property
    def rank(self) -> int:
        """Dimension of the span of the arms that can be pulled.

        With columns scaled to size 1, singular values below max(K, d, 64) machine epsilons of the
        largest count as zero.
        """
        return len(self._factors().scale)

    @property
    def coordinates(self) -> Float[np.ndarray, "K r"]:
        """The arms in span coordinates Z, with Z'Z / K = I for those that can be pulled.

        For an arm that cannot be pulled this is its projection onto the span of the others; a
        `Problem` refuses candidates that differ in more than that.
        """
        if self._coordinates is None:
            Z = self._factors().coordinates(self.features)
            Z.flags.writeable = False
            self._coordinates = Z
        return self._coordinates

    def _factors(self) -> Span:
        if self._span is None:
            some = self.measurable
            self._span = factorise(self.features if some.all() else self.features[some])
        return self._span

    @property
    def measurable(self) -> Mask:
        """Which arms can be pulled, read-only."""
        return self._parts.measurable

    @property
    def candidate(self) -> Mask:
        """Which arms can win, read-only."""
        return self._parts.candidate

    def _marked(self, measurable: Mask | None, candidate: Mask | None) -> "Arms":
        """Return these arms with other roles; None means all."""
        return Arms._of(self._parts.with_roles(measurable, candidate))

    @property
    def has_intercept(self) -> bool:
        """Whether some combination of the features is the same for all arms."""
        Z = self.coordinates
        one = Z[self.measurable].mean(axis=0)  # least squares: Z'Z / K = I
        return bool(np.abs(Z @ one - 1.0).max() <= CONSTANT)

    def with_intercept(self) -> "Arms":
        """Return these arms with a last feature that is 1 for all of them, if there is none yet.

        Without one, an arm whose features are all 0 has an expected reward of 0. Results with a
        baseline, such as a yield around 60, need it.

        Examples
        --------
        >>> arms = Arms([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]).with_intercept()
        >>> arms.feature_names, arms.features[2]
        (('f1', 'f2', 'intercept'), array([0., 0., 1.]))
        >>> arms.with_intercept() is arms, Arms.unstructured(3).has_intercept
        (True, True)
        """
        return self if self.has_intercept else Arms._of(self._parts.with_intercept())

    def with_model(self, model: str) -> "Arms":
        """Return the same arms with features made by another model of their table.

        Parameters
        ----------
        model : "straight", "bending", "surface" or "separate"
            Columns as they are; and their squares; and products of every two; or a feature for
            each row of its own. See `Recipe`. Features that were given are columns of numbers, and
            one that is 1 for all arms is the constant. Rows that are one arm by their columns are
            several if they are separate.

        Examples
        --------
        >>> arms = Arms([[1.0], [2.0], [4.0]], names=["low", "middle", "high"]).with_intercept()
        >>> bent = arms.with_model("bending")
        >>> bent.feature_names, bent.recipe.name, bent.recipe.centres
        (('f1', 'f1^2', 'intercept'), 'bending', {'f1': 2.5})
        """
        parts = self._parts
        rows, table = parts.rows(), remodelled(parts.table(), model)
        return Arms._of(merged(table, parts.measurable[rows], parts.candidate[rows]))

    def with_candidates(self, candidates: "Arms") -> "Arms":
        """Return these arms to be measured, and others to choose from, as one set.

        Parameters
        ----------
        candidates : Arms
            What the winner is chosen from, with the same features. A candidate with the features
            of an arm is that arm, and can be measured too. Those without names are z1, z2, ...

        Examples
        --------
        >>> doses = Arms([[1.0, 1.0], [1.0, 2.0]], names=["low", "high"])
        >>> both = doses.with_candidates(Arms([[1.0, 3.0]], names=["extreme"]))
        >>> both.names, both.measurable.tolist(), both.candidate.tolist()
        (('low', 'high', 'extreme'), [True, True, False], [False, False, True])
        """
        return Arms._of(join(self._parts, candidates._parts))

    def only(self, some: Mask) -> "Arms":
        """Return some of the arms, with all their names; each of them can be pulled and can win."""
        return Arms._from_table(self._parts.table(some))

    def __len__(self) -> int:
        return len(self.features)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._parts.names.index

    def index(self, name: str) -> int:
        """Return the number (from 0) of the arm that has this name, first or alias."""
        return self._parts.names.find(name)

    def means(self, theta: ArrayLike) -> Float[np.ndarray, " K"]:
        """Return the expected rewards X theta of the arms."""
        parameter = as_parameter(theta, self.feature_names)
        with np.errstate(over="ignore", invalid="ignore"):
            return finite_rewards(self.features @ parameter)

    def parameter_to_span(self, theta: ArrayLike) -> Float[np.ndarray, " r"]:
        """Return phi with X theta = Z phi; components of theta outside the span vanish."""
        parameter = as_parameter(theta, self.feature_names)
        with np.errstate(over="ignore", invalid="ignore"):
            return finite_rewards(self._factors().parameter(parameter))

    def to_span(self, directions: ArrayLike) -> Float[np.ndarray, "M r"]:
        """Turn directions in feature space into span coordinates.

        Parameters
        ----------
        directions : (M, d) array-like
            Vectors y, such as differences of two arms.

        Returns
        -------
        (M, r) array
            Vectors w with y = w B where X = Z B, so that y'theta = w'phi.

        Raises
        ------
        OutsideSpanError
            When a direction has a component that no combination of arms has: its residual,
            with columns scaled to size 1, exceeds `SPAN_TOLERANCE` of its norm.

        Examples
        --------
        >>> arms = Arms([[1e150, 0.0], [0.0, 1e-150]])
        >>> float(np.linalg.norm(arms.to_span([[1e150, -1e-150]])).round(6))
        2.0
        """
        Y = as_directions(directions, len(self.feature_names))
        return self._factors().directions(Y)

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write a CSV file that `from_csv` reads back exactly, one row per name.

        A name that starts with `=`, `+`, `-`, `@`, a tab, a line break or an apostrophe gets
        an apostrophe in front, so that no spreadsheet runs it as a formula. The file does not say
        which arms can be pulled or can win.
        """
        files.write_csv(path, self._parts.table())

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write a Parquet file, one row per name (needs the extra `[parquet]`)."""
        files.write_parquet(path, self._parts.table())

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas data frame: the column `name` and the features, one row per name."""
        return files.to_frame(self._parts.table())

    def __repr__(self) -> str:
        return f"Arms(K={len(self)}, d={len(self.feature_names)}, rank={self.rank})"

    def __eq__(self, other: object) -> bool:
        return self._parts.same(other._parts) if isinstance(other, Arms) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.features.shape, self.feature_names, self.features[0].tobytes()))

    def __copy__(self) -> "Arms":
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> "Arms":
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, tuple(getattr(self._parts, part.name) for part in fields(Parts))


def _restore(features: Float[np.ndarray, "K d"], *rest: Any) -> Arms:
    """Rebuild unpickled arms; pickles of 0.1.0 end before the table and the recipe."""
    features.flags.writeable = False  # NumPy forgets it
    parts = Parts(features, *rest[:5], *(rest[5:] or (None, as_given(features, rest[2]))))
    return Arms._of(parts.with_roles(parts.measurable, parts.candidate))
