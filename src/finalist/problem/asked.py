"""Problems from what public functions take: arms with settings, or a problem as it is."""

from typing import Any, Unpack

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.problem.candidates import check_told_apart
from finalist.problem.goals import as_goal
from finalist.problem.noise import as_noise
from finalist.problem.problem import Problem, check_arms
from finalist.problem.values import UNSET
from finalist.settings import ProblemWords, of_study


def as_problem(arms: Arms | Problem, **words: Unpack[ProblemWords]) -> Problem:
    """Make a `Problem` of what public functions take: arms and settings, or a problem as it is.

    Parameters
    ----------
    **words
        Settings of the problem, only with arms. `sigma` has to be given unless `noise`, a model or
        its name, has its own; None means unknown. `goal` may stand for `epsilon` or `top`. The
        others are those of `Problem`.

    Examples
    --------
    >>> import numpy as np
    >>> from finalist.arms import Arms
    >>> problem = as_problem(Arms(np.eye(2)), sigma=2, epsilon=0.1, delta=0.01)
    >>> problem.goal
    EpsilonBest(epsilon=0.1)
    >>> as_problem(problem) is problem
    True
    """
    if isinstance(arms, Problem):
        if words:
            raise ProblemError(
                f"a problem is given, and {', '.join(words)} too; put it into the problem."
            )
        return arms
    check_arms(arms)  # before a sigma that was left out
    given: dict[str, Any] = dict(words)
    noise = as_noise(given.pop("sigma", UNSET), given.pop("noise", None))
    goal = as_goal(given.pop("epsilon", 0.0), given.pop("top", 1), given.pop("goal", None))
    problem = Problem(arms, noise=noise, goal=goal, **given)
    check_told_apart(problem.candidates, problem.misspecification)
    return problem


def study_problem(arms: Arms | Problem, **words: Unpack[ProblemWords]) -> Problem:
    """Make the problem of a real study, or of its plan: as `as_problem`, with their defaults.

    A problem that is given stays as it is.
    """
    return as_problem(arms, **(words if isinstance(arms, Problem) else of_study(words)))
