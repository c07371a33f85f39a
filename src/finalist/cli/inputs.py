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
    from finalist.arms.recipes import Table
    from finalist.arms.table import ArmsTable
    from finalist.cli.options import ProblemOptions
    from finalist.strategies import Strategy


def load_arms(
    path: Path,
    measurable: str | None = None,
    sigma: str | None = None,
    cost: str | None = None,
    intercept: bool = False,
    candidates: Path | None = None,
) -> "ArmsTable":
    """Read a file of arms, with columns that are not features, and a file of candidates, as one.

    The suffix says what the file is: .parquet, .npy, otherwise CSV. The intercept is added to both
    together: each alone may have one that differs from the other's.
    """
    from dataclasses import replace

    from finalist.arms.table import read_table

    table = read_table(path, measurable=measurable, sigma=sigma, cost=cost)
    if candidates is not None:
        table = table.with_candidates(read_table(candidates).arms)
    return replace(table, arms=table.arms.with_intercept()) if intercept else table


def load_problem(
    path: Path, given: "ProblemOptions", sigma: Any, **missing: str
) -> "tuple[Arms, dict[str, Any]]":
    """Read a file of arms; return them, and the settings of `Problem` by name.

    `missing` are words for the error if the size of the noise is not given (`noise_size`).
    """
    table = load_arms(
        path,
        given.measurable_column,
        given.sigma_column,
        given.cost_column,
        given.intercept,
        given.candidates,
    )
    words = {name: getattr(value, "value", value) for name, value in given.words.items()}
    words["sigma"] = noise_size(table.sigma, sigma, words["noise"], **missing)
    words["cost"] = 1.0 if table.cost is None else table.cost
    return table.arms, words


def noise_size(
    column: "np.ndarray | None",
    given: Any,
    noise: str = "gaussian",
    *,
    unknown: str = "a guess if it is unknown; only a study ('finalist new') estimates it",
    binary: str = ": --noise bernoulli needs no other",
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
    """
    from finalist.problem import UNSET
    from finalist.problem.noise import missing_sigma, takes_sigma

    if column is not None and given is not None:
        raise ProblemError(
            f"--sigma {given} and --sigma-column are both given; use only one of them."
        )
    if column is not None:
        return column
    if given is None and takes_sigma(noise):
        raise missing_sigma("--sigma", unknown=unknown, binary=binary, noise=noise)
    return UNSET if given is None else given


def read_vectors(path: Path, arms: "Arms") -> list[list[float]]:
    """Read vectors in feature space, one per row, with the columns of the arms in any order."""
    from finalist.arms.files import read_file

    return _in_order(path, read_file(path), arms.feature_names)


def _in_order(path: Path, table: "Table", wanted: tuple[str, ...]) -> list[list[float]]:
    """Put the columns of a table in the order of the features; they must be the same."""
    missing = [column for column in wanted if column not in table.feature_names]
    surplus = [column for column in table.feature_names if column not in wanted]
    if missing and table.names is not None:
        raise FileFormatError(
            f"{path}, column {missing[0]!r}: it is missing, or text such as {table.names[0]!r}; "
            "as a feature of the arms it needs a number in every row."
        )
    if missing:
        raise FileFormatError(
            f"{path}, line 1: there is no column {missing[0]!r}, a feature of the arms. "
            "Use the columns of the file of arms."
        )
    if surplus:
        raise FileFormatError(
            f"{path}, line 1, column {surplus[0]!r}: the arms have no such feature. "
            "Use the columns of the file of arms."
        )
    order = [table.feature_names.index(column) for column in wanted]
    rows: list[list[float]] = table.features[:, order].tolist()
    return rows


def read_theta(text: str | None, path: Path | None, arms: "Arms") -> list[float]:
    """Read theta from the command line or from a file; exactly one of them must be given."""
    if (text is None) == (path is None):
        raise ParameterError("give theta exactly once: either --theta 1,0,... or --theta-file.")
    if text is not None:
        return _parse(text)
    assert path is not None
    from finalist.arms.files import is_parquet

    if not is_parquet(path):
        bare = _bare_numbers(path)
        if bare is not None:
            return bare
    rows = read_vectors(path, arms)
    if len(rows) != 1:
        raise FileFormatError(
            f"{path}: there are {len(rows)} rows below the header; theta must be a single row."
        )
    return rows[0]


def _parse(text: str) -> list[float]:
    values = []
    for position, part in enumerate(text.split(","), 1):
        number = _number(part)
        if number is None:
            raise ParameterError(
                f"--theta {text!r}: number {position} is {part!r}; "
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
        return None  # the table reader reports where
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
            f"{name} needs to know how large expected rewards are; add --set theta_norm=..., a "
            "bound on their root mean square."
        )
    return strategies.configured(name, changes, arms, theta)


def _value(text: str) -> Any:
    """Parse a JSON number, true, false, null or list; anything else is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
