"""What a server needs of a study that it has open, beyond the methods for people."""

from collections.abc import Mapping
from typing import Any

from finalist.study import measure
from finalist.study.results import Results
from finalist.study.status import Status
from finalist.study.study import Study


def tell(study: Study, results: Results, client_id: str | None) -> measure.Told:
    """Enter rewards as `Study.tell`; return more about what came of it."""
    return measure.tell(study._log, results, client_id)


def named(study: Study, results: Mapping[int, float]) -> list[dict[str, Any]]:
    """Return results of the open batch as plain values, with the names of their arms."""
    arms, arm = study.arms, study._log.now().pulls.arm
    return [
        {"pull_id": pull, "arm": arms.names[arm[pull - 1]], "reward": reward}
        for pull, reward in results.items()
    ]


def must_choose(study: Study) -> bool:
    """Return whether the next `ask` has to choose a batch."""
    state = study._log.now()
    return state.end is None and state.open is None


def status_at(study: Study) -> tuple[int, Status]:
    """Return the number of the last event, and the status after it, with a forecast."""
    last, found = study._status(forecast=True)
    found.saving  # noqa: B018  # simulated here, and not where it is sent
    return last, found
