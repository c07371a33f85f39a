"""Everything that a study holds, as plain values and as a table."""

import math
from os import PathLike
from typing import Any

from finalist.study.study import Study
from finalist.study.tables import given_body
from finalist.tables.writer import TextStream, write_table

#: The columns of `every_pull`.
COLUMNS = ("pull_id", "batch", "arm", "state", "reward", "worker", "issued", "told", "note")


def every_pull(study: Study) -> list[dict[str, Any]]:
    """Return every pull as plain values; a reward that is not there is None.

    Examples
    --------
    >>> from finalist.testing.studies import small_study
    >>> with small_study() as study:
    ...     _ = study.ask(size=2)
    ...     [(row["pull_id"], row["state"], row["reward"]) for row in every_pull(study)][:1]
    [(1, 'open', None)]
    """
    frame = study.to_frame()
    columns = [frame[column].tolist() for column in COLUMNS]
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]
    return [row | {"reward": None if math.isnan(row["reward"]) else row["reward"]} for row in rows]


def everything(study: Study) -> dict[str, Any]:
    """Return name, created, settings, arms, events and pulls, as values that JSON can hold."""
    return {
        "name": study.name,
        "created": study.created,
        "settings": study.settings,
        "arms": arms_of(study),
        "events": study.history(),
        "pulls": every_pull(study),
    }


def arms_of(study: Study) -> dict[str, Any]:
    """Return the arms as they are now: the names of the features, and each with all its names."""
    arms = study.arms
    roles = arms.measurable.tolist(), arms.candidate.tolist()
    each = zip(arms.aliases, arms.features.tolist(), *roles, strict=True)
    return {
        "feature_names": list(arms.feature_names),
        "arms": [
            {"names": list(names), "features": row, "measurable": pulled, "candidate": wins}
            for names, row, pulled, wins in each
        ],
        "given": given_body(arms),
    }


def write_csv(
    study: Study, target: str | PathLike[str] | TextStream, *, decimal: str = "."
) -> None:
    """Write every pull as a CSV file that is safe to open in a spreadsheet."""
    rows = [[row[column] for column in COLUMNS] for row in every_pull(study)]
    write_table(target, list(COLUMNS), rows, decimal=decimal)
