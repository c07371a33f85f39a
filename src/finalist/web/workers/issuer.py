"""Issuing batches: in the request's thread if that is quick, by a worker if it may take long.

Pulls that were already issued are returned at once, and so is a choice among few arms. Among many
arms a choice takes seconds or minutes; a worker makes it and writes it in one short transaction, so
that readers and other writers need not wait. One worker at a time chooses for a study: further
requests wait for what it issues.
"""

from finalist.study import Batch, Study
from finalist.study.handles import must_choose
from finalist.web.limits import KeyedWorkLimit
from finalist.web.pool import MAX_WRITERS_EACH, WAIT, Studies
from finalist.web.workers import jobs
from finalist.web.workers.pool import ASK, Workers

#: Arms times squared rank up to which a choice takes a few hundredths of a second.
QUICK = 20_000
_MANY = "too many ask this study right now. Nothing was changed; try again in a moment."


class BatchIssuer:
    """Issues the batches of a server's studies."""

    def __init__(self, studies: Studies, workers: Workers) -> None:
        self._studies, self._workers = studies, workers
        self._choosing = KeyedWorkLimit(_MANY, MAX_WRITERS_EACH - 1, 2 * WAIT)

    def ask(self, number: int, size: int | None, worker: str | None = None) -> Batch:
        """Return what to measure next in a study, as `Study.ask`."""
        batch = self._quick(number, size, worker)
        if batch is not None:
            return batch
        with self._choosing.take(number, ASK.remedy):
            batch = self._quick(number, size, worker)  # issued in the meantime
            if batch is None:
                place = self._studies.place_of(number)
                batch = self._workers.run(ASK, jobs.ask, place, size, worker)
        return batch

    def _quick(self, number: int, size: int | None, worker: str | None) -> Batch | None:
        """Ask, unless that may take long; None if so."""
        with self._studies.writing(number) as study:
            return None if takes_long(study) else study.ask(size, worker)


def takes_long(study: Study) -> bool:
    """Return whether a batch must be chosen among many arms."""
    arms = study.arms
    if len(arms) * arms.rank**2 <= QUICK:
        return False
    return must_choose(study)
