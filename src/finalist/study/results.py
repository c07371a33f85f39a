"""Results that a person gives back: pulls with their rewards, from Python or from a table.

A CSV file of pulls to measure has an empty column `reward`; a spreadsheet fills it and it comes
back here. Nothing is guessed: a cell that is not plainly a number is refused with its line and
column, and then nothing of the table is taken. An empty reward is a pull not measured yet.

Text that a spreadsheet might run as a formula is written with an apostrophe in front, which is
removed again on reading.
"""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int64

from finalist.arms_files import escape, unescape
from finalist.arms_io import show
from finalist.errors import FileFormatError, OutputError, RewardError
from finalist.files import write_file
from finalist.statistics import LARGEST_REWARD

if TYPE_CHECKING:
    import narwhals as nw

#: Bad cells that one message names.
_MOST = 5
_DELIMITERS = (",", ";", "\t")
_PULL_COLUMNS = ("pull_id", "arm", "worker", "reward", "note")
_ROLES = ("pull_id", "reward", "arm")
_BREAK = re.compile("\r\n|\r|\n")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"([+-]?\d{1,19})(\.0*)?", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_INT64 = np.iinfo(np.int64)
_LARGEST_EXACT = 2**53
_ADVICE = "Nothing was taken. Correct the table; leave a reward empty that is not measured yet."
_NOT_MEASURED = "no reward is filled in. Put the measured values into the column 'reward'."
_to_json = json.JSONEncoder(ensure_ascii=False).encode


@runtime_checkable
class TextStream(Protocol):
    """What text can be written to: an open file (opened with newline=""), or `io.StringIO`."""

    def write(self, text: str, /) -> object:
        """Write text."""
        ...


@dataclass(frozen=True, eq=False)
class Results:
    """Rewards of pulls, in the order given; each pull once.

    Attributes
    ----------
    pulls : (n,) array
        The numbers of the pulls.
    rewards : (n,) array
        Finite, at most 1e150 in size.
    notes : tuple of str or None
        What other columns of a table say of each pull, as the JSON text {column: value}.
    arms : tuple of str or None
        The arm named beside each pull, if any: the study checks that it is that pull's arm.
    """

    pulls: Int64[np.ndarray, " n"]
    rewards: Float[np.ndarray, " n"]
    notes: tuple[str | None, ...]
    arms: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.pulls)


def as_results(results: Any, *, decimal: str = ".") -> Results:
    """Read results in any of the forms in which they can be told.

    Parameters
    ----------
    results : mapping, pairs, data frame or path
        {pull: reward}; (pull, reward) pairs; any data frame with the columns `pull_id` and
        `reward`; or a CSV file. In a table an empty reward is a pull not measured yet, the
        column `arm` names the arm, and other columns become notes.
    decimal : "." or ","
        The decimal mark of a CSV file.

    Raises
    ------
    RewardError
        A reward that is not a finite number, a pull that is not a whole number, or a pull with
        two rewards.
    FileFormatError
        A file that is not a table of results; with the line and the column.

    Examples
    --------
    >>> as_results({3: 0.5, 4: 1}).rewards
    array([0.5, 1. ])
    >>> as_results([(3, 0.5), (3, 0.5)]).pulls
    array([3])
    """
    if isinstance(results, str | PathLike):
        return read_results(results, decimal=decimal)
    if isinstance(results, Mapping):
        return _from_pairs(results.items())
    if not isinstance(results, list | tuple | np.ndarray):
        import narwhals as nw

        try:
            frame = nw.from_native(results, eager_only=True, pass_through=True)
            if isinstance(frame, nw.DataFrame):
                return _from_frame(frame)
        except nw.exceptions.DuplicateError as error:
            raise RewardError(f"columns with the same name: {error}. Rename them.") from error
    return _from_pairs(results)


# --- Python values --------------------------------------------------------------------------


