"""Arms, measurements and events, between the database, data frames and `Arms`."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from finalist.arms import Arms
from finalist.arms.recipes import Recipe, Table, plain
from finalist.errors import ArmsError, StudyError
from finalist.extras import need
from finalist.shapes import Float, Int
from finalist.study.effects import leftover_of
from finalist.study.pulls import Fate
from finalist.study.state import State
from finalist.study.storage.reader import Reader
from finalist.study.storage.rows import EventRow
from finalist.text import show

if TYPE_CHECKING:
    import pandas as pd

#: Arms that an event names.
MAX_NAMED = 5


def arms_table(arms: Arms) -> tuple[list[str], Float[np.ndarray, "N d"], list[str]]:
    """Return names, features and the names of features, a row for every name an arm has."""
    table = arms._parts.table()
    assert table.names is not None
    return list(table.names), table.features, list(table.feature_names)


def given_body(arms: Arms) -> dict[str, Any]:
    """Return the user's table and its recipe, for the event with which arms come.

    Cells that the arms have as features or as names are None.
    """
    cells = arms._parts.table().cells
    table = None if cells is None else [[c, _as_json(texts)] for c, texts in cells.items()]
    return {"recipe": arms.recipe.to_json(), "table": table}


def _as_json(cells: Any) -> list[Any] | None:
    """Return cells as JSON has them; it has no infinite numbers and no NaN."""
    if cells is None:
        return None
    return [None if c in (np.inf, -np.inf) or c != c else c for c in plain(cells)]


def read_arms(reader: Reader, study_id: int, stage: int) -> Arms:
    """Return the arms of a stage, exactly as they were."""
    names, features, columns = reader.arms(study_id, stage)
    table = Table(features, tuple(names), tuple(columns))
    body = reader.arrival(study_id, stage).get("given")  # studies of 0.1.0 have none
    return Arms._from_table(table if body is None else with_given(table, body))


def with_given(table: Table, body: Mapping[str, Any]) -> Table:
    """Return features with the user's table and the recipe of `given_body`."""
    kept = body["table"]
    return table._replace(
        recipe=Recipe.from_json(body["recipe"]),
        cells=None if kept is None else {c: None if v is None else tuple(v) for c, v in kept},
    )


def checked_given(table: Table, body: Mapping[str, Any]) -> Table:
    """Do the same with what somebody sent: refuse a table that does not give these features."""
    rows = len(table.features)
    for column, cells in body["table"] or ():
        if cells is not None and len(cells) != rows:
            raise ArmsError(f"column {show(column)} has {len(cells)} cells for {rows} rows.")
    found = with_given(table, body)
    assert found.recipe is not None
    found.recipe.check()
    if table.names is None:
        raise ArmsError("a table with a recipe needs names of the arms.")
    if found.recipe.name == "separate":
        made, names = np.eye(rows), table.feature_names
    else:
        made, names = found.recipe.features(found.brought())
    if names != table.feature_names or not np.array_equal(made, table.features):
        raise ArmsError("the features are not those that the recipe makes of the table.")
    return found


def subset(arms: Arms, kept: Int[np.ndarray, " n"]) -> Arms:
    """Return some of the arms, by number in increasing order, with all their names."""
    some = arms.only(np.isin(np.arange(len(arms)), kept))
    return some._marked(arms.measurable[kept], arms.candidate[kept])


def union(arms: Arms, more: Arms) -> tuple[Arms, Int[np.ndarray, " n"]]:
    """Return arms with others added, and for each the number it had before, -1 if it is new."""
    if not isinstance(more, Arms):
        raise StudyError(
            f"candidates to add are of type {type(more).__name__}; use Arms(features)."
        )
    if arms.recipe.name == "separate":
        raise StudyError(
            "the candidates of this study are separate, each with an effect of its own, so none "
            "can be added. Create a new study, and give these results as earlier measurements."
        )
    first = arms._parts.table()
    second = more._parts.table().like(first)
    if second.feature_names != first.feature_names:
        raise StudyError(
            f"candidates to add have the features {', '.join(more.feature_names)}; this study has "
            f"{', '.join(arms.feature_names)}."
        )
    assert first.names is not None
    assert second.names is not None
    taken = sorted(set(first.names) & set(second.names))
    if taken:
        raise StudyError(f"there is already a candidate {taken[0]!r}; give another name.")
    both = Arms._from_table(first.stacked(second))
    if len(both) == len(arms):
        raise StudyError(
            "the candidates to add have the same features as some that are there already."
        )
    kept = np.full(len(both), -1)
    for number, name in enumerate(arms.names):
        kept[both.index(name)] = number
    added = [more.index(name) if name in more else -1 for name in both.names]
    measurable, candidate = (
        np.where(kept >= 0, old[kept], new[added])
        for old, new in ((arms.measurable, more.measurable), (arms.candidate, more.candidate))
    )
    return both._marked(measurable, candidate), kept


def pulls_table(state: State, reader: Reader, study_id: int) -> "pd.DataFrame":
    """Return every pull of a study: what was measured, by whom, when, with which reward."""
    need("Data frames", "pandas")
    import pandas as pd

    notes = reader.notes(study_id)
    names = {s: read_arms(reader, study_id, s).names for s in range(state.stage + 1)}
    pulls, number = state.pulls, np.arange(1, len(state.pulls) + 1)
    left = leftover_of(state, state.pooled.estimate().means())
    fitted, residual = np.full((2, len(pulls)), np.nan)
    fitted[left.pull - 1], residual[left.pull - 1] = left.fitted, left.residual
    stage_of = {batch.number: batch.stage for batch in state.issued}
    times = np.array(["", *state.times], dtype=object)
    fates = np.array([fate.name.lower() for fate in Fate], dtype=object)
    workers = np.array([*state.workers, None], dtype=object)
    return pd.DataFrame(
        {
            "pull_id": number,
            "batch": pulls.batch,
            "arm": [names[stage_of[b]][a] for b, a in zip(pulls.batch, pulls.arm, strict=True)],
            "state": fates[pulls.fate],
            "reward": pulls.reward,
            "worker": workers[pulls.worker],
            "issued": times[pulls.issued],
            "told": times[pulls.told],
            "note": pd.Series([notes.get(int(i)) for i in number], dtype=object),
            "fitted": fitted,
            "residual": residual,
        }
    )


def named_events(
    state: State, reader: Reader, study_id: int, after: int, most: int | None
) -> list[dict[str, Any]]:
    """Return events up to a state, with the arms by their names: see `Study.events`."""
    events = [e for e in reader.events(study_id, after=after) if e.number <= state.last]

    @cache
    def names(stage: int) -> tuple[str, ...]:
        same = stage == state.stage
        return state.arms.names if same else read_arms(reader, study_id, stage).names

    return [
        {**e.body, **_named(e, state, names), "number": e.number, "at": e.at, "kind": e.kind}
        for e in events[:most]
    ]


def _named(
    event: EventRow, state: State, names: Callable[[int], tuple[str, ...]]
) -> dict[str, list[str]]:
    body = event.body
    if event.kind == "decided" and "batch" in body:
        known = names(state.issued[body["batch"] - 1].stage)
        found = body["rejected"] if body["winner"] is None else [body["winner"]]
        return {"named": [known[i] for i in found[:MAX_NAMED]]}
    if event.kind == "changed":
        before, after, kept = names(body["stage"] - 1), names(body["stage"]), set(body["kept"])
        gone = [name for i, name in enumerate(before) if i not in kept]
        new = [name for name, i in zip(after, body["kept"], strict=True) if i < 0]
        return {"gone": gone, "new": new}
    return {}
