"""The arms: the finite set of candidates, with names, features and coordinates in their span.

Arms with identical features cannot be told apart by any measurement; they are one arm with
several names. Every other module works in span coordinates Z with X = Z B, in which the arms
are well scaled (Z'Z / K = I): features of any size, collinear features and d > K then need no
special care, and X theta = Z phi.
"""

import difflib
from collections.abc import Iterable
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from finalist import arms_files, arms_io
from finalist.errors import ArmsError, DirectionError, ParameterError, UnknownArmError
from finalist.rows import equal_rows
from finalist.span import Span, factorise, shorten

if TYPE_CHECKING:
    import pandas as pd


@final
class Arms:
    """A finite set of arms, immutable.

    Parameters
    ----------
    features : (N, d) array-like or data frame
        One row per arm. In a data frame the column `name`, or else the first text column,
        names the arms; the other columns are the features. The numbers are copied.
    names : sequence of str, optional
        A name for each row; by default x1, x2, ... Rows with identical features become one
        arm with several names, so there may be fewer arms than rows.

    Attributes
    ----------
    features : (K, d) array
        The distinct arms, in order of first appearance, read-only.
    feature_names : tuple of str
        The d columns; f1, f2, ... for an array.
    names, aliases : tuple
        The first name and all the names of each arm.
    rank : int
        Dimension r of the span of the arms.
    coordinates : (K, r) array
        The arms in span coordinates Z, with Z'Z / K = I, read-only.

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

    __slots__ = (
        "_aliases",
        "_coordinates",
        "_feature_names",
        "_features",
        "_given",
        "_index",
        "_names",
        "_owner",
        "_span",
    )

    def __init__(self, features: Any, names: Iterable[str] | None = None) -> None:
        self._merge(arms_io.read_input(features, names))

    @classmethod
    def from_csv(cls, path: str | PathLike[str]) -> "Arms":
        """Read a comma-separated UTF-8 file with a header line.

        The column `name` names the arms, or else the first column without any number; all
        others are features. An apostrophe that `to_csv` put before a name is removed.

        Raises
        ------
        FileFormatError
            With the line, the column and the cell that is wrong.
        """
        return cls._from_table(arms_files.read_csv(path))

    @classmethod
    def from_parquet(cls, path: str | PathLike[str]) -> "Arms":
        """Read a Parquet file, as a data frame (needs the extra `[parquet]`)."""
        return cls._from_table(arms_files.read_parquet(path))

    @classmethod
    def from_formula(cls, formula: str, table: Any, names: Iterable[str] | None = None) -> "Arms":
        """Make the features from the columns of a data frame.

        Parameters
        ----------
        formula : str
            The right-hand side of a formulaic formula: `C(material)` for categories, `a:b`
            for interactions, `I(dose**2)` or `poly(dose, 2)` for polynomials. The intercept
            that comes with a formula is a constant feature and does no harm; `0 + ...`
            leaves it out. A formula may call Python functions: do not take it from strangers.
        table : data frame
            One row per arm. A missing value in a column of the formula is an error.
        names : sequence of str, optional
            By default the column `name`, or the first text column not in the formula.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"dose": [1.0, 2.0], "material": ["tin", "zinc"]})
        >>> Arms.from_formula("dose + C(material)", table).feature_names
        ('Intercept', 'dose', 'C(material)[T.zinc]')
        """
        return cls._from_table(arms_io.read_formula(formula, table, names))

    @classmethod
    def unstructured(cls, names: Iterable[str] | int) -> "Arms":
        """Make arms that share nothing (the classical problem): one feature for each of them."""
        if isinstance(names, int | np.integer):
            given, K = None, int(names)
        else:
            given = arms_io.check_names(names)
            K = len(given)
        if K < 1:
            raise ArmsError(f"there are {K} arms. Pass at least one name.")
        return cls(np.eye(K), given)

    @classmethod
    def _from_table(cls, table: arms_io.Table) -> "Arms":
        arms = cls.__new__(cls)
        arms._merge(table)
        return arms

    def _merge(self, table: arms_io.Table) -> None:
        """Make one arm of the rows with identical features."""
        first_row = equal_rows(table.features)
        distinct = first_row == np.arange(len(first_row))
        if distinct.all():
            self._set(table.features, table.names, None, table.feature_names)
        else:
            owner = (np.cumsum(distinct) - 1)[first_row]
            self._set(table.features[distinct], table.names, owner, table.feature_names)

    def _set(
        self,
        features: Float[np.ndarray, "K d"],
        given: tuple[str, ...] | None,
        owner: Int[np.ndarray, " N"] | None,
        feature_names: tuple[str, ...],
    ) -> None:
        """Fill the slots; `given` has N names (None: x1, ..., xN), `owner` the arm of each."""
        features.flags.writeable = False
        self._features, self._feature_names = features, feature_names
        self._given, self._owner = given, owner
        self._names: tuple[str, ...] | None = None
        self._aliases: tuple[tuple[str, ...], ...] | None = None
        self._index: dict[str, int] | None = None
        self._span: Span | None = None
        self._coordinates: Float[np.ndarray, "K r"] | None = None

    @property
    def features(self) -> Float[np.ndarray, "K d"]:
        """The distinct arms, one per row, read-only."""
        return self._features

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the d features."""
        return self._feature_names

    @property
    def names(self) -> tuple[str, ...]:
        """The first name of each arm."""
        if self._names is None:
            self._names = tuple(aliases[0] for aliases in self.aliases)
        return self._names

    @property
    def aliases(self) -> tuple[tuple[str, ...], ...]:
        """All names of each arm; the first is the one in `names`."""
        if self._aliases is None:
            N = len(self) if self._owner is None else len(self._owner)
            given = self._given or [f"x{i}" for i in range(1, N + 1)]
            groups: list[list[str]] = [[] for _ in range(len(self))]
            owner = range(N) if self._owner is None else self._owner.tolist()
            for name, k in zip(given, owner, strict=True):
                groups[k].append(name)
            self._aliases = tuple(map(tuple, groups))
        return self._aliases

    @property
    def rank(self) -> int:
        """Dimension of the span of the arms.

        It is the numerical rank: with columns scaled to size 1, singular values below
        max(K, d, 64) units of rounding of the largest count as zero.
        """
        return len(self._factors().scale)

    @property
    def coordinates(self) -> Float[np.ndarray, "K r"]:
        """The arms in span coordinates Z, with Z'Z / K = I, read-only."""
        if self._coordinates is None:
            Z = self._factors().coordinates(self._features)
            Z.flags.writeable = False
            self._coordinates = Z
        return self._coordinates

    def _factors(self) -> Span:
        if self._span is None:
            self._span = factorise(self._features)
        return self._span

    def __len__(self) -> int:
        return len(self._features)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._lookup()

    def index(self, name: str) -> int:
        """Return the number (from 0) of the arm that has this name, first or alias."""
        if name not in self:
            raise UnknownArmError(f"there is no arm {arms_io.show(name)}. {self._advice(name)}")
        return self._lookup()[name]

    def _lookup(self) -> dict[str, int]:
        if self._index is None:
            self._index = {name: k for k, names in enumerate(self.aliases) for name in names}
        return self._index

    def _advice(self, name: object) -> str:
        similar = _similar(name, self._lookup()) if isinstance(name, str) else []
        if similar:
            return f"Did you mean {' or '.join(map(repr, similar))}?"
        some = ", ".join(map(arms_io.show, self.names[:3]))
        return f"The names of the {len(self)} arms begin with {some}."

    def means(self, theta: ArrayLike) -> Float[np.ndarray, " K"]:
        """Return the expected rewards X theta of the arms."""
        parameter = self._parameter(theta)
        with np.errstate(over="ignore", invalid="ignore"):
            return _finite(self._features @ parameter)

    def parameter_to_span(self, theta: ArrayLike) -> Float[np.ndarray, " r"]:
        """Return phi with X theta = Z phi; what of theta no arm can feel vanishes."""
        parameter = self._parameter(theta)
        with np.errstate(over="ignore", invalid="ignore"):
            return _finite(self._factors().parameter(parameter))

    def _parameter(self, theta: ArrayLike) -> Float[np.ndarray, " d"]:
        array = _as_floats(theta, ParameterError, "theta")
        d = len(self._feature_names)
        if array.shape != (d,):
            raise ParameterError(f"theta has shape {array.shape}; these arms need ({d},).")
        if not np.isfinite(array).all():
            j = int(np.isfinite(array).argmin())
            raise ParameterError(
                f"theta is {array[j]} for feature {self._feature_names[j]!r} (number {j + 1}); "
                "it must be finite."
            )
        return array

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
        Y = _as_floats(directions, DirectionError, "directions")
        d = len(self._feature_names)
        if Y.ndim != 2 or Y.shape[1] != d:
            raise DirectionError(
                f"directions has shape {Y.shape}; it must be (M, {d}), one direction per row."
            )
        finite = np.isfinite(Y).all(axis=1)
        if not finite.all():
            i = int(finite.argmin())
            raise DirectionError(f"direction {i + 1} is not finite: {shorten(Y[i])}.")
        return self._factors().directions(Y)

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write a CSV file that `from_csv` reads back exactly, one row per name.

        A name that starts with `=`, `+`, `-`, `@`, a tab, a line break or an apostrophe gets
        an apostrophe in front, so that no spreadsheet runs it as a formula.
        """
        arms_files.write_csv(path, self._table())

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write a Parquet file, one row per name (needs the extra `[parquet]`)."""
        arms_files.write_parquet(path, self._table())

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas data frame: the column `name` and the features, one row per name."""
        import pandas as pd

        table = self._table()
        frame = pd.DataFrame(table.features, columns=list(table.feature_names), copy=True)
        frame.insert(0, "name", table.names)
        return frame

    def _table(self) -> arms_io.Table:
        names = tuple(name for aliases in self.aliases for name in aliases)
        features = self._features
        if self._owner is not None:
            features = np.repeat(features, np.bincount(self._owner), axis=0)
        return arms_io.Table(features, names, self._feature_names)

    def __repr__(self) -> str:
        return f"Arms(K={len(self)}, d={len(self._feature_names)}, rank={self.rank})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Arms):
            return NotImplemented
        return (
            self._feature_names == other._feature_names
            and np.array_equal(self._features, other._features)
            and self.aliases == other.aliases
        )

    def __hash__(self) -> int:
        return hash((self._features.shape, self._feature_names, self._features[0].tobytes()))

    def __copy__(self) -> "Arms":
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> "Arms":
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self._features, self._given, self._owner, self._feature_names)


def _restore(
    features: Float[np.ndarray, "K d"],
    given: tuple[str, ...] | None,
    owner: Int[np.ndarray, " N"] | None,
    feature_names: tuple[str, ...],
) -> Arms:
    """Rebuild unpickled arms; NumPy forgets that an array was read-only."""
    arms = Arms.__new__(Arms)
    arms._set(features, given, owner, feature_names)
    return arms


def _similar(name: str, names: Iterable[str]) -> list[str]:
    """Return up to three names like a misspelt one, at a bounded cost."""
    likely = (n for n in names if len(n) <= 64 and abs(len(n) - len(name)) <= 3)
    pool = {n.casefold(): n for n in islice(likely, 2000)}
    return [pool[n] for n in difflib.get_close_matches(name.casefold(), list(pool))]


def _as_floats(values: ArrayLike, error: type[Exception], what: str) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        raise error(f"{what} must be an array of real numbers; got {arms_io.show(values)}.")
    return array.astype(np.float64)


def _finite(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    if not np.isfinite(values).all():
        raise ParameterError("theta gives rewards above 1e308 on these arms. Rescale the features.")
    return values