def _from_pairs(pairs: Any) -> Results:
    pulls: list[int] = []
    rewards: list[float] = []
    if not isinstance(pairs, Iterable) or isinstance(pairs, bytes | bytearray):
        raise RewardError(f"results are {show(pairs)}; give {{pull: reward}}, pairs or a table.")
    for pair in pairs:
        try:
            pull, reward = pair
        except (TypeError, ValueError):
            raise RewardError(f"{show(pair)} is not a pair; give (pull, reward).") from None
        problem = _pull_problem(pull)
        if problem is not None:
            raise RewardError(f"pull {show(pull)} {problem}.")
        problem = _reward_problem(reward)
        if problem is not None:
            raise RewardError(
                f"reward for pull {pull} is {show(reward)}, which {problem}. "
                "Leave out a pull that is not measured."
            )
        pulls.append(int(pull))
        rewards.append(float(reward))
    nothing = (None,) * len(pulls)
    numbers = np.array(pulls, dtype=np.int64)
    return _once(numbers, np.array(rewards, dtype=float), nothing, nothing, "", None)


def _pull_problem(pull: object) -> str | None:
    """Say why a value is not the number of a pull, or None."""
    if type(pull) is int and 0 <= pull <= _LARGEST_EXACT:  # the usual one, fast
        return None
    if pull is None:
        return "is not given; the number of a pull is an int"
    if isinstance(pull, str | bytes):
        return "is text; the number of a pull is an int. Use int(...)"
    if isinstance(pull, bool | np.bool_) or not isinstance(pull, Integral):
        return "is not a whole number; the number of a pull is an int"
    return None if _INT64.min <= int(pull) <= _INT64.max else "is too large for a pull"


def _reward_problem(reward: object) -> str | None:
    """Say why a value is not a reward, or None."""
    if type(reward) is float:  # the usual one, fast
        return _size_problem(reward)
    if isinstance(reward, str | bytes):
        return "is text; a reward is a finite number"
    if isinstance(reward, bool | np.bool_) or not isinstance(reward, Real):
        return "is no number; a reward is a finite number"
    try:
        value = float(reward)
    except OverflowError:
        value = math.inf
    return _size_problem(value)


def _size_problem(value: float) -> str | None:
    if not math.isfinite(value):
        return "is not a finite number"
    if abs(value) > LARGEST_REWARD:
        return f"is beyond {LARGEST_REWARD:g}, the largest reward; rescale"
    return None


def _once(
    pulls: Int64[np.ndarray, " n"],
    rewards: Float[np.ndarray, " n"],
    notes: tuple[str | None, ...],
    arms: tuple[str | None, ...],
    source: str,
    place: Callable[[int], str] | None,
) -> Results:
    """Make one result of a pull that was told twice with the same reward; refuse two rewards."""
    distinct, first, inverse = np.unique(pulls, return_index=True, return_inverse=True)
    if len(distinct) == len(pulls):
        return Results(pulls, rewards, notes, arms)
    kept_notes, kept_arms = list(notes), list(arms)
    owner = first[inverse]
    for i in np.flatnonzero(owner != np.arange(len(pulls))).tolist():
        j = int(owner[i])
        at = ("", "") if place is None else (f" ({place(j)})", f" ({place(i)})")
        if rewards[i] != rewards[j]:
            raise RewardError(
                f"{source}pull {pulls[i]} has two rewards: {rewards[j]}{at[0]} and "
                f"{rewards[i]}{at[1]}. Give the right one only."
            )
        if None not in (arms[i], kept_arms[j]) and arms[i] != kept_arms[j]:
            raise RewardError(
                f"{source}pull {pulls[i]} has two arms: {show(kept_arms[j])}{at[0]} and "
                f"{show(arms[i])}{at[1]}. Give the right one only."
            )
        kept_arms[j] = arms[i] if kept_arms[j] is None else kept_arms[j]
        kept_notes[j] = notes[i] if kept_notes[j] is None else kept_notes[j]
    rows = np.sort(first)
    return Results(
        pulls[rows],
        rewards[rows],
        tuple(kept_notes[i] for i in rows),
        tuple(kept_arms[i] for i in rows),
    )


# --- tables ---------------------------------------------------------------------------------


class _Columns(NamedTuple):
    """Where in a table what is: numbers of columns, and the names of all."""

    names: list[str]
    pull: int
    reward: int
    arm: int | None
    notes: list[int]


