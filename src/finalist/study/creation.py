"""What the words of `Study.create` mean, and whether `Study.open` means the same."""

import secrets
from collections.abc import Mapping
from typing import Any

from finalist.arms import Arms
from finalist.errors import StudyError
from finalist.problem import as_problem
from finalist.strategies import Strategy, named
from finalist.study.log import Log
from finalist.study.settings import Settings, difference, from_json, with_roles
from finalist.study.storage.database import Reader
from finalist.study.tables import read_arms

#: Where the words of `create` are in the settings.
_STORED = {"sigma": "noise"}


def settings_of(
    arms: Arms,
    strategy: Strategy | str = "gauntlet",
    *,
    seed: int | None = None,
    budget: int | None = None,
    max_pulls_per_arm: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    **question: Any,
) -> Settings:
    """Return what the words of `create` mean; refuses what the strategy cannot do."""
    problem = as_problem(arms, most_pulls=max_pulls_per_arm, **question)
    chosen = named(strategy, arms) if isinstance(strategy, str) else strategy
    drawn = secrets.randbits(53) if seed is None else seed
    settings = Settings(problem, chosen, drawn, budget, {} if metadata is None else metadata)
    chosen.start(settings.problem, seed=drawn)
    return settings


def check_same(log: Log, reader: Reader, arms: Arms | None, given: dict[str, Any]) -> None:
    """Refuse arms or words of `create` that are not those of the study."""
    if arms is None and not given:
        return
    settings, name = log.row.settings, log.row.name
    stored = with_roles(read_arms(reader, log.row.id, 0), settings)
    words = {word: value for word, value in given.items() if word != "seed" or value is not None}
    candidates = words.pop("candidates", None)
    if arms is not None and _joined(arms, candidates) != stored:
        raise StudyError(
            f"study {name!r} was created with other arms; leave `arms` out to go on with those, "
            "or create a study of another name."
        )
    if arms is None and candidates is not None:
        raise StudyError("candidates are compared together with the arms; give `arms` too.")
    if not words:
        return
    meant = _as_stored(stored if arms is None else arms, candidates, words, settings)
    other = difference(from_json(settings, stored).to_json(), meant)
    if other is not None:
        raise StudyError(
            f"study {name!r} was created with other settings: {other}. Leave them out to go on, "
            "or create a study of another name."
        )


def _joined(arms: Arms, candidates: Any) -> Arms:
    """Return arms with the candidates, as a study keeps them."""
    for name, value in (("arms", arms), ("candidates", candidates)):
        if value is not None and not isinstance(value, Arms):
            raise StudyError(f"{name} is of type {type(value).__name__}; use Arms(features).")
    return arms if candidates is None else arms.with_candidates(candidates)


def _left_out(given: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return what given words leave out of the noise: it is as the study has it."""
    own = stored["model"] == "bernoulli"
    if "sigma" in given:
        return {} if own else {"noise": stored["model"]}
    if "noise" not in given:
        return {"sigma": 1.0}  # whatever it is: the noise is not compared
    word = "gaussian" if given["noise"] is None else given["noise"]
    if word == "bernoulli" or not isinstance(word, str):
        return {}
    return {"sigma": stored["sigma"] if word == stored["model"] else 1.0}  # they differ anyway


def _as_stored(
    arms: Arms, candidates: Arms | None, given: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return given words of `create` as the settings that they are stored as."""
    words = {**_left_out(given, settings["noise"]), **given}
    words.setdefault("budget", settings["budget"])  # some strategies need it
    try:
        stored = settings_of(arms, candidates=candidates, **words).to_json()
    except TypeError as error:
        raise StudyError(f"{error}; give words of Study.create.") from None
    keys = [_STORED.get(word, word) for word in given]
    for key in keys:
        if key not in stored:  # a word of `Problem`
            raise StudyError(f"{key!r} is no word of Study.create; leave it out.")
    return {key: stored[key] for key in keys}
