"""Jobs of workers that are as quick as those of `few_draws`: a module that is quick to import."""

from finalist.planning import forecast
from finalist.study import Status
from finalist.web.workers import jobs


def status(place: jobs.Place) -> tuple[int, Status]:
    """Return what the real job does, with a forecast from 3 draws; called in a worker."""
    assert forecast.__kwdefaults__ is not None
    forecast.__kwdefaults__["draws"] = 3
    return jobs.status(place)
