"""How many pulls to expect before the first one: strategies simulated side by side.

Every strategy meets the same parameters, either random with a given gap or one fixed theta. Run i
is the run i of `simulate`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from finalist.arms import Arms
from finalist.complexity import least_cost
from finalist.errors import NotYetSupportedError, ProblemError, TiedArmsError
from finalist.planning.parameters import leading
from finalist.planning.result import BudgetRow, Plan, PlanRow
from finalist.problem import Problem, study_problem
from finalist.problem.budget import in_cost
from finalist.problem.values import checked_number
from finalist.settings import ProblemWords, spelled_out_of_study
from finalist.simulation.engine import Shown, collect
from finalist.simulation.task import Outcome, Task, make_task, whole
from finalist.strategies import Strategy, named, promise_of, shown_name

#: A run is cut here, undecided, unless the caller says otherwise.
MAX_PULLS = 10**7
#: Differences are compared up to this part of them.
CLOSE = 1e-9


@spelled_out_of_study
def plan(
    arms: Arms | Problem,
    *,
    gap: float | None = None,
    theta: ArrayLike | None = None,
    strategy: Strategy | str = "gauntlet",
    draws: int = 50,
    seed: int = 0,
    n_jobs: int = 1,
    against: Strategy | str | Sequence[Strategy | str] | None = None,
    max_pulls: int | None = None,
    within: float | None = None,
    progress: Shown = None,
    **words: Unpack[ProblemWords],
) -> Plan:
    """Say before any measurement how many pulls to expect; with a budget, what it will bring.

    Parameters
    ----------
    arms : Arms or Problem
        The arms, with the settings in `words`; or the problem.
    gap : float, optional
        How far the best arm leads the second best, in units of the reward. Each draw has a random
        parameter with exactly this lead. Bernoulli means are centred at 1/2.
    theta : (d,) array-like, optional
        The parameter of all draws, instead of `gap`. Draw i is then run i of `simulate`.
    strategy : str or Strategy
    draws : int
        How often each strategy is simulated; draw i depends only on the seed and i.
    seed : int
    n_jobs : int
        Processes; 1 is this one, -1 means one per core.
    against : str, Strategy or sequence of them
        Strategies to compare with, under the same parameters; by default "uniform", if it supports
        the problem.
    max_pulls : int, default 10^7
        A run that needs more is stopped, undecided.
    within : float, optional
        With a budget: in how many draws the arm that is named is so close to the best is counted
        beside those in which it is right; by default the gap.
    progress : bool or function, optional
        Whether to show a bar on stderr; by default on a terminal, after a second. A function is
        called after each run with the number of finished runs and of all runs.
    **words
        Settings of the problem: those of the signature, explained in `Problem`. `sigma` has to be
        given unless `noise` has its own. Sigma is a
        guess if it is unknown. With costs, the plan counts cost instead of pulls. With `budget`
        every draw ends there at the latest, and the arm is counted that is named then; strategies
        for a fixed budget can be planned too.

    Returns
    -------
    Plan

    Raises
    ------
    ProblemError
        Unless exactly one of `gap` and `theta` is given; if sigma is unknown, the gap impossible,
        or a strategy is one for a fixed budget and there is none.

    Examples
    --------
    >>> import finalist as fl
    >>> arms = fl.Arms.unstructured(3)
    >>> p = fl.plan(arms, sigma=1.0, gap=0.5, draws=20)
    >>> [row.name for row in p.rows]
    ['gauntlet', 'uniform']
    >>> p.lower_bound < p.rows[0].mean < p.rows[1].mean
    True
    """
    problem = study_problem(arms, **words)
    if problem.noise.sigma is None:
        raise ProblemError(
            "sigma is None, unknown; a plan draws results and needs a guess of their noise, for "
            "example sigma=1.0."
        )
    if (gap is None) == (theta is None):
        both = "neither is given" if gap is None else "both are given"
        raise ProblemError(
            f"give either gap, how far the best candidate leads, or theta, the parameter; {both}."
        )
    contenders = _contenders(strategy, _usual(problem) if against is None else against)
    number = whole("draws", draws, 1)
    cap = MAX_PULLS if max_pulls is None else whole("max_pulls", max_pulls, 1)
    if problem.budget is not None and not in_cost(problem):
        cap = min(cap, problem.budget)
        problem = problem.with_(budget=cap)
    scale = None if gap is None else checked_gap(gap)
    runs = Draws(problem, contenders, scale, theta, whole("seed", seed, 0), cap)
    close = scale if within is None else _checked_within(within, problem)
    strategies = [runs.task(index).strategy for index in range(len(contenders))]
    if problem.budget is None:  # before the work begins
        for one in strategies:
            refuse_budget(one)
    total = number * len(contenders)
    outcomes = collect(runs, range(total), n_jobs, progress)
    if len(outcomes) < total:
        raise KeyboardInterrupt
    rows = rows_of(_labels(contenders, strategies), outcomes, [problem.costs] * len(contenders))
    return Plan(
        rows=rows if problem.budget is None else _named(rows, runs, outcomes, close),
        gap=scale,
        sigma=problem.noise.sigma,
        delta=problem.delta,
        draws=number,
        max_pulls=cap,
        seed=runs.seed,
        lower_bound=_lower_bound(runs, number) if problem.budget is None else None,
        unit="pulls" if problem.cost == 1.0 else "units of cost",
        budget=problem.budget,
        within=None if problem.budget is None or problem.top > 1 else close,
    )


def _usual(problem: Problem) -> tuple[str, ...]:
    """Return the default comparison: uniform allocation, if it supports the problem."""
    try:
        named("uniform", problem.arms).start(problem)
    except NotYetSupportedError:
        return ()
    return ("uniform",)


@dataclass(frozen=True, eq=False)
class Draws:
    """The numbered runs of a plan: every strategy under draw 0, then under draw 1, and so on."""

    problem: Problem
    contenders: tuple[Strategy | str, ...]
    gap: float | None
    theta: ArrayLike | None
    seed: int
    max_pulls: int

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
        )

    def parameter(self, draw: int) -> Float[np.ndarray, " d"]:
        """Return the parameter of a draw."""
        if self.gap is None:
            return np.asarray(self.theta, dtype=float)
        # Children 0 and 1 of (seed, draw) are for the rewards and the strategy.
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(draw, 2)))
        return leading(self.problem, self.gap, rng)


def _contenders(
    strategy: Strategy | str, against: Strategy | str | Sequence[Strategy | str]
) -> tuple[Strategy | str, ...]:
    """Return the strategies without repeats, the one asked for first."""
    others = [against] if isinstance(against, str | Strategy) else list(against)
    return (strategy, *(one for i, one in enumerate(others) if one not in [strategy, *others[:i]]))


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
            f"gap is {value}; it is the lead of the best candidate in units of the result "
            f"and must be "
            "positive and finite."
        )
    return value


def _labels(contenders: tuple[Strategy | str, ...], strategies: Sequence[Strategy]) -> list[str]:
    """Return the names; strategies with the same name are shown with their settings.

    As in `shown_name`, a strategy whose delta is not proven is marked.
    """
    count = Counter(one.name for one in strategies)
    return [
        (one.name if count[one.name] == 1 else str(given)) + shown_name(one).removeprefix(one.name)
        for given, one in zip(contenders, strategies, strict=True)
    ]


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


def _checked_within(within: object, problem: Problem) -> float:
    """Return a difference from the best that is counted at the end of a budget."""
    value = checked_number(within, "within")
    if not 0.0 <= value < float("inf"):
        raise ProblemError(f"within is {value}; it is a difference of two means, 0 or more.")
    if problem.budget is None or problem.top > 1:
        raise ProblemError(
            f"within is {value:g}; what is so close to the best is counted at the end of a budget "
            "and for a single winner. Give a budget, or leave it out."
        )
    return value


def _named(
    rows: tuple[PlanRow, ...], runs: Draws, outcomes: Sequence[Outcome], within: float | None
) -> tuple[BudgetRow, ...]:
    """Count how good the arms are that are named by the end of a budget."""
    problem, found = runs.problem, list[BudgetRow]()
    for which, row in enumerate(rows):
        mine = [one for one in outcomes if one.run % len(rows) == which]
        behind = []
        for one in mine if within is not None and problem.top == 1 else ():
            means = problem.sign * problem.means(runs.parameter(one.run // len(rows)))
            best = float(means[problem.arms.candidate].max())
            behind.append(best - float(means[one.winner]) if one.winner >= 0 else np.inf)
        sure = [float(o.pulls @ problem.costs) if o.certain else np.inf for o in mine]
        right = sum(one.correct for one in mine)
        near = None
        if behind and within is not None:  # a lead of exactly that is within it, up to rounding
            near = sum(one <= within * (1.0 + CLOSE) for one in behind)
        found.append(BudgetRow(row.name, np.array(sure), len(mine) - right, right, near))
    return tuple(found)


def _lower_bound(draws: Draws, number: int) -> float | None:
    """Return the mean of T* kl(delta, 1 - delta); tied arms take infinitely long."""
    problem = draws.problem
    known = problem.epsilon == 0 and problem.top == 1 and problem.misspecification == 0
    if not known or problem.batch_intercept or not problem.noise.normal:
        return None
    bounds = []
    for draw in range(1 if draws.gap is None else number):
        try:
            bounds.append(least_cost(problem, draws.parameter(draw)))
        except TiedArmsError:
            bounds.append(np.inf)
    return float(np.mean(bounds))
