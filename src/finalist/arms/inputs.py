"""Tables of arms: read from arrays, data frames and formulas, and checked.

Everything that enters becomes a `Table`: finite numbers, one row an arm, with or without
names. What cannot become one is refused with the place (row or line, and column), the value
and a remedy. `finalist.arms.Arms` is the public door to all of this.

In a file or data frame the column `name` (in any case) names the arms; without one, the first
text column does. pandas, narwhals, formulaic and pyarrow are imported when they are needed.
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from finalist.arms.names import check_names
from finalist.arms.recipes import Columns, Recipe, Table
from finalist.errors import ArmsError
from finalist.extras import need
from finalist.shapes import Float
from finalist.text import more, show

if TYPE_CHECKING:
    import narwhals as nw

NO_FEATURE = "Arms.unstructured(names) needs no features."
CATEGORIES = "Use Arms.from_table, which knows categories, or remove the column."


def check_columns(columns: Iterable[object], error: type[Exception], where: str) -> list[str]:
    """Return the column names as text; refuse empty and repeated ones."""
    seen: dict[str, int] = {}
    for j, column in enumerate(columns, 1):
        name = str(column)
        if not name.strip():
            raise error(f"{where}column {j} has no name. Name it, or leave out a row index.")
        if seen.setdefault(name, j) != j:
            raise error(f"{where}columns {seen[name]} and {j} are both {show(name)}. Rename one.")
    return list(seen)


def is_name(column: str) -> bool:
    """Tell whether a column holds the names of the arms."""
    return column.strip().lower() == "name"


def checked(
    values: Float[np.ndarray, "N d"],
    names: Iterable[object] | None,
    columns: Collection[str],
    cells: Columns | None = None,
) -> Table:
    """Check what every source has in common, and take over `values` (it is not copied)."""
    if values.shape[1] == 0:
        raise ArmsError(f"there is no feature column. {NO_FEATURE}")
    if values.shape[0] == 0:
        raise ArmsError("there are no candidates: the features have no row. Pass at least one.")
    reserved = next(filter(is_name, columns), None)
    if reserved is not None:
        raise ArmsError(
            f"column {reserved!r} would name the candidates. Give the feature another name."
        )
    checked_names = None if names is None else check_names(names)
    if checked_names is not None and len(checked_names) != len(values):
        raise ArmsError(
            f"there are {len(checked_names)} names for {len(values)} rows of features. "
            "Pass one name per row."
        )
    bad = ~np.isfinite(values)
    if bad.any():
        i, j = divmod(int(bad.argmax()), values.shape[1])
        raise ArmsError(
            _cell(i, list(columns)[j], values[i, j], checked_names) + " is not a finite number"
            f"{more(int(bad.sum()))}. Correct it or leave the candidate out."
        )
    values += 0.0  # turns -0.0 into 0.0
    return Table(values, checked_names, tuple(columns), cells)


def _cell(i: int, column: str, value: object, names: tuple[str, ...] | None) -> str:
    arm = "" if names is None else f" (candidate {show(names[i])})"
    return f"row {i + 1}{arm}, column {column!r}: {show(value)}"


# --- arrays ---------------------------------------------------------------------------------


def read_input(features: Any, names: Iterable[object] | None) -> Table:
    """Read an array, nested lists or any data frame."""
    if not isinstance(features, np.ndarray | list | tuple):
        import narwhals as nw

        try:
            frame = nw.from_native(features, eager_only=True, pass_through=True)
            if isinstance(frame, nw.DataFrame):
                return _read_frame(frame, names)
        except nw.exceptions.DuplicateError as error:
            raise ArmsError(f"columns with the same name: {error}. Rename them.") from error
    return read_array(features, names)


def read_array(features: Any, names: Iterable[object] | None) -> Table:
    """Read an array or nested lists; the columns are called f1, f2, ..."""
    if isinstance(features, np.ma.MaskedArray):
        features = np.ma.filled(features.astype(float), np.nan)
    array = _rectangular(features)
    if array.ndim != 2:
        raise ArmsError(
            f"features has shape {array.shape}; it must be 2-D: one row per candidate, one "
            f"column per "
            "feature. Use reshape(-1, 1) for a single feature."
        )
    columns = [f"f{j}" for j in range(1, array.shape[1] + 1)]
    return checked(_to_floats(array, columns), names, columns)


def _rectangular(features: Any) -> np.ndarray:
    try:
        array = np.asarray(features)
        # Beside text NumPy makes numbers text too; as objects they stay what they were.
        return array if array.dtype.kind not in "USO" else np.asarray(features, dtype=object)
    except ValueError as error:
        sizes = [np.size(row) for row in features]
        odd = next((i for i, size in enumerate(sizes) if size != sizes[0]), 0)
        raise ArmsError(
            f"row {odd + 1} has {sizes[odd]} features and row 1 has {sizes[0]}. "
            "Give every candidate the same features."
        ) from error


def _to_floats(array: np.ndarray, columns: list[str]) -> Float[np.ndarray, "N d"]:
    """Copy to float64; refuse what is not a real number."""
    if array.dtype.kind == "O":
        cells = np.array([_is_number(cell) for cell in array.flat], bool).reshape(array.shape)
        if not cells.all():
            i, j = divmod(int((~cells).argmax()), array.shape[1])
            raise ArmsError(
                _cell(i, columns[j], array[i, j], None) + " is not a number"
                f"{more(int((~cells).sum()))}. {CATEGORIES}"
            )
    elif array.dtype.kind not in "biuf":
        raise ArmsError(f"features are of type {array.dtype}; a feature is a real number.")
    with np.errstate(over="ignore"):
        return np.array(array, dtype=np.float64, order="C")


def _is_number(cell: object) -> bool:
    """Tell whether a cell of unknown type is a number; missing values are (they are nan)."""
    if isinstance(cell, str | bytes):
        return False
    try:
        np.float64(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(cell, complex)


def unstructured(names: Iterable[object] | int) -> Table:
    """Make one feature for each name, or for x1, x2, ..."""
    if isinstance(names, int | np.integer):
        given, K = None, int(names)
    else:
        given = check_names(names)
        K = len(given)
    if K < 1:
        raise ArmsError(f"there are {K} arms. Pass at least one name.")
    return checked(np.eye(K), given, [f"f{j}" for j in range(1, K + 1)])


# --- data frames ----------------------------------------------------------------------------


def _read_frame(frame: "nw.DataFrame[Any]", names: Iterable[object] | None) -> Table:
    columns = check_columns(frame.columns, ArmsError, "")
    series = dict(zip(columns, frame.iter_columns(), strict=True))
    label = _name_column(series) if names is None else None
    features = [column for column in columns if column != label]
    # One column at a time into place: no second copy of the whole table.
    values = np.empty((len(frame), len(features)))
    for j, column in enumerate(features):
        values[:, j] = _frame_column(column, series[column])
    return checked(values, _names(series, label, names), features, dict.fromkeys(columns))


def _names(
    series: "dict[str, nw.Series[Any]]", label: str | None, names: Iterable[object] | None
) -> Iterable[object] | None:
    """Return the names given, or those in a column; whole numbers there become text."""
    if label is None:
        return names
    values = series[label].to_list()
    return [str(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in values]


def _cells(cells: "nw.Series[Any]") -> Any:
    """Return a column as it is kept: numbers as an array, the rest as text, numbers and None."""
    if cells.dtype.is_numeric():
        array = np.array(cells.to_numpy())
        if array.dtype.kind in "iuf":
            array.flags.writeable = False
            return array
    pairs = zip(cells.to_list(), cells.is_null().to_list(), strict=True)
    plain = (None if missing else cell for cell, missing in pairs)
    return tuple(c if isinstance(c, str | int | float | None) else str(c) for c in plain)


def _name_column(series: "dict[str, nw.Series[Any]]", used: Collection[str] = ()) -> str | None:
    """Return the column that names the arms: `name`, or the first text column not `used`."""
    named = next(filter(is_name, series), None)
    text = (column for column in series if column not in used and _is_text(series[column]))
    return named if named is not None else next(text, None)


def _is_text(cells: "nw.Series[Any]") -> bool:
    import narwhals as nw

    if cells.dtype == nw.Object:
        return all(isinstance(cell, str) for cell in cells.to_list())
    return cells.dtype in (nw.String, nw.Categorical, nw.Enum)


def _frame_column(column: str, cells: "nw.Series[Any]") -> Float[np.ndarray, " N"]:
    import narwhals as nw

    if cells.dtype.is_numeric() or cells.dtype == nw.Boolean:
        return np.asarray(cells.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if _is_text(cells):
        first = cells.to_list()[0] if len(cells) else None
        raise ArmsError(f"row 1, column {column!r}: {show(first)} is text. {CATEGORIES}")
    if cells.dtype != nw.Object:
        raise ArmsError(f"column {column!r} is of type {cells.dtype}; a feature is a number.")
    mixed = np.empty((len(cells), 1), dtype=object)
    mixed[:, 0] = cells.to_list()
    return _to_floats(mixed, [column])[:, 0]


# --- formulas -------------------------------------------------------------------------------


def read_formula(formula: str, table: Any, names: Iterable[object] | None) -> Table:
    """Build the features from the columns of a data frame with a formula."""
    need("Formulas", "formulaic")
    import narwhals as nw
    from formulaic import Formula, SimpleFormula
    from formulaic.errors import FormulaicError

    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise ArmsError(f"table is a {type(table).__name__}; a formula needs a data frame.")
    try:
        parsed = Formula(formula)
        if not isinstance(parsed, SimpleFormula):
            raise ArmsError(
                f"the formula {formula!r} has more than a right-hand side, such as 'dose'. "
                "There are no results yet: leave out what is before '~'."
            )
        used = {str(variable) for variable in parsed.required_variables}
        _check_variables(frame, used)
        with np.errstate(all="ignore"):  # log(0) is reported below, with its row
            matrix = parsed.get_model_matrix(frame.to_pandas(), context={}, na_action="ignore")
    except FormulaicError as error:
        reason = str(error).partition("\n")[0]
        raise ArmsError(
            f"the formula {formula!r} cannot be used: {reason} "
            f"The table has the columns {show(list(frame.columns), 200)}."
        ) from error
    series = dict(zip(map(str, frame.columns), frame.iter_columns(), strict=True))
    label = _name_column(series, used) if names is None else None
    columns = check_columns(matrix.columns, ArmsError, "")
    values = _to_floats(np.asarray(matrix), columns)
    cells: dict[str, Any] = {c: None if c == label else _cells(series[c]) for c in series}
    for j, column in enumerate(columns):
        if column in cells and np.array_equal(cells[column], values[:, j]):
            cells[column] = None
    made = checked(values, _names(series, label, names), columns, cells)
    return made._replace(recipe=Recipe("formula", made.feature_names, formula))


def _check_variables(frame: "nw.DataFrame[Any]", used: set[str]) -> None:
    """Refuse missing values, which a formula would drop or turn into a category's absence."""
    for column in sorted(used.intersection(frame.columns)):
        cells = frame.get_column(column)
        bad = cells.is_null()
        if cells.dtype.is_float():
            bad = bad | cells.is_nan().fill_null(True)
        missing = np.flatnonzero(bad.to_numpy())
        if missing.size:
            raise ArmsError(
                f"row {missing[0] + 1}, column {column!r}: the value is missing"
                f"{more(missing.size)}. Fill it in or leave the candidate out."
            )
