"""What a study was started with, as values that JSON can hold, and back again.

They are written once, when the study is created, so that whoever opens it later gets the same
problem, strategy and seed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np

from finalist.arms import Arms
from finalist.errors import StudyError
from finalist.problem import Problem
from finalist.problem.goals import as_goal
from finalist.problem.mean import MEANS, Identity
from finalist.problem.noise import noise_from
from finalist.problem.rules import rules_of
from finalist.settings import SETTINGS
from finalist.strategies import Strategy, about, all_strategies, strategy_class
from finalist.strategies.registry import StrategyClass
from finalist.text import show


@dataclass(frozen=True)
class Settings:
    """The question, the strategy, and the limits of a study.

    Attributes
    ----------
    problem : Problem
        With the arms of the beginning, and the budget.
    seed : int
        All random choices of the study come from it.
    metadata : mapping
        Whatever the user wants to keep with the study.
    """

    problem: Problem
    strategy: Strategy
    seed: int
    metadata: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", _checked_seed(self.seed))
        if not isinstance(self.metadata, Mapping):
            raise StudyError(f"metadata is {self.metadata!r}; it is a dict.")

    def to_json(self) -> dict[str, Any]:
        """Return everything but the arms."""
        problem, words = self.problem, self.problem.words()
        noise = {"model": words.pop("noise"), "sigma": words.pop("sigma")}
        return {
            "strategy": {"name": self.strategy.name, "settings": _plain(self.strategy)},
            "noise": noise,
            **words,
            "rules": problem.rules.number,
            **({} if problem.mean == Identity() else {"mean": problem.mean.name}),
            **roles(problem.arms),
            "seed": self.seed,
            "metadata": dict(self.metadata),
        }


def roles(arms: Arms) -> dict[str, list[bool] | None]:
    """Return which arms can be pulled and which can win; None for all."""
    masks = {"measurable": arms.measurable, "candidate": arms.candidate}
    return {name: None if mask.all() else mask.tolist() for name, mask in masks.items()}


def with_roles(arms: Arms, body: Mapping[str, Any]) -> Arms:
    """Return arms with the roles that `roles` wrote; what is not there means all."""
    masks = [body.get("measurable"), body.get("candidate")]
    return arms if masks == [None, None] else arms._marked(*masks)


def changed_problem(problem: Problem, arms: Arms, body: Mapping[str, Any]) -> Problem:
    """Return the question with other arms, as the event that changed them says."""
    changes: dict[str, Any] = {"arms": with_roles(arms, body)}
    if body.get("sigma") is not None:
        changes["noise"] = type(problem.noise)(tuple(body["sigma"]))  # type: ignore[call-arg]
    if body.get("cost") is not None:
        changes["cost"] = tuple(body["cost"])
    return problem.with_(**changes)


def _checked_seed(seed: object) -> int:
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not (whole and 0 <= cast(int, seed) < 2**63):
        raise StudyError(f"seed is {show(seed)}; it is a whole number, 0 or more and below 2**63.")
    return int(cast(int, seed))


def from_json(settings: Mapping[str, Any], arms: Arms) -> Settings:
    """Return the settings of a study that was written by this version or an earlier one."""
    try:
        # Studies of earlier versions lack some settings.
        words = {name: settings.get(name, one.default) for name, one in SETTINGS.items()}
        noise, strategy = settings["noise"], settings["strategy"]
        del words["sigma"]
        words["noise"] = noise_from(noise["model"], noise["sigma"])
        words["goal"] = as_goal(words.pop("epsilon"), words.pop("top"), None)
        words["mean"] = MEANS[settings.get("mean", Identity.name)]()
        rules = rules_of(settings.get("rules", 1))
        problem = Problem(with_roles(arms, settings), **words, rules=rules)
        known = _class_of(strategy["name"])(**strategy["settings"])
        return Settings(problem, known, settings["seed"], settings["metadata"])
    except (KeyError, TypeError) as error:
        raise StudyError(
            f"the settings of this study cannot be read ({type(error).__name__}: {error}); a newer "
            "finalist may have written them. Upgrade finalist."
        ) from error


def difference(stored: Mapping[str, Any], given: Mapping[str, Any]) -> str | None:
    """Say which of the given settings are not the stored ones; None if all are."""
    words = [
        f"{name} is {stored.get(name)!r} and not {value!r}"
        for name, value in given.items()
        if not _same(stored.get(name), value)
    ]
    return "; ".join(words) or None


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    return one == other


def _class_of(name: str) -> StrategyClass:
    """Return the strategy that a study was created with, or say how to register it."""
    found = strategy_class(name)
    if found is None:
        raise StudyError(
            f"this study has the strategy {name!r}, which is not known here. Register its class "
            "first (fl.register), install the package that has it, or upgrade finalist."
        )
    return found


def _plain(strategy: Strategy) -> dict[str, Any]:
    """Return the settings of a strategy; only plain values can be stored."""
    cls = type(strategy)
    if strategy_class(strategy.name) is not cls:
        raise StudyError(
            f"strategy {strategy.name!r} is not one that finalist knows by name, so a study could "
            f"not be opened again. Put @fl.register above the class {cls.__qualname__}. "
            f"Known: {', '.join(sorted(all_strategies()))}."
        )
    words = [field.name for field in fields(cast(Any, strategy))]
    values = {word: getattr(strategy, word) for word in words}
    for name, value in values.items():
        if not isinstance(value, str | int | float | bool | None):
            reason = "cannot be kept; settings of a study are numbers, text, True, False or None."
            if about(cls).knowing is not None:
                reason = "needs to know the truth; it is for simulations, not for a study."
            kind = type(value).__name__
            raise StudyError(f"strategy {strategy.name!r} with {name} of type {kind} {reason}")
    return values