def _find_columns(header: Iterable[object], error: type[Exception], where: str) -> _Columns:
    """Find the columns by name, in any case and order; unnamed ones have the name ''."""
    names = [str(name).strip() for name in header]
    keys = [name.lower() if name.lower() in _ROLES else name for name in names]
    for j, key in enumerate(keys):
        if key and keys.index(key) != j:
            raise error(
                f"{where}columns {keys.index(key) + 1} and {j + 1} are both {show(names[j])}. "
                "Rename one."
            )
    for wanted in ("pull_id", "reward"):
        if wanted not in keys:
            found = show(names, 200)
            raise error(f"{where}there is no column {wanted!r}; the columns are {found}.")
    pull, reward = keys.index("pull_id"), keys.index("reward")
    arm = keys.index("arm") if "arm" in keys else None
    others = [j for j in range(len(names)) if j not in (pull, reward, arm)]
    return _Columns(names, pull, reward, arm, others)


def _refuse(
    bad: Iterable[tuple[int, int]],
    describe: Callable[[int, int], str],
    error: type[Exception],
    where: str,
) -> None:
    """Raise if there are bad cells (row, column), with the first few described."""
    cells = sorted(bad)
    if cells:
        texts = "; ".join(describe(i, j) for i, j in cells[:_MOST])
        more = f"; and {len(cells) - _MOST} more cells" if len(cells) > _MOST else ""
        raise error(f"{where}{texts}{more}. {_ADVICE}")


def _notes(
    names: list[str], columns: Sequence[Sequence[str | int | float | None]], n: int
) -> tuple[str | None, ...]:
    """Return for each of n rows the JSON text of what is there, None when nothing is."""
    used = [j for j, cells in enumerate(columns) if any(cell is not None for cell in cells)]
    if not used:
        return (None,) * n
    keys = [_to_json(names[j]) + ": " for j in used]

    def note(values: tuple[str | int | float | None, ...]) -> str | None:
        parts = [k + _to_json(v) for k, v in zip(keys, values, strict=True) if v is not None]
        return "{" + ", ".join(parts) + "}" if parts else None

    return tuple(map(note, zip(*(columns[j] for j in used), strict=True)))


# --- data frames ----------------------------------------------------------------------------


def _from_frame(frame: "nw.DataFrame[Any]") -> Results:
    columns = _find_columns(frame.columns, RewardError, "")
    cells = _frame_cells(frame, columns.reward)
    rows = [i for i, cell in enumerate(cells) if cell is not None]
    if not rows:
        raise RewardError(_NOT_MEASURED)

    def column(j: int) -> list[Any]:
        values = _frame_cells(frame, j)
        return [values[i] for i in rows]

    rewards, pulls = column(columns.reward), [_whole(cell) for cell in column(columns.pull)]
    problems = _problems(columns.pull, pulls, _pull_problem)
    problems |= _problems(columns.reward, rewards, _reward_problem)

    def describe(i: int, j: int) -> str:
        return f"row {rows[i] + 1}, column {columns.names[j]!r}: {problems[i, j]}"

    _refuse(problems, describe, RewardError, "")
    arms = [None] * len(rows) if columns.arm is None else map(_text, column(columns.arm))
    notes = [list(map(_plain, column(j))) for j in columns.notes]
    return _once(
        np.array(pulls, dtype=np.int64),
        np.array(rewards, dtype=float),
        _notes([columns.names[j] for j in columns.notes], notes, len(rows)),
        tuple(arms),
        "",
        lambda i: f"row {rows[i] + 1}",
    )


def _problems(
    j: int, values: list[Any], check: Callable[[object], str | None]
) -> dict[tuple[int, int], str]:
    """Say what is wrong with the cells of column j, by row and column."""
    found = ((i, value, check(value)) for i, value in enumerate(values))
    return {(i, j): f"{show(value)} {text}" for i, value, text in found if text is not None}


def _frame_cells(frame: "nw.DataFrame[Any]", j: int) -> list[Any]:
    """Return the cells of a column; missing ones and blank text are None."""
    series = frame[:, j]
    missing = series.is_null().to_list()
    return [
        None if gone or (isinstance(cell, str) and not cell.strip()) else cell
        for cell, gone in zip(series.to_list(), missing, strict=True)
    ]


def _whole(cell: Any) -> Any:
    """Turn 3.0 into 3: pandas makes floats of whole numbers when one is missing."""
    if not isinstance(cell, float | np.floating):
        return cell
    value = float(cell)
    return int(value) if abs(value) <= _LARGEST_EXACT and value.is_integer() else cell


