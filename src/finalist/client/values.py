"""Values of the library as the API sends them, and back again."""

import json
import math
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from finalist.arms import Arms
from finalist.arms.inputs import Table
from finalist.errors import FileFormatError, StudyError
from finalist.planning import Forecast
from finalist.problem.noise import (
    UNSET,
    Bernoulli,
    Gaussian,
    Noise,
    PerArm,
    SubGaussian,
    Unset,
    as_noise,
)
from finalist.strategies import Strategy
from finalist.study import ArmStatus, Batch, Pull, Status
from finalist.study.results import as_results
from finalist.study.tables import arms_table

_MODELS = {Gaussian: "gaussian", SubGaussian: "sub-gaussian", Bernoulli: "bernoulli"}


def arms_body(arms: Arms) -> dict[str, Any]:
    """Return arms as the API takes them, all names of each."""
    if not isinstance(arms, Arms):
        raise StudyError(f"arms is of type {type(arms).__name__}; use Arms(features).")
    names, features, columns = arms_table(arms)
    rows = arms._owners()
    roles = {
        word: mask[rows].tolist()
        for word, mask in (("measurable", arms.measurable), ("candidate", arms.candidate))
        if not mask.all()
    }
    if columns == [f"f{i}" for i in range(1, len(names) + 1)] and _is_unit(features):
        return {"names": names, **roles}
    return {"names": names, "features": features.tolist(), "feature_names": columns, **roles}


def each(value: PerArm | None) -> Any:
    """Return one number, or a list of one for each arm, as JSON has them."""
    return None if value is None else np.asarray(value, dtype=float).tolist()


def _is_unit(features: np.ndarray) -> bool:
    """Return whether nothing relates the arms, so that names alone say it."""
    return bool(np.array_equal(features, np.eye(len(features))))


def arms_of(answer: dict[str, Any]) -> Arms:
    """Return the arms that the API sent."""
    sent = answer["arms"]
    names = tuple(name for arm in sent for name in arm["names"])
    rows = [arm["features"] for arm in sent for _ in arm["names"]]
    table = Table(np.array(rows, float), names, tuple(answer["feature_names"]))
    masks = [np.array([arm[word] for arm in sent]) for word in ("measurable", "candidate")]
    return Arms._from_table(table)._marked(*masks)


def strategy_words(strategy: Strategy | str) -> dict[str, Any]:
    """Return a strategy by its name, with its settings."""
    if isinstance(strategy, str):
        return {"strategy": strategy}
    return {"strategy": strategy.name, "settings": dict(vars(strategy))}


def noise_words(sigma: PerArm | Unset | None, noise: Noise | str | None) -> dict[str, Any]:
    """Return the model of the noise and its size, as `Study.create` would take them."""
    model = as_noise(UNSET if sigma is UNSET else sigma, noise)
    word = _MODELS[type(model)]
    if word == "bernoulli":
        return {"noise": word}
    return {"noise": word, "sigma": each(model.sigma)}


def table_of(results: Any) -> bytes | None:
    """Return the content of a CSV file if results are the name of one."""
    if not isinstance(results, str | PathLike):
        return None
    try:
        return Path(fspath(results)).read_bytes()
    except OSError as error:
        raise FileFormatError(f"{fspath(results)}: {error.strerror}.") from error


def results_body(results: Any) -> dict[str, Any]:
    """Return results in any form of Python as the API takes them; wrong ones are refused here."""
    told = as_results(results)
    rows: list[dict[str, Any]] = [
        {"pull_id": pull, "reward": reward}
        for pull, reward in zip(told.pulls.tolist(), told.rewards.tolist(), strict=True)
    ]
    for row, note, arm in zip(rows, told.notes, told.arms, strict=True):
        if note is not None:
            row["notes"] = {key: str(value) for key, value in json.loads(note).items()}
        if arm is not None:
            row["arm"] = arm
    return {"results": rows}


def batch_of(answer: dict[str, Any]) -> Batch:
    """Return the pulls that the API sent."""
    pulls = tuple(Pull(**pull) for pull in answer["pulls"])
    return Batch(pulls, answer["state"], answer["batch"], answer["left"], answer["words"])


def status_of(answer: dict[str, Any]) -> Status:
    """Return the status that the API sent."""
    words = {key: value for key, value in answer.items() if key not in ("last", "forecast")}
    lists = ("winners", "survivors", "assumptions", "warnings", "doubts")
    words |= {key: tuple(words[key]) for key in lists}
    words["arms"] = tuple(ArmStatus(**arm) for arm in answer["arms"])
    found = answer["forecast"]
    if found is None:
        return Status(**words, forecast=None)
    pulls = [math.inf if count is None else count for count in found["pulls"]]
    return Status(**words, forecast=Forecast(np.array(pulls, dtype=float), found["cap"]))
