"""Arms and measurements, between the database, data frames and `Arms`."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from finalist.arms import Arms
from finalist.arms.inputs import Table
from finalist.errors import ArmsError, RewardError, StudyError
from finalist.study.pulls import Fate
from finalist.study.results.values import reward_problem
from finalist.study.state import State
from finalist.study.storage.reader import Reader
from finalist.text import show

if TYPE_CHECKING:
    import pandas as pd


def arms_table(arms: Arms) -> tuple[list[str], Float[np.ndarray, "N d"], list[str]]:
    """Return names, features and the names of features, a row for every name an arm has."""
    table = arms._parts.table()
    assert table.names is not None
    return list(table.names), table.features, list(table.feature_names)


def read_arms(reader: Reader, study_id: int, stage: int) -> Arms:
    """Return the arms of a stage, exactly as they were."""
    names, features, columns = reader.arms(study_id, stage)
    return Arms._from_table(Table(features, tuple(names), tuple(columns)))


def subset(arms: Arms, kept: Int[np.ndarray, " n"]) -> Arms:
    """Return some of the arms, by number in increasing order, with all their names."""
    some = arms.only(np.isin(np.arange(len(arms)), kept))
    return some._marked(arms.measurable[kept], arms.candidate[kept])


def union(arms: Arms, more: Arms) -> tuple[Arms, Int[np.ndarray, " n"]]:
    """Return arms with others added, and for each the number it had before, -1 if it is new."""
    if not isinstance(more, Arms):
        raise StudyError(f"arms to add are of type {type(more).__name__}; use Arms(features).")
    first, second = arms._parts.table(), more._parts.table()
    if second.feature_names == own_features(arms) != first.feature_names:
        wider = np.column_stack([second.features, np.ones(len(second.features))])
        second = Table(wider, second.names, first.feature_names)
    if second.feature_names != first.feature_names:
        raise StudyError(
            f"arms to add have the features {', '.join(more.feature_names)}; this study has "
            f"{', '.join(arms.feature_names)}."
        )
    assert first.names is not None
    assert second.names is not None
    taken = sorted(set(first.names) & set(second.names))
    if taken:
        raise StudyError(f"there is already an arm {taken[0]!r}; give another name.")
    features = np.vstack([first.features, second.features])
    both = Arms._from_table(Table(features, first.names + second.names, arms.feature_names))
    if len(both) == len(arms):
        raise StudyError("the arms to add have the features of arms that are there already.")
    kept = np.full(len(both), -1)
    for number, name in enumerate(arms.names):
        kept[both.index(name)] = number
    added = [more.index(name) if name in more else -1 for name in both.names]
    measurable, candidate = (
        np.where(kept >= 0, old[kept], new[added])
        for old, new in ((arms.measurable, more.measurable), (arms.candidate, more.candidate))
    )
    return both._marked(measurable, candidate), kept


def own_features(arms: Arms) -> tuple[str, ...]:
    """Return the features that further arms need: all but what `Arms.with_intercept` has added.

    Examples
    --------
    >>> own_features(Arms([[1.0], [2.0]]).with_intercept())
    ('f1',)
    """
    named = arms.feature_names[-1].rstrip("_") == "intercept"
    added = named and bool(np.all(arms.features[:, -1] == 1.0))
    return arms.feature_names[:-1] if added else arms.feature_names


def history_table(table: Any) -> tuple[list[str], list[float]]:
    """Return the arms and rewards of earlier measurements, checked like any results."""
    if hasattr(table, "columns"):
        import narwhals as nw

        frame = nw.from_native(table, eager_only=True)
        if not {"arm", "reward"} <= set(frame.columns):
            raise RewardError(
                f"the table has the columns {', '.join(map(str, frame.columns))}; earlier "
                "measurements need 'arm' and 'reward'."
            )
        names, rewards = frame["arm"].to_list(), frame["reward"].to_list()
    else:
        try:
            pairs = [(name, reward) for name, reward in table]
        except (TypeError, ValueError):
            raise RewardError(
                "give earlier measurements as a data frame with the columns 'arm' and 'reward', or "
                "as pairs (arm, reward)."
            ) from None
        names, rewards = [p[0] for p in pairs], [p[1] for p in pairs]
    if not names:
        raise RewardError("this table has no earlier measurements.")
    for name in names:
        if not isinstance(name, str):
            raise ArmsError(f"an arm is named {name!r}; give its name as text.")
    for row, reward in enumerate(rewards, start=1):
        problem = reward_problem(reward)
        if problem is not None:
            raise RewardError(
                f"the reward in row {row} is {show(reward)}, which {problem}. Leave out a row that "
                "has none."
            )
    return names, [float(reward) for reward in rewards]


def pulls_table(state: State, reader: Reader, study_id: int) -> "pd.DataFrame":
    """Return every pull of a study: what was measured, by whom, when, with which reward."""
    import pandas as pd

    notes = reader.notes(study_id)
    names = {s: read_arms(reader, study_id, s).names for s in range(state.stage + 1)}
    pulls, number = state.pulls, np.arange(1, len(state.pulls) + 1)
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
            "note": [notes.get(int(i)) for i in number],
        }
    )
