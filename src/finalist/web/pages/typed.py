"""Rewards that somebody typed into the table of the page."""

import math
import re
from collections.abc import Iterable

from finalist.arms.inputs import show
from finalist.errors import RewardError
from finalist.files import printable
from finalist.inference.statistics import LARGEST_REWARD
from finalist.study.results.numbers import floats
from finalist.web.format import MINUS
from finalist.web.snapshot import MAX_PULLS

_FIELD = re.compile(r"reward-([1-9][0-9]{0,17})")


def read_size(text: str) -> int | None:
    """Return how many pulls somebody wants at a time; None if nothing was typed.

    Examples
    --------
    >>> read_size(" 96 "), read_size("")
    (96, None)
    """
    plain = text.strip()
    if not plain:
        return None
    whole = plain.isascii() and plain.isdigit() and len(plain) <= 9
    if not (whole and 1 <= int(plain) <= MAX_PULLS):
        raise RewardError(
            f"the size of the batch is {printable(plain, 40)!r}; it is a whole number from 1 to "
            f"{MAX_PULLS:,}, or nothing: then the strategy chooses."
        )
    return int(plain)


def read_typed(fields: Iterable[tuple[str, object]]) -> tuple[dict[int, float], dict[int, str]]:
    """Return rewards by pull, and what is wrong with fields that hold none.

    Examples
    --------
    >>> read_typed([("reward-1", "0.5"), ("reward-2", ""), ("reward-3", "0,5")])
    ({1: 0.5}, {3: "'0,5' is not a number; use a point, not a comma."})
    """
    rewards: dict[int, float] = {}
    wrong: dict[int, str] = {}
    for field, value in fields:
        found = _FIELD.fullmatch(field)
        if found is None or not isinstance(value, str) or not value.strip():
            continue
        number = float(floats([value.strip().replace(MINUS, "-")], ".")[0])
        if abs(number) <= LARGEST_REWARD:  # false for nan
            rewards[int(found[1])] = number
            continue
        hint = "; use a point, not a comma" if "," in value else ""
        what = "is not a number" if math.isnan(number) else "is too large"
        wrong[int(found[1])] = f"{show(value.strip(), 40)} {what}{hint}."
    return rewards, wrong