def _text(cell: Any) -> str | None:
    """Return text that can be stored: a lone surrogate is none."""
    text = None if cell is None else str(cell)
    if text is not None and not text.isascii() and _SURROGATE.search(text):
        raise RewardError(f"{show(text)} is not valid Unicode. Correct the text.")
    return text


def _plain(cell: Any) -> str | int | float | None:
    """Return a value that JSON can hold."""
    value = cell.item() if isinstance(cell, np.generic) else cell
    if value is None or isinstance(value, int):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else _text(value)


# --- CSV files ------------------------------------------------------------------------------


class _Rows(NamedTuple):
    """The rows of a CSV file below the header, all of one length, and the line of each."""

    columns: _Columns
    cells: list[list[str]]
    lines: list[int]


def read_results(path: str | PathLike[str], *, decimal: str = ".") -> Results:
    r"""Read a CSV file with the columns `pull_id` and `reward`.

    The file is UTF-8; commas, semicolons or tabs separate its cells. Column names may be in any
    case and order. A row with an empty reward is skipped; cells that a spreadsheet left out at
    the end of a row are empty. The column `arm` names the arm; other columns become notes.

    Parameters
    ----------
    path : str or path
    decimal : "." or ","
        The decimal mark. A separator of thousands is refused, never guessed.

    Raises
    ------
    FileFormatError
        With the line and the column of up to five bad cells.
    RewardError
        A pull with two different rewards or arms.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("Pull_ID;arm;reward;note\n7;tin;0,5;\n8;zinc;;\n9;lead;2;hot\n")
    ...     file.flush()
    ...     results = read_results(file.name, decimal=",")
    >>> results.pulls, results.rewards
    (array([7, 9]), array([0.5, 2. ]))
    >>> results.arms, results.notes
    (('tin', 'lead'), (None, '{"note": "hot"}'))
    """
    _check_decimal(decimal, FileFormatError)
    columns, cells, lines = _measured(_read_rows(path), path)

    def column(j: int) -> list[str]:
        return [row[j] for row in cells]

    pulls, wrong_pulls = _integers(column(columns.pull), decimal)
    rewards = _floats(column(columns.reward), decimal)
    wrong_rewards = ~(np.abs(rewards) <= LARGEST_REWARD)  # also nan

    def describe(i: int, j: int) -> str:
        line = lines[i] + sum(len(_BREAK.findall(cell)) for cell in cells[i][:j])
        problem = _reward_cell_problem(cells[i][j], decimal)
        if j == columns.pull:
            problem = f"{show(cells[i][j])} is not the number of a pull"
        return f"line {line}, column {columns.names[j]!r}: {problem}"

    bad = [(int(i), columns.pull) for i in np.flatnonzero(wrong_pulls)]
    bad += [(int(i), columns.reward) for i in np.flatnonzero(wrong_rewards)]
    _refuse(bad, describe, FileFormatError, f"{path}, ")
    arms = [None] * len(cells) if columns.arm is None else _texts(column(columns.arm))
    notes = [_texts(column(j)) for j in columns.notes]
    return _once(
        pulls,
        rewards,
        _notes([columns.names[j] for j in columns.notes], notes, len(cells)),
        tuple(arms),
        f"{path}: ",
        lambda i: f"line {lines[i]}",
    )


def _check_decimal(decimal: str, error: type[Exception]) -> None:
    if decimal not in (".", ","):
        raise error(f"decimal is {decimal!r}; it is '.' or ','.")


def _read_text(path: str | PathLike[str]) -> str:
    content = Path(path).read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = len(re.findall(b"\r\n|\r|\n", content[: error.start])) + 1
        raise FileFormatError(
            f"{path}, line {line}: this is not UTF-8 text. Save the file as 'CSV UTF-8'."
        ) from error


