"""The arms: the finite set of candidates, with names, features and coordinates in their span.

Arms with identical features cannot be told apart by any measurement; they are one arm with
several names. Every other module works in span coordinates Z with X = Z B, in which the arms
are well scaled (Z'Z / K = I, over the arms that can be pulled): features of any size, collinear
features and d > K then need no special care, and X theta = Z phi.
"""

import difflib
from collections.abc import Iterable
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from finalist.arms import files as arms_files
from finalist.arms import inputs as arms_io
from finalist.arms.roles import Mask, any_of, as_mask, join, role_of
from finalist.arms.rows import equal_rows
from finalist.arms.span import Span, factorise, shorten
from finalist.errors import ArmsError, DirectionError, ParameterError, UnknownArmError

if TYPE_CHECKING:
    import pandas as pd

#: What a combination of the features may differ from 1 by and be constant.
CONSTANT = 1e-9


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
    measurable : (N,) sequence of bool, optional
        Which rows can be pulled; all unless said. The others can still win: they are judged by
        measuring the rest, as far as those tell.

    Attributes
    ----------
    features : (K, d) array
        The distinct arms, in order of first appearance, read-only.
    feature_names : tuple of str
        The d columns; f1, f2, ... for an array.
    names, aliases : tuple
        The first name and all the names of each arm.
    rank : int
        Dimension r of the span of the arms that can be pulled.
    coordinates : (K, r) array
        The arms in span coordinates Z, with Z'Z / K = I over those that can be pulled, read-only.
    measurable, candidate : (K,) arrays of bool
        Which arms can be pulled, and which can win; all unless said.

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
        "_candidate",
        "_coordinates",
        "_feature_names",
        "_features",
        "_given",
        "_index",
        "_measurable",
        "_names",
        "_owner",
        "_span",
    )

    def __init__(
        self,
        features: Any,
        names: Iterable[str] | None = None,
        *,
        measurable: ArrayLike | None = None,
    ) -> None:
        table = arms_io.read_input(features, names)
        self._merge(table, as_mask("measurable", measurable, len(table.features)), None)

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
    def from_npy(cls, path: str | PathLike[str]) -> "Arms":
        """Read a NumPy file (`numpy.save`) with the features, a row per arm: x1, x2, ..."""
        return cls._from_table(arms_files.read_npy(path))

    @classmethod
    def from_formula(cls, formula: str, table: Any, names: Iterable[str] | None = None) -> "Arms":
        """Make the features from the columns of a data frame.

        This evaluates Python: a formula can do all that your program can. Write it yourself, and
        never give it text from somebody else. finalist evaluates no formula that comes from a
        file, a page or the API: there it is the name of a column or a remark, text for people.

        Parameters
        ----------
        formula : str
            The right-hand side of a formulaic formula: `C(material)` for categories, `a:b`
            for interactions, `I(dose**2)` or `poly(dose, 2)` for polynomials. The intercept
            that comes with a formula is a constant feature and does no harm; `0 + ...`
            leaves it out.
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
        arms._merge(table, None, None)
        return arms

    def _merge(self, table: arms_io.Table, measurable: Mask | None, candidate: Mask | None) -> None:
        """Make one arm of the rows with identical features; it can do what one of them can."""
        first_row = equal_rows(table.features)
        distinct = first_row == np.arange(len(first_row))
        features, owner = table.features, None
        if not distinct.all():
            owner = (np.cumsum(distinct) - 1)[first_row]
            features = table.features[distinct]
            measurable, candidate = (any_of(m, owner) for m in (measurable, candidate))
        self._set(features, table.names, owner, table.feature_names, measurable, candidate)

    def _set(
        self,
        features: Float[np.ndarray, "K d"],
        given: tuple[str, ...] | None,
        owner: Int[np.ndarray, " N"] | None,
        feature_names: tuple[str, ...],
        measurable: Mask | None,
        candidate: Mask | None,
    ) -> None:
        """Fill the slots; `given` has N names (None: x1, ..., xN), `owner` the arm of each.

        Of the masks None means all.
        """
        features.flags.writeable = False
        self._measurable = role_of("can be pulled", measurable, len(features))
        self._candidate = role_of("can win", candidate, len(features))
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
        max(K, d, 64) units of rounding of the largest count as zero. Arms that cannot be pulled
        do not count.
        """
        return len(self._factors().scale)

    @property
    def coordinates(self) -> Float[np.ndarray, "K r"]:
        """The arms in span coordinates Z, with Z'Z / K = I for those that can be pulled.

        Of an arm that cannot be pulled this is the part that the others have a share in; a
        `Problem` refuses candidates that differ in more than that.
        """
        if self._coordinates is None:
            Z = self._factors().coordinates(self._features)
            Z.flags.writeable = False
            self._coordinates = Z
        return self._coordinates

    def _factors(self) -> Span:
        if self._span is None:
            plain = self._measurable.all()
            self._span = factorise(self._features if plain else self._features[self._measurable])
        return self._span

    @property
    def measurable(self) -> Mask:
        """Which arms can be pulled, read-only."""
        return self._measurable

    @property
    def candidate(self) -> Mask:
        """Which arms can win, read-only."""
        return self._candidate

    def _marked(self, measurable: Mask | None, candidate: Mask | None) -> "Arms":
        """Return these arms with other roles; None means all."""
        arms = Arms.__new__(Arms)
        parts = self._features, self._given, self._owner, self._feature_names
        arms._set(*parts, measurable, candidate)
        return arms

    @property
    def has_intercept(self) -> bool:
        """Whether some combination of the features is the same for all arms."""
        Z = self.coordinates
        one = Z[self._measurable].mean(axis=0)  # least squares: Z'Z / K = I
        return bool(np.abs(Z @ one - 1.0).max() <= CONSTANT)

    def with_intercept(self) -> "Arms":
        """Return these arms with a last feature that is 1 for all of them, if there is none yet.

        Without one, an arm whose features are all 0 has an expected reward of 0. Results that have
        a level of their own, such as a yield around 60, need it.

        Examples
        --------
        >>> arms = Arms([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]).with_intercept()
        >>> arms.feature_names, arms.features[2]
        (('f1', 'f2', 'intercept'), array([0., 0., 1.]))
        >>> arms.with_intercept() is arms, Arms.unstructured(3).has_intercept
        (True, True)
        """
        if self.has_intercept:
            return self
        word = "intercept"
        while word in self._feature_names:
            word = f"{word}_"
        wider = np.column_stack([self._features, np.ones(len(self))])
        arms = Arms.__new__(Arms)
        roles = self._measurable, self._candidate
        arms._set(wider, self._given, self._owner, (*self._feature_names, word), *roles)
        return arms

    def with_candidates(self, candidates: "Arms") -> "Arms":
        """Return these arms to be measured, and others to choose from, as one set.

        Parameters
        ----------
        candidates : Arms
            What the winner is chosen from, with the same features. One of them that has the
            features of an arm is that arm, and can be measured too. Without names of their own
            they are called z1, z2, ...

        Examples
        --------
        >>> doses = Arms([[1.0, 1.0], [1.0, 2.0]], names=["low", "high"])
        >>> both = doses.with_candidates(Arms([[1.0, 3.0]], names=["extreme"]))
        >>> both.names, both.measurable.tolist(), both.candidate.tolist()
        (('low', 'high', 'extreme'), [True, True, False], [False, False, True])
        """
        if candidates.feature_names != self.feature_names:
            raise ArmsError(
                f"the candidates have the features {', '.join(candidates.feature_names)} and the "
                f"arms {', '.join(self.feature_names)}; use the same, in the same order."
            )
        second = candidates._table()
        if candidates._given is None:
            given = tuple(f"z{i}" for i in range(1, len(second.features) + 1))
            second = second._replace(names=given)
        joined = Arms.__new__(Arms)
        joined._merge(*join(self._table(), self._measurable[self._owners()], second))
        return joined

    def only(self, some: Mask) -> "Arms":
        """Return some of the arms, with all their names; among themselves they can do all.

        Examples
        --------
        >>> arms = Arms([[1.0], [2.0], [3.0]], names=["a", "b", "c"])
        >>> arms.only(np.array([True, False, True])).names
        ('a', 'c')
        """
        names = [name for i in np.flatnonzero(some) for name in self.aliases[i]]
        rows = self._owners()[some[self._owners()]]
        table = arms_io.Table(self._features[rows], tuple(names), self._feature_names)
        return Arms._from_table(table)

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
        if len(self) == 1:
            return f"The only arm is {some}."
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
        an apostrophe in front, so that no spreadsheet runs it as a formula. What can be pulled
        and what can win is not in the file.
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

    def _owners(self) -> Int[np.ndarray, " N"]:
        """Return the arm of each row of the table, a row for every name."""
        return np.arange(len(self)) if self._owner is None else np.sort(self._owner)

    def _table(self) -> arms_io.Table:
        names = tuple(name for aliases in self.aliases for name in aliases)
        features = self._features if self._owner is None else self._features[self._owners()]
        return arms_io.Table(features, names, self._feature_names)

    def __repr__(self) -> str:
        return f"Arms(K={len(self)}, d={len(self._feature_names)}, rank={self.rank})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Arms):
            return NotImplemented
        return (
            self._feature_names == other._feature_names
            and np.array_equal(self._features, other._features)
            and np.array_equal(self._measurable, other._measurable)
            and np.array_equal(self._candidate, other._candidate)
            and self.aliases == other.aliases
        )

    def __hash__(self) -> int:
        return hash((self._features.shape, self._feature_names, self._features[0].tobytes()))

    def __copy__(self) -> "Arms":
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> "Arms":
        return self

    def __reduce__(self) -> tuple[object, ...]:
        masks = self._measurable, self._candidate
        return _restore, (self._features, self._given, self._owner, self._feature_names, *masks)


def _restore(
    features: Float[np.ndarray, "K d"],
    given: tuple[str, ...] | None,
    owner: Int[np.ndarray, " N"] | None,
    feature_names: tuple[str, ...],
    measurable: Mask,
    candidate: Mask,
) -> Arms:
    """Rebuild unpickled arms; NumPy forgets that an array was read-only."""
    arms = Arms.__new__(Arms)
    arms._set(features, given, owner, feature_names, measurable, candidate)
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
