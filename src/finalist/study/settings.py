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
from finalist.problem import PerArm, Problem
from finalist.problem.goals import as_goal
from finalist.problem.noise import noise_from
from finalist.problem.rules import rules_of
from finalist.strategies import Strategy, all_strategies, strategy_class
from finalist.strategies.registry import StrategyClass
from finalist.text import show

#: The largest seed and the largest budget: signed integers of 64 bits.
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Settings:
    """The question, the strategy, and the limits of a study.

    Attributes
    ----------
    problem : Problem
        With the arms of the beginning, and the budget.
    strategy : Strategy
    seed : int
        All random choices of the study come from it.
    budget : int or None
        The most pulls in all.
    metadata : mapping
        Whatever the user wants to keep with the study.
    """

    problem: Problem
    strategy: Strategy
    seed: int
    budget: int | None
    metadata: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", _whole("seed", self.seed, 0))
        if self.budget is not None:
            object.__setattr__(self, "budget", _whole("budget", self.budget, 1))
        object.__setattr__(self, "problem", self.problem.with_(budget=self.budget))
        if not isinstance(self.metadata, Mapping):
            raise StudyError(f"metadata is {self.metadata!r}; it is a dict.")

    def to_json(self) -> dict[str, Any]:
        """Return everything but the arms."""
        problem = self.problem
        return {
            "strategy": {"name": self.strategy.name, "settings": _plain(self.strategy)},
            "noise": {"model": problem.noise.name, "sigma": _each(problem.noise.sigma)},
            "delta": problem.delta,
            "objective": problem.objective,
            "epsilon": problem.epsilon,
            "top": problem.top,
            "max_pulls_per_arm": problem.most_pulls,
            "cost": _each(problem.cost),
            "batch_intercept": problem.batch_intercept,
            "misspecification": problem.misspecification,
            "rules": problem.rules.number,
            **roles(problem.arms),
            "budget": self.budget,
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


def _whole(name: str, value: object, least: int) -> int:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (whole and least <= cast(int, value) <= _LARGEST):
        raise StudyError(
            f"{name} is {show(value)}; it is a whole number, {least} or more and below 2**63."
        )
    return int(cast(int, value))


def from_json(settings: Mapping[str, Any], arms: Arms) -> Settings:
    """Return the settings of a study that was written by this version or an earlier one."""
    try:
        noise, strategy, epsilon = (settings[k] for k in ("noise", "strategy", "epsilon"))
        goal = as_goal(epsilon, settings.get("top", 1), None)
        cost = settings.get("cost", 1.0)  # studies of the first version do not have it
        problem = Problem(
            with_roles(arms, settings),
            noise=noise_from(noise["model"], noise["sigma"]),
            goal=goal,
            delta=settings["delta"],
            objective=settings["objective"],
            most_pulls=settings["max_pulls_per_arm"],
            cost=cost,
            batch_intercept=settings.get("batch_intercept", False),
            misspecification=settings.get("misspecification", 0.0),
            rules=rules_of(settings.get("rules", 1)),
        )
        known = _class_of(strategy["name"])(**strategy["settings"])
        seed, budget = settings["seed"], settings["budget"]
        return Settings(problem, known, seed, budget, settings["metadata"])
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
            if hasattr(cls, "knowing"):
                reason = "needs to know the truth; it is for simulations, not for a study."
            kind = type(value).__name__
            raise StudyError(f"strategy {strategy.name!r} with {name} of type {kind} {reason}")
    return values


def _each(value: PerArm | None) -> Any:
    """Return one number, or a list of one for each arm."""
    return list(value) if isinstance(value, tuple) else value
