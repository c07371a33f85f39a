"""What data frames and CSV files share: their columns, bad cells, and notes."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from finalist.text import show

#: The error of a table without any reward.
NOT_MEASURED = "no reward is filled in. Put the measured values into the column 'reward'."
#: Bad cells that one message names.
_MAX_SHOWN = 5
_ROLES = ("pull_id", "reward", "arm")
_ADVICE = "Nothing was taken. Correct the table; leave a reward empty that is not measured yet."
_to_json = json.JSONEncoder(ensure_ascii=False).encode


class Columns(NamedTuple):
    """Which column of a table holds what, and the names of all columns."""

    names: list[str]
    pull: int
    reward: int
    arm: int | None
    notes: list[int]


def find_columns(header: Iterable[object], error: type[Exception], where: str) -> Columns:
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
    return Columns(names, pull, reward, arm, others)


def refuse(
    bad: Iterable[tuple[int, int]],
    describe: Callable[[int, int], str],
    error: type[Exception],
    where: str,
) -> None:
    """Raise if there are bad cells (row, column), with the first few described."""
    cells = sorted(bad)
    if cells:
        texts = "; ".join(describe(i, j) for i, j in cells[:_MAX_SHOWN])
        more = f"; and {len(cells) - _MAX_SHOWN} more cells" if len(cells) > _MAX_SHOWN else ""
        raise error(f"{where}{texts}{more}. {_ADVICE}")


def as_notes(
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


def check_decimal(decimal: str, error: type[Exception]) -> None:
    """Raise if there is no such decimal mark."""
    if decimal not in (".", ","):
        raise error(f"decimal is {decimal!r}; it is '.' or ','.")
