"""Rows as values: how they are written as text and bytes, and their checksums."""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from finalist.errors import RewardError, StudyError
from finalist.files import printable
from finalist.study.storage.schema import LARGEST

#: Pulls, their rewards and their notes.
Told = tuple[Sequence[int] | np.ndarray, Sequence[float] | np.ndarray, Sequence[str | None] | None]


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
    reward: Float[np.ndarray, " n"]


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


@dataclass(frozen=True, eq=False)
class Rewards:
    """Rewards of one event, checked and ordered by pull."""

    pull: Int[np.ndarray, " n"]
    reward: Float[np.ndarray, " n"]
    note: list[str | None]

    @classmethod
    def of(cls, told: Told) -> "Rewards":
        """Check rewards: one for each pull, finite, not too large."""
        try:
            pulls = np.asarray(told[0], dtype=np.int64)
            rewards = np.asarray(told[1], dtype=np.float64) + 0.0  # SQLite has no negative zero
        except (TypeError, ValueError, OverflowError) as error:
            raise StudyError(f"pulls and rewards are numbers: {error}.") from error
        notes = [None] * len(pulls) if told[2] is None else list(told[2])
        if pulls.ndim != 1 or not pulls.shape == rewards.shape == (len(notes),):
            raise StudyError("each pull needs one reward, and one note or None.")
        wrong = np.flatnonzero(~(np.abs(rewards) <= LARGEST))
        if wrong.size:
            raise RewardError(
                f"reward for pull {pulls[wrong[0]]} is {rewards[wrong[0]]}; a reward is a finite "
                f"number of at most {LARGEST:g} in size."
            )
        order = np.argsort(pulls, kind="stable")
        pulls, rewards = pulls[order], rewards[order]
        twice = np.flatnonzero(np.diff(pulls) == 0)
        if twice.size:
            raise StudyError(f"pull {pulls[twice[0]]} has two rewards; give one.")
        ordered = [notes[i] for i in order.tolist()]
        for note in ordered:
            if note is not None:
                plain(note, "the note")
        return cls(pulls, rewards, ordered)

    def checksum(self) -> int:
        """Return the checksum of the pulls and rewards."""
        return rewards_checksum(_bytes(self.pull, "<i8"), _bytes(self.reward, "<f8"))

    def notes_checksum(self) -> int | None:
        """Return the checksum of the notes, None if there are none."""
        rows = zip(self.pull.tolist(), self.note, strict=True)
        notes = {pull: note for pull, note in rows if note is not None}
        return notes_checksum(notes) if notes else None


def rewards_checksum(pulls: memoryview, rewards: memoryview) -> int:
    """Return the checksum of pulls and rewards as bytes."""
    return zlib.crc32(rewards, zlib.crc32(pulls))


def notes_checksum(notes: Mapping[int, str]) -> int:
    """Return the checksum of notes by pull; the pulls are in order."""
    return checksum(*(part for note in notes.items() for part in note))


def _bytes(array: np.ndarray, kind: str) -> memoryview:
    return memoryview(array.astype(kind).tobytes())


def rewards_are_whole(rows: RewardRows, expected: Mapping[int, int]) -> bool:
    """Return whether rewards are those of their events, none missing, by checksums in order."""
    numbers, starts = np.unique(rows.event, return_index=True)
    if numbers.tolist() != list(expected):
        return False
    pulls, rewards = _bytes(rows.pull, "<i8"), _bytes(rows.reward, "<f8")
    ends = np.append(starts, rows.event.size)[1:].tolist()
    return all(
        rewards_checksum(pulls[8 * first : 8 * end], rewards[8 * first : 8 * end])
        == expected[number]
        for number, first, end in zip(numbers.tolist(), starts.tolist(), ends, strict=True)
    )
