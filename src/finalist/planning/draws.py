"""The simulated studies of a plan: every strategy under the same truths, as a study would run.

Run i of a plan is run i of `simulate` with the same settings: the same batches, checks and noise.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from finalist.errors import ProblemError
from finalist.planning.parameters import leading
from finalist.planning.result import PlanRow
from finalist.problem import Problem
from finalist.problem.values import checked_number
from finalist.shapes import Float
from finalist.simulation.task import Outcome, Task, make_task
from finalist.strategies import Strategy, promise_of, shown_name

#: A run is cut here, undecided, unless the caller says otherwise.
MAX_PULLS = 10**7


@dataclass(frozen=True, eq=False)
class Draws:
    """The numbered runs of a plan: every strategy under draw 0, then under draw 1, and so on.

    Attributes
    ----------
    problem : Problem
    contenders : tuple of Strategy or str
    gap : float or None
        The lead of all parameters; None if `theta` is the one parameter.
    theta : array-like or None
    seed, max_pulls : int
    size : int or None
        Measurements of a batch; None for the strategy's own.
    guess : float or None
        The size of the noise that is drawn if the problem does not know it.
    """

    problem: Problem
    contenders: tuple[Strategy | str, ...]
    gap: float | None
    theta: ArrayLike | None
    seed: int
    max_pulls: int
    size: int | None = None
    guess: float | None = None

    def run(self, index: int) -> Outcome:
        """Simulate the run with this number."""
        draw = index // len(self.contenders)
        return self.task(index).run(draw)._replace(run=index)

    def task(self, index: int) -> Task:
        """Return what the run with this number simulates."""
        draw, which = divmod(index, len(self.contenders))
        return make_task(
            self.problem,
            self.parameter(draw),
            self.contenders[which],
            rewards=None,
            seed=self.seed,
            max_pulls=self.max_pulls,
            size=self.size,
            noise_drawn=self.guess,
        )

    def parameter(self, draw: int) -> Float[np.ndarray, " d"]:
        """Return the parameter of a draw."""
        if self.gap is None:
            return np.asarray(self.theta, dtype=float)
        # Children 0 and 1 of (seed, draw) are for the rewards and the strategy.
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(draw, 2)))
        return leading(self.problem, self.gap, rng)


@dataclass(frozen=True, eq=False)
class Together:
    """The runs of several plans, numbered: every plan under draw 0, then under draw 1.

    Plans of one strategy each.
    """

    plans: tuple[Draws, ...]

    def run(self, index: int) -> Outcome:
        """Simulate the run with this number."""
        draw, which = divmod(index, len(self.plans))
        return self.plans[which].run(draw)._replace(run=index)


def rows_of(
    labels: Sequence[str], outcomes: Sequence[Outcome], costs: Sequence[Float[np.ndarray, " _"]]
) -> tuple[PlanRow, ...]:
    """Group the runs: those of every label under draw 0, then under draw 1, and so on."""
    ordered = sorted(outcomes, key=lambda outcome: outcome.run)
    rows = []
    for which, label in enumerate(labels):
        mine = ordered[which :: len(labels)]
        pulls = [float(o.pulls @ costs[which]) if o.winner >= 0 else np.inf for o in mine]
        wrong = sum(o.winner >= 0 and not o.correct for o in mine)
        rows.append(PlanRow(label, np.array(pulls), wrong))
    return tuple(rows)


def labels_of(
    contenders: tuple[Strategy | str, ...], strategies: Sequence[Strategy]
) -> tuple[str, ...]:
    """Return the names; strategies with the same name are shown with their settings.

    As in `shown_name`, a strategy whose delta is not proven is marked.
    """
    count = Counter(one.name for one in strategies)
    return tuple(
        (one.name if count[one.name] == 1 else str(given)) + shown_name(one).removeprefix(one.name)
        for given, one in zip(contenders, strategies, strict=True)
    )


def refuse_budget(strategy: Strategy) -> None:
    """Refuse a strategy that does not stop by itself."""
    if promise_of(strategy) == "budget":
        raise ProblemError(
            f"strategy {strategy.name!r} spends a fixed budget; a plan is for strategies that stop "
            "by themselves. To see how often it is right, simulate it with a budget."
        )


def checked_gap(gap: object) -> float:
    """Return a lead, positive and finite."""
    value = checked_number(gap, "gap")
    if not 0 < value < float("inf"):
        raise ProblemError(
            f"gap is {value}; it is the lead of the best candidate in units of the result, "
            "positive and finite."
        )
    return value


def checked_guess(problem: Problem, guess: object) -> float | None:
    """Return the size of the noise that is drawn: a guess if sigma is unknown, else None."""
    if problem.noise.sigma is not None:
        if guess is not None:
            raise ProblemError(
                f"guess is {guess!r} and sigma is given; a guess of the noise is for an unknown "
                "sigma (None). Give one of the two."
            )
        return None
    if guess is None:
        raise ProblemError(
            "sigma is None, unknown; a plan draws results and needs a guess of their noise: "
            "guess=1.0, for example. The simulated studies do not know it either."
        )
    value = checked_number(guess, "guess")
    if not 0 < value < float("inf"):
        raise ProblemError(f"guess is {value}; it is the size of the noise, positive and finite.")
    return value
