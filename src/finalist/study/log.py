"""The log of a study: read what is new, replay it, and write under a lock."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from finalist.arms import Arms
from finalist.compiled.threads import one_thread
from finalist.study.results import Results
from finalist.study.settings import from_json
from finalist.study.state import State
from finalist.study.storage.protocol import Storage
from finalist.study.storage.reader import Reader
from finalist.study.storage.rows import StudyRow
from finalist.study.storage.writer import Writer
from finalist.study.tables import named_events, pulls_table, read_arms

if TYPE_CHECKING:
    import pandas as pd


class Log:
    """A study in a storage, with the state after the events that were read so far."""

    def __init__(self, storage: Storage, row: StudyRow) -> None:
        self.storage, self.row = storage, row
        self._state: State | None = None
        self._reader: Reader | None = None

    def now(self) -> State:
        """Return the state after every event that is in the storage."""
        with self.storage.read() as reader:
            return self.within(reader)

    @contextmanager
    def writing(self) -> Iterator[tuple[Writer, State]]:
        """Hold the right to write, with the present state; after an error it is read anew."""
        try:
            with self.storage.write() as writer:
                writer.lock(self.row.id)
                yield writer, self.within(writer)
        except BaseException:
            self._state = None
            raise

    def append(
        self,
        writer: Writer,
        now: State,
        kind: str,
        body: dict[str, Any],
        *,
        client: str | None = None,
        rewards: Results | None = None,
    ) -> None:
        """Write an event, and apply it as every later reader will."""
        self._reader = writer
        event = writer.append(self.row.id, now.last + 1, kind, body, client=client, rewards=rewards)
        now.apply(event, None if rewards is None else (rewards.pull, rewards.value))

    def within(self, reader: Reader) -> State:
        """Return the state after every event that a reader sees, in its transaction."""
        state, self._reader = self._state, reader
        if state is None:
            settings = from_json(self.row.settings, read_arms(reader, self.row.id, 0))
            state = State(settings, self._arms)
        self._state = None  # until all is applied: half of it would be worse than nothing
        if reader.last(self.row.id) != state.last:
            events = reader.events(self.row.id, after=state.last)
            rewards = reader.rewards(self.row.id, after=state.last)
            numbers = [event.number for event in events]
            firsts = np.searchsorted(rewards.event, numbers, side="left")
            ends = np.searchsorted(rewards.event, numbers, side="right")
            with one_thread(state.arms.features.size):
                for event, first, end in zip(events, firsts, ends, strict=True):
                    told = (rewards.pull[first:end], rewards.value[first:end])
                    state.apply(event, told if end > first else None)
        self._state = state
        return state

    def events(self) -> list[dict[str, Any]]:
        """Return the events, oldest first, as plain values without the table of arms."""
        with self.storage.read() as reader:
            events = reader.events(self.row.id)
        bodies = ({k: v for k, v in e.body.items() if k != "given"} for e in events)
        heads = ({"number": e.number, "at": e.at, "kind": e.kind} for e in events)
        return [head | body for head, body in zip(heads, bodies, strict=True)]

    def named_events(
        self, state: State, after: int, most: int | None = None
    ) -> list[dict[str, Any]]:
        """Return events up to a state with the arms by their names: see `Study.events`."""
        if after >= state.last:
            return []
        with self.storage.read() as reader:
            return named_events(state, reader, self.row.id, after, most)

    def table(self) -> "pd.DataFrame":
        """Return every pull: see `Study.to_frame`."""
        state = self.now()
        with self.storage.read() as reader:
            return pulls_table(state, reader, self.row.id)

    def delete(self) -> None:
        """Delete the study with all its events, and close the storage."""
        with self.storage.write() as writer:
            writer.lock(self.row.id)
            writer.delete(self.row.id)
        self.storage.close()

    def _arms(self, stage: int) -> Arms:
        """Return the arms of a stage, within the transaction that is open."""
        assert self._reader is not None
        return read_arms(self._reader, self.row.id, stage)
