"""What the commands read: arms, directions and the parameter theta.

Errors in a file are reported with line and column, by the same code that reads arms.
"""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finalist.errors import FileFormatError, ParameterError, ProblemError

if TYPE_CHECKING:
    import numpy as np

    from finalist.arms import Arms
    from finalist.arms.table import ArmsTable
    from finalist.cli.groups import ProblemOptions, TableOptions
    from finalist.strategies import Strategy


def load_arms(path: Path, given: "ProblemOptions | None" = None) -> "ArmsTable":
    """Read a file of arms, with columns that are not features, and a file of candidates, as one.

    With `TableOptions` columns have roles and a model makes the features. Otherwise the table is
    taken as given; a constant is added to both files together: each alone may have one that
    differs from the other's.
    """
    from dataclasses import replace

    from finalist.arms.table import read_table
    from finalist.cli.groups import ProblemOptions, TableOptions

    given = given or ProblemOptions({})
    if isinstance(given, TableOptions):
        return _by_model(path, given)
    table = read_table(
        path,
        measurable=given.measurable_column,
        sigma=given.sigma_column,
        cost=given.cost_column,
        dialect=given.reading.dialect(),
    )
    if given.candidates is not None:
        others = read_table(given.candidates, dialect=given.reading.dialect())
        table = table.with_candidates(others.arms)
    return replace(table, arms=table.arms.with_intercept()) if given.intercept else table


def _by_model(path: Path, given: "TableOptions") -> "ArmsTable":
    from finalist.arms.table import read_candidates
    from finalist.tables.columns import BESIDE

    dialect, roles = given.reading.dialect(), _roles(given)
    table = read_candidates(
        path,
        roles,
        model=given.model,
        intercept=given.intercept,
        drop_incomplete=given.drop_incomplete,
        formula=given.formula,
        dialect=dialect,
    )
    if given.candidates is None:
        return table
    if given.formula is not None:
        raise ProblemError(
            "--formula and --candidates: features of a second table are made by a --model. Put "
            "both into one table with a column of yes and no (--column NAME=measurable)."
        )
    own = {column: role for column, role in roles.items() if role not in BESIDE}
    others = read_candidates(
        given.candidates,
        own,
        like=table.arms.recipe,
        drop_incomplete=given.drop_incomplete,
        dialect=dialect,
    )
    return table.with_candidates(others.arms)


def _roles(given: "TableOptions") -> dict[str, str]:
    """Return the roles that options give to columns."""
    named = (given.measurable_column, given.sigma_column, given.cost_column)
    roles = {
        column: role
        for column, role in zip(named, ("measurable", "noise", "cost"), strict=True)
        if column is not None
    }
    for text in given.column or []:
        column, equals, role = text.rpartition("=")
        if not equals:
            raise ProblemError(f"--column {text!r}: write NAME=ROLE, such as Tone=category.")
        roles[column.strip()] = role
    return roles


def load_problem(
    path: Path, given: "ProblemOptions", sigma: Any, **missing: Any
) -> "tuple[ArmsTable, dict[str, Any]]":
    """Read a file of arms; return them, and the settings of `Problem` by name.

    `missing` are words for the error if the size of the noise is not given (`noise_size`).
    """
    table = load_arms(path, given)
    words = {name: getattr(value, "value", value) for name, value in given.words.items()}
    words["sigma"] = noise_size(table.sigma, sigma, words["noise"], **missing)
    words["cost"] = 1.0 if table.cost is None else table.cost
    return table, words


def noise_size(
    column: "np.ndarray | None",
    given: Any,
    noise: str = "gaussian",
    *,
    unknown: str = "a guess if it is unknown; only a study ('finalist new') estimates it",
    binary: str = ": --noise bernoulli needs no other",
    otherwise: str | None = None,
) -> Any:
    """Return the size of the noise, for each arm or for all; refuse both, and neither.

    Parameters
    ----------
    column : (K,) array or None
        The values of --sigma-column.
    given : float, str or None
        The value of --sigma.
    noise : str
        The noise model; "bernoulli" has its own size.
    unknown, binary : str
        Text for `noise.missing_sigma`.
    otherwise : str or None
        What it is if it is not given; None if it has to be.
    """
    from finalist.problem import UNSET
    from finalist.problem.noise import missing_sigma, takes_sigma

    if column is not None and given is not None:
        raise ProblemError(
            f"--sigma {given} and --sigma-column are both given; use only one of them."
        )
    if column is not None:
        return column
    if given is None and otherwise is not None:
        return otherwise
    if given is None and takes_sigma(noise):
        raise missing_sigma("--sigma", unknown=unknown, binary=binary, noise=noise)
    return UNSET if given is None else given


