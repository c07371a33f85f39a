"""The jobs of workers about studies: forecasts, the choice of a batch among many arms.

A worker keeps the studies it opened, as the next job is often about the same one, and resumes
reading where it stopped.
"""

from collections import OrderedDict
from dataclasses import replace
from os import PathLike

from finalist.errors import UnknownStudyError
from finalist.files import printable
from finalist.study import Batch, Status, Study
from finalist.study.databases import StudyRow
from finalist.study.handles import status_at

#: Studies that a worker keeps open.
MAX_STUDIES = 4
#: Where a study is: the database, its generation (see `web.pool`), the study's row.
Place = tuple[str | PathLike[str], str, StudyRow]
_studies: OrderedDict[tuple[str, str, int], Study] = OrderedDict()


def status(place: Place) -> tuple[int, Status]:
    """Return the number of the last event of a study, and its status with a forecast."""
    return status_at(_open(place))


def ask(place: Place, size: int | None, worker: str | None) -> Batch:
    """Choose what to measure next, and write it in one short transaction at the end."""
    return replace(_open(place).ask(size, worker), arms=None)  # they may be many, and stay here


def _open(place: Place) -> Study:
    where, generation, row = place
    key = (str(where), generation, row.id)
    for other in [known for known in _studies if known[:2] != key[:2]]:
        _studies.pop(other).close()  # of a file that was replaced
    study = _studies.pop(key, None) or Study.open(where, row.name)
    if (study.number, study.created) != (row.id, row.created):
        study.close()
        raise UnknownStudyError(
            f"study {printable(row.name, 100)!r} was deleted. See the list of studies."
        )
    _studies[key] = study
    while len(_studies) > MAX_STUDIES:
        _studies.popitem(last=False)[1].close()
    return study