def _parse(text: str, delimiter: str, most: int | None = None) -> tuple[list[int], list[list[str]]]:
    """Return the line on which each row starts, and its cells; blank rows are skipped."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines: list[int] = []
    rows: list[list[str]] = []
    line = 1
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                lines.append(line)
                rows.append(cells)
                if len(rows) == most:
                    break
            line = reader.line_num + 1
    except csv.Error as error:
        raise FileFormatError(f"line {line}: {error}. Check the quotes.") from error
    return lines, rows


def _delimiter(text: str) -> str:
    """Return the delimiter with which the header has the columns that it must have."""

    def fitness(delimiter: str) -> tuple[int, int]:
        try:
            _, rows = _parse(text, delimiter, most=1)
        except FileFormatError:
            return -1, 0
        names = [cell.strip().lower() for row in rows for cell in row]
        return ("pull_id" in names) + ("reward" in names), len(names)

    return max(_DELIMITERS, key=fitness)


def _read_rows(path: str | PathLike[str]) -> _Rows:
    text = _read_text(path)
    delimiter = _delimiter(text)
    try:
        lines, rows = _parse(text, delimiter)
    except FileFormatError as error:
        raise FileFormatError(f"{path}, {error}") from error
    if not rows:
        raise FileFormatError(f"{path}: the file is empty. It needs the columns pull_id, reward.")
    header, first = rows.pop(0), lines.pop(0)
    names = (unescape(cell.strip()) for cell in header)
    columns = _find_columns(names, FileFormatError, f"{path}, line {first}: ")
    for line, cells in zip(lines, rows, strict=True):
        if len(cells) != len(header):
            _fit(cells, header, f"{path}, line {line}", delimiter)
    named = [j for j in columns.notes if columns.names[j]]
    for j in set(columns.notes) - set(named):
        line = next((line for line, row in zip(lines, rows, strict=True) if row[j].strip()), 0)
        if line:
            raise FileFormatError(
                f"{path}, line {line}: column {j + 1} has no name. Name it in line {first}."
            )
    return _Rows(columns._replace(notes=named), rows, lines)


def _fit(cells: list[str], header: list[str], where: str, delimiter: str) -> None:
    """Give a row the length of the header: spreadsheets leave out or add empty cells at the end."""
    width = len(header)
    if any(map(str.strip, cells[width:])):
        raise FileFormatError(
            f"{where}: {len(cells)} cells, and the header has {width}, the last "
            f"{show(header[-1])}. Put a cell that has {delimiter!r} in it in double quotes."
        )
    cells[width:] = []
    cells.extend([""] * (width - len(cells)))


def _measured(rows: _Rows, path: str | PathLike[str]) -> _Rows:
    """Return the rows that have a reward."""
    columns, cells, lines = rows
    filled = [bool(row[columns.reward].strip()) for row in cells]
    if not any(filled):
        raise FileFormatError(f"{path}: {_NOT_MEASURED}")
    return _Rows(columns, list(compress(cells, filled)), list(compress(lines, filled)))


def _texts(cells: list[str]) -> list[str | None]:
    """Return the cells of a column of text; blank ones are None."""
    return [(unescape(c) if c[0] == "'" else c) if c.strip() else None for c in cells]


def _is_plain(cells: list[str]) -> bool:
    """Tell whether Python reads numbers as everybody does: no 1_000, no digits of other scripts."""
    text = "".join(cells)
    return text.isascii() and "_" not in text


def _integers(
    cells: list[str], decimal: str
) -> tuple[Int64[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """Convert the cells of a column to whole numbers, and tell which are none."""
    n = len(cells)
    try:
        if _is_plain(cells):
            return np.fromiter(map(int, cells), np.int64, n), np.zeros(n, dtype=bool)
    except (ValueError, OverflowError):
        pass
    values = [_integer(cell, decimal) for cell in cells]
    wrong = np.fromiter((value is None for value in values), bool, n)
    return np.fromiter((value or 0 for value in values), np.int64, n), wrong


def _integer(cell: str, decimal: str) -> int | None:
    """Return a whole number, also from 3.0, as some spreadsheets write it."""
    match = _WHOLE.fullmatch(_dotted(cell, decimal))
    value = None if match is None else int(match[1])
    return value if value is not None and _INT64.min <= value <= _INT64.max else None


def _floats(cells: list[str], decimal: str) -> Float[np.ndarray, " n"]:
    """Convert the cells of a column; what is not a number becomes nan."""
    n = len(cells)
    try:
        if _is_plain(cells):
            texts = cells if decimal == "." else (_dotted(cell, decimal) for cell in cells)
            return np.fromiter(map(float, texts), float, n)
    except ValueError:
        pass
    return np.fromiter((_float(cell, decimal) for cell in cells), float, n)


def _float(cell: str, decimal: str) -> float:
    text = _dotted(cell, decimal)
    return float(text) if _NUMBER.fullmatch(text) else math.nan


def _dotted(cell: str, decimal: str) -> str:
    """Return a number as Python writes it; with a decimal comma a point makes it none."""
    text = cell.strip()
    if decimal == ".":
        return text
    return "" if "." in text else text.replace(",", ".")


def _reward_cell_problem(cell: str, decimal: str) -> str:
    other = "," if decimal == "." else "."
    if other in cell:
        mark = "point" if decimal == "." else "comma"
        hint = f"; use decimal={other!r}" if math.isfinite(_float(cell, other)) else ""
        return f"{show(cell)} is not a number with a decimal {mark} and nothing else{hint}"
    value = _float(cell, decimal)
    return f"{show(cell)} {_size_problem(value)}"


# --- writing --------------------------------------------------------------------------------


def write_pulls(
    target: str | PathLike[str] | TextStream,
    rows: Sequence[Mapping[str, object]],
    *,
    decimal: str = ".",
) -> None:
    """Write pulls to measure as a CSV file that a person fills in and `read_results` reads.

    Parameters
    ----------
    target : str, path or text stream
    rows : sequence of mappings
        With `pull_id` and `arm`, perhaps `worker` and `note`; what else they hold are features.
    decimal : "." or ","
        With a decimal comma, semicolons separate the cells.

    Examples
    --------
    >>> import sys
    >>> write_pulls(sys.stdout, [{"pull_id": 7, "arm": "=tin", "dose": 0.1}])
    pull_id,arm,dose,reward,note
    7,'=tin,0.1,,
    """
    features = dict.fromkeys(key for row in rows for key in row if key not in _PULL_COLUMNS)
    worker = ["worker"] if any(row.get("worker") is not None for row in rows) else []
    header = ["pull_id", "arm", *worker, *features, "reward", "note"]
    found = _find_columns(header, OutputError, "")
    if "" in found.names:
        raise OutputError(f"column {found.names.index('') + 1} has no name. Name the feature.")
    write_table(target, header, ([row.get(c) for c in header] for row in rows), decimal=decimal)


def write_table(
    target: str | PathLike[str] | TextStream,
    header: Iterable[str],
    rows: Iterable[Iterable[object]],
    *,
    decimal: str = ".",
) -> None:
    """Write a CSV file that is safe to open in a spreadsheet.

    Numbers are in the shortest form that reads back exactly, None is an empty cell, and text
    that a spreadsheet might run gets an apostrophe in front. A file has a byte-order mark if it
    is not plain ASCII: without it Excel takes UTF-8 for something else.

    Parameters
    ----------
    target : str, path or text stream
    header : iterable of str
    rows : iterable of iterables
        As many cells each as the header has.
    decimal : "." or ","
        With a decimal comma, semicolons separate the cells.

    Examples
    --------
    >>> import sys
    >>> write_table(sys.stdout, ["arm", "mean"], [["-tin", -0.5]], decimal=",")
    arm;mean
    '-tin;-0,5
    """
    _check_decimal(decimal, OutputError)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter="," if decimal == "." else ";")
    names = [escape(name) for name in header]
    writer.writerow(names)
    for number, row in enumerate(rows, 1):
        cells = [_cell(value, decimal) for value in row]
        if len(cells) != len(names):
            raise OutputError(f"row {number} has {len(cells)} cells; the header has {len(names)}.")
        writer.writerow(cells)
    text = buffer.getvalue()
    if not isinstance(target, str | PathLike):
        target.write(text)
        return
    try:
        write_file(target, text.encode("utf-8" if text.isascii() else "utf-8-sig"))
    except UnicodeEncodeError as error:
        raise OutputError(
            f"cannot write {target}: {show(text[error.start])} is not valid Unicode."
        ) from error


def _cell(value: object, decimal: str) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None:
        return ""
    if isinstance(plain, float):
        return repr(float(plain)).replace(".", decimal)
    if isinstance(plain, int):
        return str(plain)
    return escape(str(plain))
