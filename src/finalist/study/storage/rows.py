"""Rows as values: how they are written as text and bytes, and their checksums."""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from finalist.errors import StudyError
from finalist.files import printable
from finalist.shapes import Float, Int


@dataclass(frozen=True)
class StudyRow:
    """A study: its name, when it was made, by which version of finalist, and its settings."""

    id: int
    name: str
    created: str
    version: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class EventRow:
    """Something that happened in a study."""

    number: int
    kind: str
    at: str
    client: str | None
    body: dict[str, Any]


@dataclass(frozen=True, eq=False)
class RewardRows:
    """Rewards in the order in which they came: by event, then by pull."""

    event: Int[np.ndarray, " n"]
    pull: Int[np.ndarray, " n"]
    value: Float[np.ndarray, " n"]


def to_json(value: Mapping[str, Any] | Sequence[str], what: str) -> str:
    """Return canonical, compact JSON in ASCII."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StudyError(
            f"{what} cannot be written as JSON: {error}. Use text, finite numbers, lists and dicts."
        ) from error


def plain(text: str, what: str) -> str:
    """Return text that every database can hold."""
    if "\0" in text or not _is_unicode(text):
        raise StudyError(
            f"{what} {printable(text, 40)!r} has a character that cannot be stored. "
            "Leave out null characters and lone surrogates."
        )
    return text


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def checksum(*parts: str | bytes | int | None) -> int:
    """Return a CRC-32, which detects every single flipped bit.

    Examples
    --------
    >>> len({checksum(part) for part in ("17", b"17", 17, None)})
    4
    """
    value = 0
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        value = zlib.crc32(data, zlib.crc32(f"{type(part).__name__} {len(data)} ".encode(), value))
    return value


def rewards_checksum(pulls: Int[np.ndarray, " n"], values: Float[np.ndarray, " n"]) -> int:
    """Return the checksum of pulls and rewards."""
    return zlib.crc32(values.astype("<f8").data, zlib.crc32(pulls.astype("<i8").data))


def notes_checksum(notes: Mapping[int, str]) -> int | None:
    """Return the checksum of notes by pull, None if there are none; the pulls are in order."""
    return checksum(*(part for note in notes.items() for part in note)) if notes else None


def rewards_are_whole(rows: RewardRows, expected: Mapping[int, int]) -> bool:
    """Return whether rewards are those of their events, none missing, by checksums in order."""
    numbers, starts = np.unique(rows.event, return_index=True)
    if numbers.tolist() != list(expected):
        return False
    ends = np.append(starts, rows.event.size)[1:].tolist()
    return all(
        rewards_checksum(rows.pull[first:end], rows.value[first:end]) == expected[number]
        for number, first, end in zip(numbers.tolist(), starts.tolist(), ends, strict=True)
    )
