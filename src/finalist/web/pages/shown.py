"""What the page of a study and its report show alike."""

from collections.abc import Sequence
from typing import Any

from finalist.study import Snapshot, Status
from finalist.web.example import words_of as words_of_example
from finalist.web.pages import events as _events  # noqa: F401  # registers what templates call
from finalist.web.pages import format as words
from finalist.web.pages.standing import (
    FIRST,
    MAX_DRAWN,
    Row,
    checked,
    lead,
    not_checked,
    rests_on,
    span,
    standing,
    what_failed,
)
from finalist.web.render import environment

#: Rows of the panel "Why this winner".
MAX_WHY = 100


def around(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the ends of an axis of means with their standard errors and what was measured."""
    ends = [
        value for row in rows for value in (row.mean, row.estimate, row.bent) if value is not None
    ]
    ends += [
        row.estimate + side * row.error
        for row in rows
        for side in (-1, 1)
        if row.estimate is not None and row.error is not None
    ]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def most_of(rows: Sequence[Row]) -> int:
    """Return the most measurements of any row, waiting ones included; at least 1."""
    return max((row.measured + row.waiting for row in rows), default=1) or 1


def evidence_of(status: Status) -> dict[str, float | None]:
    """Return the evidence against each candidate; empty if the strategy has none."""
    found = {arm.name: arm.evidence for arm in status.arms}
    return found if any(value is not None for value in found.values()) else {}


def context(snapshot: Snapshot, status: Status) -> dict[str, Any]:
    """Return what templates need to show where a study stands."""
    return {
        "snapshot": snapshot,
        "status_": status,
        "state": words.state(status, snapshot.stopped),
        "found": standing(snapshot, status),
        "unmeasurable": {arm.name for arm in status.arms if not arm.measurable},
        "example": words_of_example(snapshot),
    }


environment.globals |= {
    "say": words,
    "FIRST": FIRST,
    "MAX_DRAWN": MAX_DRAWN,
    "MAX_WHY": MAX_WHY,
    "around": around,
    "checked": checked,
    "evidence_of": evidence_of,
    "lead_of": lead,
    "most_of": most_of,
    "not_checked": not_checked,
    "rests_on": rests_on,
    "span": span,
    "what_failed": what_failed,
}
