"""Results: the one form in which rewards come in, checked when it is made and never again."""

import re
from collections.abc import Callable, Sequence
from copy import copy
from itertools import compress
from numbers import Integral
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int64

from finalist.errors import FileFormatError, RewardError
from finalist.inference.statistics import LARGEST_REWARD, reward_problem
from finalist.text import show

#: Says where a result was read: row i, and which of its cells ("pull_id", "reward", "" for none).
Where = Callable[[int, str], str]
#: Bad cells that one message names.
_MAX_SHOWN = 5
_SURROGATE = re.compile("[\ud800-\udfff]")
_ADVICE = (
    "Nothing was stored. Leave the result empty if it has not been measured yet; write failed if "
    "the measurement failed."
)
#: What is written instead of a value if a measurement failed, in any case.
FAILED = "failed"


def is_failed(cell: object) -> bool:
    """Return whether a cell says that a measurement failed.

    Examples
    --------
    >>> is_failed(" Failed"), is_failed("n/a"), is_failed(0.5)
    (True, False, False)
    """
    return isinstance(cell, str) and cell.strip().lower() == FAILED


class Unread(str):
    """The text of a cell that is not the number it should be, with what is wrong with it."""

    problem: str

    def __new__(cls, text: str, problem: str) -> "Unread":
        """Keep the text and what is wrong with it."""
        cell = super().__new__(cls, text)
        cell.problem = problem
        return cell


class Results:
    """Rewards of pulls in order of the pulls, each pull once, and pulls that failed.

    A pull that is given twice alike is one result. Refused are pulls that are not whole numbers,
    values that are not finite or beyond 1e150, and two different values or arms of one pull. A
    pull that failed has the value NaN.

    Parameters
    ----------
    pull, value : sequences
        Numbers of pulls and what was measured; "failed" if the measurement failed.
    arm : sequence of str or None, optional
        The arm named beside each pull: the study checks that it is that pull's arm.
    note : sequence of str or None, optional
        What else a table says of each pull, as the JSON text {column: value}.
    where : callable, optional
        Names the cells of a table in errors. Without it the pulls are named.
    source : str
        The file, if they are from one: then bad cells are a `FileFormatError`.

    Examples
    --------
    >>> results = Results([4, 3, 4], [1, 0.5, 1.0], arm=[None, "tin", "lead"])
    >>> results.pull, results.value, results.arm
    (array([3, 4]), array([0.5, 1. ]), ('tin', 'lead'))
    """

    pull: Int64[np.ndarray, " n"]
    value: Float[np.ndarray, " n"]
    failed: Bool[np.ndarray, " n"]
    arm: tuple[str | None, ...]
    note: tuple[str | None, ...]
    #: What was found out about the file they are from.
    read_as: str = ""

    def __init__(
        self,
        pull: Sequence[Any] | np.ndarray,
        value: Sequence[Any] | np.ndarray,
        arm: Sequence[str | None] | None = None,
        note: Sequence[str | None] | None = None,
        *,
        where: Where | None = None,
        source: str = "",
    ) -> None:
        pulls, bad_pulls = _numbers(pull, np.dtype(np.int64), _pull_problem)
        failed = _failed(value)
        measured = [0.0 if f else v for v, f in zip(value, failed, strict=True)]
        values, bad_values = _numbers(
            measured if failed.any() else value, np.dtype(np.float64), _reward_problem
        )
        nothing = (None,) * len(pull)
        self.arm, self.note = (nothing if texts is None else tuple(texts) for texts in (arm, note))
        if not len(pull) == len(value) == len(self.arm) == len(self.note):
            raise RewardError("each pull_id needs one result, and one arm and note or None.")
        if bad_pulls or bad_values:
            _refuse(pull, bad_pulls, value, bad_values, where, source)
        for texts in (arm, note):
            _check_text(() if texts is None else texts)
        self.pull, self.failed = pulls, failed
        self.value = np.where(failed, np.nan, values + 0.0)  # no database keeps the sign of a zero
        self._where = where
        self._rows: Int64[np.ndarray, " n"] | None = None
        if not np.all(pulls[:-1] < pulls[1:]):
            self._merge(source)

    def __len__(self) -> int:
        return len(self.pull)

    def where(self, i: int) -> str:
        """Name a result in an error: its pull, and in a table its line or row.

        Examples
        --------
        >>> Results([4], [0.5]).where(0)
        'measurement 4'
        """
        row = "" if self._where is None else f" ({self._where(self._row(i), '')})"
        return f"measurement {self.pull[i]}{row}"

    def taken(self, chosen: Bool[np.ndarray, " n"]) -> "Results":
        """Return some of the results, as they are."""
        if chosen.all():
            return self
        some = copy(self)
        some.pull, some.value = self.pull[chosen], self.value[chosen]
        some.failed = self.failed[chosen]
        some.arm, some.note = (tuple(compress(t, chosen)) for t in (self.arm, self.note))
        rows = np.arange(len(self)) if self._rows is None else self._rows
        some._rows = rows[chosen]
        return some

    def _row(self, i: int) -> int:
        """Return which of the rows that were given result i is."""
        return i if self._rows is None else int(self._rows[i])

    def _merge(self, source: str) -> None:
        """Order results by pull and merge repeated ones."""
        pulls, rows, inverse = np.unique(self.pull, return_index=True, return_inverse=True)
        arm, note = list(self.arm), list(self.note)
        owner = rows[inverse]
        for i in np.flatnonzero(owner != np.arange(len(owner))).tolist():
            j = int(owner[i])
            one, other = (FAILED if self.failed[k] else self.value[k] for k in (j, i))
            if one != other:
                self._conflict(source, "results", j, one, i, other)
            if None not in (arm[i], arm[j]) and arm[i] != arm[j]:
                self._conflict(source, "candidates", j, arm[j], i, arm[i])
            arm[j] = arm[i] if arm[j] is None else arm[j]
            note[j] = note[i] if note[j] is None else note[j]
        self.pull, self.value, self._rows = pulls, self.value[rows], rows
        self.failed = self.failed[rows]
        self.arm = tuple([arm[i] for i in rows.tolist()])
        self.note = tuple([note[i] for i in rows.tolist()])

    def _conflict(self, source: str, what: str, j: int, one: Any, i: int, other: Any) -> None:
        at = ["" if self._where is None else f" ({self._where(row, '')})" for row in (j, i)]
        raise RewardError(
            f"{source and source + ': '}measurement {self.pull[i]} has two {what}: "
            f"{show(one)}{at[0]} and "
            f"{show(other)}{at[1]}. Give the right one only."
        )


