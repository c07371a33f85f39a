"""Fields of forms: the texts, files and numbers that people send from a page."""

import math
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import FormData, UploadFile

from finalist.errors import RewardError
from finalist.files import printable
from finalist.inference.statistics import LARGEST_REWARD
from finalist.study.results import FAILED
from finalist.study.results.results import is_failed
from finalist.tables.numbers import kind_of, number
from finalist.web.pages.format import MAX_PULLS

#: What people write where there is no result.
_NOTHING = frozenset({"n/a", "na", "n.a", "nan", "none", "null", "missing", "-", "--", "?", "x"})
_REWARD = re.compile(r"reward-([1-9][0-9]{0,17})")


async def _form(request: Request) -> AsyncIterator[FormData]:
    form = await request.form()
    try:
        yield form
    finally:
        await form.close()


Form = Annotated[FormData, Depends(_form)]


def text_of(form: FormData, field: str) -> str:
    """Return a field as text; empty if it is missing or a file."""
    value = form.get(field, "")
    return value if isinstance(value, str) else ""


def texts_of(form: FormData) -> dict[str, str]:
    """Return all fields with text, to show them again."""
    return {key: value for key, value in form.multi_items() if isinstance(value, str)}


def uploaded(
    form: FormData, field: str = "file", pasted: str = "pasted", name: str = "the table"
) -> tuple[bytes, str]:
    """Return the uploaded file and its name for messages, or else the pasted rows."""
    file = form.get(field)
    if isinstance(file, UploadFile) and file.filename:
        return file.file.read(), printable(file.filename.replace("\\", "/").rsplit("/")[-1], 60)
    return text_of(form, pasted).encode("utf-8", "replace"), name


# ---- what is measured --------------------------------------------------------------------


def read_size(text: str) -> int | None:
    """Return the size of a batch; None if nothing was typed.

    Examples
    --------
    >>> read_size(" 96 "), read_size("")
    (96, None)
    """
    plain = text.strip()
    if not plain:
        return None
    size = digits(plain)
    if not 1 <= size <= MAX_PULLS:
        raise RewardError(
            f"the size of the batch is “{printable(plain, 40)}”; it must be a whole number from 1 "
            f"to {MAX_PULLS:,}, or empty to let the study choose."
        )
    return size


def digits(text: str) -> int:
    """Return a number of at most nine digits; 0 for any other text."""
    plain = text.strip()
    return int(plain) if plain.isascii() and plain.isdigit() and len(plain) <= 9 else 0


def read_rewards(
    fields: Iterable[tuple[str, object]],
) -> tuple[dict[int, float | str], dict[int, str]]:
    """Return results by measurement, "failed" if one failed, and for other fields what is wrong.

    A point is a decimal point. So is a comma, where it cannot separate thousands.

    Examples
    --------
    >>> read_rewards([("reward-1", "0.5"), ("reward-2", ""), ("reward-3", "0,5")])
    ({1: 0.5, 3: 0.5}, {})
    >>> read_rewards([("reward-1", "1.000"), ("reward-2", "1,000"), ("reward-3", "Failed")])
    ({1: 1.0, 3: 'failed'}, {2: '“1,000” may mean 1 or 1000. Write it in one of these ways.'})
    """
    rewards: dict[int, float | str] = {}
    wrong: dict[int, str] = {}
    for field, value in fields:
        found = _REWARD.fullmatch(field)
        if found is None or not isinstance(value, str) or not value.strip():
            continue
        pull = int(found[1])
        if is_failed(value):
            rewards[pull] = FAILED
            continue
        measured, what = _measured(value)
        if abs(measured) <= LARGEST_REWARD:  # false for nan
            rewards[pull] = measured
        else:
            wrong[pull] = what
    return rewards, wrong


def _measured(text: str) -> tuple[float, str]:
    """Return a number that somebody typed, nan if it is not one; and what to do then.

    Examples
    --------
    >>> _measured("n/a")[1]
    '“n/a” is no result. If the measurement failed, write failed: it is made again. ...'
    >>> _measured("12 kg")[1], _measured("1,5 kg")[1]
    ('“12 kg” is not a number alone: leave out “kg”.', '“1,5 kg” is not a number alone: leave ...')
    """
    plain = text.strip()
    shown = f"“{printable(plain, 40)}”"
    if plain.lower().strip(".") in _NOTHING:
        return math.nan, (
            f"{shown} is no result. If the measurement failed, write failed: it is made again. If "
            "it cannot be made again, follow “failed?” beside it."
        )
    kind = kind_of(plain) if "," in plain else None
    if kind == "both":
        one, other = number(plain, ","), number(plain)
        return math.nan, f"{shown} may mean {one:g} or {other:g}. Write it in one of these ways."
    value = number(plain, ",") if kind == "comma" and "." not in plain else _float(plain)
    if not math.isnan(value):
        return value, f"{shown} is too large."
    if unit := _unit(plain):
        return math.nan, f"{shown} is not a number alone: leave out “{unit}”."
    return math.nan, (
        f"{shown} is not a number. Leave the field empty if it is not measured yet; write failed "
        "if the measurement failed."
    )


def _unit(text: str) -> str:
    """Return what stands behind a number; empty if that is no number, or nothing does."""
    found = re.fullmatch(r"([-+]?[0-9][0-9.,]*)\s*([^0-9\s.,].*)", text)
    return printable(found[2], 20) if found else ""


# ---- settings; what is wrong is a ValueError ---------------------------------------------


def _float(text: str) -> float:
    """Return a number with a decimal point, nan if it is not one."""
    return math.nan if "," in text else number(text)


def _number(text: str) -> float:
    value = number(text, ",") if kind_of(text) == "comma" else _float(text)
    if not math.isfinite(value):
        if kind_of(text) == "both":
            raise ValueError(f"“{text[:40]}” has two meanings; write it without a comma.")
        raise ValueError(f"“{text[:40]}” is not a number.")
    return value


def positive(text: str) -> float:
    """Read a number above 0."""
    value = _number(text)
    if value <= 0:
        raise ValueError(f"{text[:40]} is not above 0.")
    return value


def not_negative(text: str) -> float:
    """Read a number, 0 or more."""
    value = _number(text)
    if value < 0:
        raise ValueError(f"{text[:40]} is below 0.")
    return value


def percent(text: str) -> float:
    """Read a percentage as a fraction."""
    value = _number(text.removesuffix("%").strip())
    if not 0 < value < 100:
        raise ValueError(f"{text[:40]} is not between 0 and 100.")
    return value / 100


def percent_or_none(text: str) -> float:
    """Read a percentage as a fraction; 0 is none.

    Examples
    --------
    >>> percent_or_none("3 %"), percent_or_none("0")
    (0.03, 0.0)
    """
    return 0.0 if _number(text.removesuffix("%").strip()) == 0 else percent(text)


def whole(text: str) -> int:
    """Read a whole number, 1 or more."""
    value = _number(text)
    if value != int(value) or not 1 <= value <= 10**9:
        raise ValueError(f"{text[:40]} is not a whole number, 1 or more.")
    return int(value)


def one_of(known: Collection[str]) -> Callable[[str], str]:
    """Return a reader of one of several words."""

    def read(text: str) -> str:
        if text not in known:
            raise ValueError(f"“{text[:40]}” is not one of these.")
        return text

    return read