def size_or_unknown(given: "np.ndarray | str | Unset") -> "np.ndarray | float | Unset | None":
    """Read the size of the noise if it is text: a number, or 'unknown'."""
    if not isinstance(given, str):
        return given
    if given.lower() == "unknown":
        return None
    try:
        return float(given)
    except ValueError:
        raise ProblemError(f"--sigma is {given!r}; write a number, or 'unknown'.") from None


def read_vectors(path: Path, arms: "Arms", wanted: Sequence[str] = ()) -> list[list[float]]:
    """Read vectors in feature space, one per row, with the columns of the arms in any order."""
    import numpy as np

    from finalist import tables
    from finalist.text import more, show

    cells = tables.read(path)
    wanted = wanted or arms.feature_names
    missing = [column for column in wanted if column not in cells]
    if missing:
        raise FileFormatError(
            f"{cells.top()}there is no column {missing[0]!r}, a feature of the candidates. "
            "Use the columns of the table of candidates."
        )
    columns = [cells.numbers(column) for column in wanted]
    for column, values in zip(wanted, columns, strict=True):
        bad = np.flatnonzero(np.isnan(values))
        if bad.size:
            i = int(bad[0])
            raise FileFormatError(
                f"{cells.where(i, column)}: {show(cells.column(column)[i])} is not a finite "
                f"number{more(bad.size)}."
            )
    surplus = [c for c in cells.names if c not in wanted and not np.isnan(cells.numbers(c)).all()]
    if surplus:
        raise FileFormatError(
            f"{cells.top()[:-2]}, column {surplus[0]!r}: the candidates have no such feature. "
            "Use the columns of the table of candidates."
        )
    rows: list[list[float]] = np.column_stack(columns).tolist()
    return rows


def read_slopes(text: str | None, path: Path | None, arms: "Arms") -> list[float]:
    """Read theta without the level that a table gets by itself: wherever that is, nothing changes.

    The level may be given, too.
    """
    count = len(arms.feature_names) - 1
    if not arms.recipe.constant or arms.recipe.name == "separate":
        return read_theta(text, path, arms)
    if text is not None and path is None:
        theta = read_numbers("--theta", text)
    else:
        theta = read_theta(text, path, arms, arms.feature_names[:count])
    return [*theta, 0.0] if len(theta) == count else theta


def read_theta(
    text: str | None, path: Path | None, arms: "Arms", wanted: Sequence[str] = ()
) -> list[float]:
    """Read theta from the command line or from a file; exactly one of them must be given."""
    if (text is None) == (path is None):
        raise ParameterError("give theta exactly once: either --theta 1,0,... or --theta-file.")
    if text is not None:
        return read_numbers("--theta", text)
    assert path is not None
    bare = _bare_numbers(path)
    if bare is not None:
        return bare
    rows = read_vectors(path, arms, wanted)
    if len(rows) != 1:
        raise FileFormatError(
            f"{path}: there are {len(rows)} rows below the header; theta must be a single row."
        )
    return rows[0]


def read_numbers(option: str, text: str) -> list[float]:
    """Read comma-separated numbers."""
    values = []
    for position, part in enumerate(text.split(","), 1):
        number = _number(part)
        if number is None:
            raise ParameterError(
                f"{option} {text!r}: number {position} is {part!r}; "
                "write comma-separated numbers, such as 1,0,-0.5."
            )
        values.append(number)
    return values


def _bare_numbers(path: Path) -> list[float] | None:
    """Read numbers separated by commas or line ends; None if the file has a header."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            rows = [(reader.line_num, row) for row in reader if row]
    except (UnicodeDecodeError, csv.Error):
        return None  # not text, or the table reader reports where
    if not rows or _number(rows[0][1][0]) is None:
        return None
    values = []
    for line, row in rows:
        for position, cell in enumerate(row, 1):
            number = _number(cell)
            if number is None:
                raise FileFormatError(
                    f"{path}, line {line}, column {position}: {cell!r} is not a number."
                )
            values.append(number)
    return values


def _number(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def configured(
    name: str, settings: Sequence[str], arms: "Arms", theta: "np.ndarray | None"
) -> "Strategy":
    """Return the named strategy with the settings NAME=VALUE."""
    from finalist import strategies

    known, changes = strategies.settings_of(name), dict[str, Any]()
    for text in settings:
        word, equals, value = text.partition("=")
        if not equals or (word not in known and strategies.strategy_class(name)):
            raise ProblemError(
                f"--set {text!r}: write NAME=VALUE; the settings of {name} are "
                f"{', '.join(known) or 'none'}."
            )
        changes[word] = _value(value)
    if theta is None and "theta_norm" in known and "theta_norm" not in changes:
        raise ProblemError(
            f"{name} needs to know how large expected results are; add --set theta_norm=..., a "
            "bound on their root mean square."
        )
    return strategies.configured(name, changes, arms, theta)


def _value(text: str) -> Any:
    """Parse a JSON number, true, false, null or list; anything else is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