def _failed(cells: Sequence[Any] | np.ndarray) -> Bool[np.ndarray, " n"]:
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iuf":
        return np.zeros(len(cells), dtype=bool)
    return np.fromiter(map(is_failed, cells), bool, len(cells))


def _numbers(
    cells: Sequence[Any] | np.ndarray,
    kind: np.dtype[Any],
    problem_of: Callable[[object], str | None],
) -> tuple[np.ndarray, dict[int, str]]:
    """Convert a column; return also what is wrong with the cells that are not such numbers."""
    if isinstance(cells, np.ndarray):
        plain = cells.dtype == kind
    else:  # bool is a type of its own here
        plain = {*map(type, cells)} <= ({int} if kind.kind == "i" else {int, float})
    try:
        found = np.asarray(cells if plain else (), dtype=kind)
        if plain and (kind.kind == "i" or bool(np.all(np.abs(found) <= LARGEST_REWARD))):
            return found, {}
    except OverflowError:
        pass
    problems = ((i, problem_of(cell)) for i, cell in enumerate(cells))
    bad = {i: problem for i, problem in problems if problem is not None}
    return np.array([] if bad else [kind.type(cell) for cell in cells], dtype=kind), bad


def _pull_problem(pull: object) -> str | None:
    """Say why a value is not the number of a pull, or None."""
    if isinstance(pull, Unread):
        return pull.problem
    if pull is None:
        return "is not given; the number of a measurement is an int"
    if isinstance(pull, str | bytes):
        return "is text; the number of a measurement is an int. Use int(...)"
    if isinstance(pull, bool | np.bool_) or not isinstance(pull, Integral):
        return "is not a whole number; the number of a measurement is an int"
    return None if -(2**63) <= int(pull) < 2**63 else "is too large for a measurement"


def _reward_problem(reward: object) -> str | None:
    return reward.problem if isinstance(reward, Unread) else reward_problem(reward)


def _refuse(
    pull: Sequence[Any] | np.ndarray,
    bad_pulls: dict[int, str],
    value: Sequence[Any] | np.ndarray,
    bad_values: dict[int, str],
    where: Where | None,
    source: str,
) -> None:
    """Raise for bad cells, with the first few named."""
    bad = [(i, "pull_id", pull[i], problem) for i, problem in bad_pulls.items()]
    bad += [(i, "reward", value[i], problem) for i, problem in bad_values.items()]
    bad.sort(key=lambda cell: cell[:2])
    if where is None:
        i, column, cell, problem = bad[0]
        if column == "pull_id":
            raise RewardError(f"measurement {show(cell)} {problem}.")
        raise RewardError(
            f"result for measurement {pull[i]} is {show(cell)}, which {problem}. "
            "Leave out what is not measured yet."
        )
    texts = [
        f"{where(i, column)}: {show(c) if c != '' else 'the cell'} {text}"
        for i, column, c, text in bad[:_MAX_SHOWN]
    ]
    if len(bad) > _MAX_SHOWN:
        texts.append(f"and {len(bad) - _MAX_SHOWN} more cells")
    error = FileFormatError if source else RewardError
    raise error(f"{source and source + ', '}{'; '.join(texts)}. {_ADVICE}")


def _check_text(texts: Sequence[str | None]) -> None:
    """Refuse text that cannot be stored."""
    if _SURROGATE.search("".join(filter(None, texts))):
        wrong = next(text for text in texts if text is not None and _SURROGATE.search(text))
        raise RewardError(f"{show(wrong)} is not valid Unicode. Correct the text.")
