"""Charts of a study's model: what columns do, what the model leaves over, and what bends."""

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from finalist.study import Snapshot
from finalist.web.pages import format as words
from finalist.web.pages.slices import slices
from finalist.web.pages.standing import standard_errors

if TYPE_CHECKING:
    from finalist.charts.theme import AnyChart


#: Characters of a line above a picture, on a page and on a phone.
WIDE, PHONE = 62, 40


def lines(remarks: Sequence[str], narrow: bool) -> list[str]:
    """Break remarks into lines that a picture has room for."""
    return [line for one in remarks for line in wrap(one, PHONE if narrow else WIDE)]


def front(snapshot: Snapshot) -> int | None:
    """Return the candidate in front, if there is one."""
    return snapshot.recommendation if snapshot.leading is None else snapshot.leading.arm


def curve(snapshot: Snapshot, number: int, narrow: bool) -> "AnyChart":
    """Draw measured means along a column, with the curve of the model."""
    from finalist.charts.means import means_chart
    from finalist.charts.theme import candidate_colour

    one, statistics = slices(snapshot, front(snapshot))[number], snapshot.fit.statistics
    measured = np.where(statistics.count > 0, statistics.mean, np.nan)
    return means_chart(
        one.x,
        measured[one.place],
        standard_errors(snapshot)[one.place],
        snapshot.means[one.place],
        [candidate_colour(int(i)) for i in one.place],
        names=[snapshot.arms.names[int(i)] for i in one.place],
        column=one.column,
        label=snapshot.problem.in_unit("Mean result"),
        title=f"Means along {words.name(one.column)}",
        subtitle=lines(
            [
                *([words.name(one.fixed)] if one.fixed else []),
                "Dots: measured. Curve: the model, with standard errors.",
            ],
            narrow,
        ),
        narrow=narrow,
    )


def bends(snapshot: Snapshot, narrow: bool) -> "AnyChart":
    """Draw what bends."""
    from finalist.charts.effects import bends_chart

    remarks = ["Dots: measured means, larger where more was measured."]
    if len(snapshot.problem.arms.feature_names) > 2:
        remarks.append("The other columns are held at their average.")
    return bends_chart(
        [(one.column, one.other, vars(one)) for one in snapshot.bent.curves],
        label=snapshot.problem.in_unit("Mean"),
        subtitle=lines(remarks, narrow),
        narrow=narrow,
    )


def effects(snapshot: Snapshot, narrow: bool) -> "AnyChart":
    """Draw what each column does."""
    from finalist.charts.effects import effects_chart

    found = snapshot.effects
    ends = [[e.change, e.change_low, e.change_high] for e in found]
    change, low, high = np.array(ends, dtype=float).T
    remark = (
        "There are no intervals."
        if np.isnan(low).all()
        else ("Lines: 95 % intervals, for all columns and times together.")
    )
    return effects_chart(
        [e.name for e in found],
        change,
        low,
        high,
        label=snapshot.problem.in_unit("Change of the result"),
        subtitle=lines(
            ["Over the range of a column; a level instead of the first.", remark], narrow
        ),
        narrow=narrow,
    )


def residuals(snapshot: Snapshot, narrow: bool) -> "AnyChart":
    """Draw what the model leaves over."""
    from finalist.charts.effects import residuals_chart
    from finalist.charts.theme import candidate_colour

    left = snapshot.leftover
    return residuals_chart(
        left.pull,
        left.fitted,
        left.residual,
        names=[snapshot.arms.names[i] for i in left.arm.tolist()],
        colours=[candidate_colour(i) for i in left.arm.tolist()],
        label=snapshot.problem.in_unit,
        subtitle=lines(["A curve or trend is something the model does not have."], narrow),
        narrow=narrow,
    )
