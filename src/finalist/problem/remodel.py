"""The same question with another model of the means, or another margin."""

from dataclasses import replace
from typing import Any

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.problem.candidates import check_told_apart
from finalist.problem.goals import as_goal
from finalist.problem.problem import Problem
from finalist.problem.values import checked_number
from finalist.text import show


def with_model(problem: Problem, model: str) -> Problem:
    """Return the problem with the features of another model: see `Arms.with_model`.

    Noise and cost of an arm stay what they were.

    Examples
    --------
    >>> from finalist.problem import Gaussian
    >>> arms = Arms([[1.0, 1.0], [2.0, 1.0], [4.0, 1.0]])
    >>> bent = with_model(Problem(arms, noise=Gaussian([1.0, 2.0, 3.0])), "bending")
    >>> bent.arms.feature_names, bent.noise.sigma
    (('f1', 'f1^2', 'intercept'), (1.0, 2.0, 3.0))
    """
    arms = problem.arms.with_model(model)
    changes: dict[str, Any] = {"arms": arms}
    if isinstance(problem.noise.sigma, tuple):
        sigma = _by_name("sigma", problem.noise.sigma, problem.arms, arms)
        changes["noise"] = replace(problem.noise, sigma=sigma)
    if isinstance(problem.cost, tuple):
        changes["cost"] = _by_name("cost", problem.cost, problem.arms, arms)
    found = problem.with_(**changes)
    check_told_apart(found.candidates, found.misspecification)
    return found


def with_margin(problem: Problem, epsilon: float) -> Problem:
    """Return the problem with another margin, 0 for none; refuse one that has no proof.

    Examples
    --------
    >>> from finalist.problem import Gaussian
    >>> problem = Problem(Arms.unstructured(3), noise=Gaussian(1.0))
    >>> with_margin(problem, 0.5).goal
    EpsilonBest(epsilon=0.5)
    """
    goal = as_goal(checked_number(epsilon, "epsilon"), 1, None)
    if problem.top > 1:
        raise ProblemError(
            f"this asks for the {problem.top} best; a margin has a proof for one best only. Use "
            "top=1, or no margin."
        )
    return problem.with_(goal=goal)


def _by_name(name: str, values: tuple[float, ...], old: Arms, new: Arms) -> tuple[float, ...]:
    """Return the value of each new arm; those that become one arm must agree."""
    found = []
    for aliases in new.aliases:
        own = {values[old.index(alias)] for alias in aliases}
        if len(own) > 1:
            raise ProblemError(
                f"{show(aliases[0])} and {show(aliases[1])} have the same columns, so they are one "
                f"candidate in this model, but their {name} differs. Give them the same {name}, or "
                "tell them apart by a column."
            )
        found.append(own.pop())
    return tuple(found)
