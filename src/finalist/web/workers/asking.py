"""Asking for a batch: at once where that is quick, by a worker where the choice may take long.

Pulls that were issued already are handed out at once, and few arms are chosen from at once. Among
many arms a choice takes seconds or minutes. A worker makes it then, and writes it down in one short
transaction, as any other process would; nobody waits for it who notes, stops or looks. One worker
chooses for a study at a time: whoever asks meanwhile waits for what it issues.
"""

from finalist.study import Batch
from finalist.study.state import State
from finalist.web.limits import Single
from finalist.web.pool import MAX_WRITERS_EACH, WAIT, Studies
from finalist.web.workers import jobs
from finalist.web.workers.pool import ASK, Workers

#: Arms times the square of their rank up to which a choice takes a few hundredths of a second.
QUICK = 20_000
_MANY = "many ask this study at this moment. Nothing was changed; try again in a moment."


class Asking:
    """Hands out pulls.

    Parameters
    ----------
    studies : Studies
    workers : Workers
    """

    def __init__(self, studies: Studies, workers: Workers) -> None:
        self._studies, self._workers = studies, workers
        self._single = Single(_MANY, MAX_WRITERS_EACH - 1, 2 * WAIT)

    def ask(self, number: int, size: int | None, worker: str | None = None) -> Batch:
        """Return what to measure next in a study, as `Study.ask`."""
        batch = self._quick(number, size, worker)
        if batch is not None:
            return batch
        with self._single.take(number, ASK.remedy):
            batch = self._quick(number, size, worker)  # somebody else has asked
            if batch is None:
                place = self._studies.place_of(number)
                batch = self._workers.run(ASK, jobs.ask, place, size, worker)
        return batch

    def _quick(self, number: int, size: int | None, worker: str | None) -> Batch | None:
        """Ask, unless that may take long."""
        with self._studies.writing(number) as study:
            return None if takes_long(study._log.now()) else study.ask(size, worker)


def takes_long(state: State) -> bool:
    """Return whether a batch has to be chosen, among many arms."""
    has_to = state.end is None and state.open is None
    return has_to and len(state.arms) * state.arms.rank**2 > QUICK
