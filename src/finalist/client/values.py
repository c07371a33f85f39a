"""Conversion between values of the library and the JSON of the API."""

import json
import math
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from finalist.arms import Arms
from finalist.arms.recipes import Table
from finalist.errors import FileFormatError, StudyError
from finalist.planning import Forecast
from finalist.problem import PerArm, Problem
from finalist.problem.noise import takes_sigma
from finalist.strategies import Strategy
from finalist.study import ArmStatus, Batch, Effect, Pull, Status
from finalist.study.forecasts import MarginForecast, foreseen
from finalist.study.outlook import Chances
from finalist.study.results import FAILED, Results, as_results
from finalist.study.tables import arms_table, given_body, with_given
from finalist.tables import Dialect

#: What is known of margins by a server that knows none.
_NEWER = {"epsilon": 0.0, "margins": (), "effects": ()}
_NEWER |= dict.fromkeys(("within", "within_reach", "good_enough", "saving", "outlook", "budget_in"))


def arms_body(arms: Arms) -> dict[str, Any]:
    """Return arms as JSON, with all names of each."""
    if not isinstance(arms, Arms):
        raise StudyError(f"arms is of type {type(arms).__name__}; use Arms(features).")
    names, features, columns = arms_table(arms)
    rows = arms._parts.rows()
    roles = {
        word: mask[rows].tolist()
        for word, mask in (("measurable", arms.measurable), ("candidate", arms.candidate))
        if not mask.all()
    }
    own = arms._parts.table().cells is None
    if own and columns == [f"f{i}" for i in range(1, len(names) + 1)] and _is_unit(features):
        return {"names": names, **roles}
    body = {"names": names, "features": features.tolist(), "feature_names": columns, **roles}
    return body if own else body | {"given": given_body(arms)}


def each(value: PerArm | None) -> Any:
    """Return one number, or a list with one per arm."""
    return None if value is None else np.asarray(value, dtype=float).tolist()


def _is_unit(features: np.ndarray) -> bool:
    """Return whether the arms are unrelated, so that names are enough."""
    return bool(np.array_equal(features, np.eye(len(features))))


def parse_arms(answer: dict[str, Any]) -> Arms:
    """Return arms from JSON."""
    sent = answer["arms"]
    names = tuple(name for arm in sent for name in arm["names"])
    rows = [arm["features"] for arm in sent for _ in arm["names"]]
    table = Table(np.array(rows, float), names, tuple(answer["feature_names"]))
    masks = [np.array([arm[word] for arm in sent]) for word in ("measurable", "candidate")]
    body = answer.get("given")  # an older server sends none
    return Arms._from_table(table if body is None else with_given(table, body))._marked(*masks)


def strategy_words(strategy: Strategy | str) -> dict[str, Any]:
    """Return a strategy as its name and settings."""
    if isinstance(strategy, str):
        return {"strategy": strategy}
    return {"strategy": strategy.name, "settings": dict(vars(strategy))}


def problem_body(problem: Problem) -> dict[str, Any]:
    """Return a problem as JSON, the arms apart from its settings."""
    words = problem.words()
    if not takes_sigma(words["noise"]):
        del words["sigma"]
    return {"arms": arms_body(problem.arms), **words}


def table_of(results: Any, dialect: Dialect) -> tuple[bytes, str, dict[str, str]] | None:
    """Return the content of a file, its type and how to read it; None if it is not a path."""
    if not isinstance(results, str | PathLike):
        return None
    try:
        content = Path(fspath(results)).read_bytes()
    except OSError as error:
        raise FileFormatError(f"{fspath(results)}: {error.strerror}.") from error
    query = {word: value for word, value in vars(dialect).items() if value is not None}
    text = not content.startswith((b"PK", b"PAR1"))
    return content, "text/csv" if text else "application/octet-stream", query


def results_body(results: Any) -> dict[str, Any]:
    """Return results in any form that `Study.tell` accepts as JSON; invalid ones raise here."""
    told = as_results(results)
    values = zip(told.value.tolist(), told.failed.tolist(), strict=True)
    rows: list[dict[str, Any]] = [
        {"pull_id": pull, "reward": FAILED if failed else reward}
        for pull, (reward, failed) in zip(told.pull.tolist(), values, strict=True)
    ]
    for row, note, arm in zip(rows, told.note, told.arm, strict=True):
        if note is not None:
            row["notes"] = {key: str(value) for key, value in json.loads(note).items()}
        if arm is not None:
            row["arm"] = arm
    return {"results": rows}


def history_rows(history: Results) -> list[dict[str, Any]]:
    """Return old results as the server takes them."""
    pairs = zip(history.arm, history.value.tolist(), strict=True)
    return [{"arm": name, "reward": reward} for name, reward in pairs]


def parse_batch(answer: dict[str, Any]) -> Batch:
    """Return a batch from JSON."""
    pulls = tuple(Pull(**pull) for pull in answer["pulls"])
    plain = {word: value for word, value in answer.items() if word not in ("pulls", "reason")}
    return Batch(pulls, **plain)


def parse_status(answer: dict[str, Any]) -> Status:
    """Return a status from JSON."""
    words: dict[str, Any] = {"unneeded": 0, "until_test": 0, **_NEWER}  # an older server sends none
    words |= {key: value for key, value in answer.items() if key not in ("last", "forecast")}
    lists = ("winners", "survivors", "assumptions", "warnings", "doubts")
    words |= {key: tuple(words[key]) for key in lists}
    margins = tuple(MarginForecast(**one) for one in words.pop("margins"))
    del words["saving"]
    if words["outlook"] is not None:
        words["outlook"] = Chances(**words["outlook"])
    if words["within_reach"] is not None:
        words["within_reach"] = tuple(words["within_reach"])
    words["arms"] = tuple(ArmStatus(**arm) for arm in answer["arms"])
    words["effects"] = tuple(Effect(**one) for one in words["effects"])
    found = answer["forecast"]
    soon = None
    if found is not None:
        pulls = [math.inf if count is None else count for count in found["pulls"]]
        remedy = found.get("remedy")
        soon = Forecast(np.array(pulls, dtype=float), found["cap"], remedy=remedy)
    return Status(**words, ahead=foreseen(soon, margins))
