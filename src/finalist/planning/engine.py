"""How many measurements to expect before the first one: studies simulated side by side.

Every strategy meets the same parameters, either random with a given gap or one fixed theta. Run i
is the run i of `simulate`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from finalist.arms import Arms
from finalist.complexity import least_cost
from finalist.errors import NotYetSupportedError, ProblemError, TiedArmsError
from finalist.planning.draws import (
    MAX_PULLS,
    Draws,
    Together,
    checked_gap,
    checked_guess,
    labels_of,
    refuse_budget,
    rows_of,
)
from finalist.planning.equal import EqualShares
from finalist.planning.fixed import fixed_size
from finalist.planning.result import BudgetRow, LeadRow, Plan, PlanRow, unit_of
from finalist.problem import Problem, study_problem
from finalist.problem.budget import in_cost
from finalist.problem.values import checked_number
from finalist.settings import ProblemWords, spelled_out_of_study
from finalist.simulation.engine import Shown, collect
from finalist.simulation.task import Outcome, whole
from finalist.strategies import Strategy, named
from finalist.strategies.gauntlet import Gauntlet

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
    size: int | None = None,
    guess: float | None = None,
    leads: Sequence[float] | bool = False,
    progress: Shown = None,
    **words: Unpack[ProblemWords],
) -> Plan:
    """Say before any measurement how many to expect; with a budget, what it will bring.

    Whole studies are simulated, with everything that a study has: its checks, batches, unknown
    noise, margin, costs.

    Parameters
    ----------
    arms : Arms or Problem
        The arms, with the settings in `words`; or the problem.
    gap : float, optional
        The smallest lead that matters: how far the best arm leads the second best, in units of the
        reward. Each draw has a random parameter with exactly this lead (`planning.parameters` says
        how it is drawn). Bernoulli means are centred at 1/2.
    theta : (d,) array-like, optional
        The parameter of all draws, instead of `gap`. Draw i is then run i of `simulate`.
    strategy : str or Strategy
    draws : int
        How often each strategy is simulated; draw i depends only on the seed and i.
    seed : int
    n_jobs : int
        Processes; 1 is this one, -1 means one per core.
    against : str, Strategy or sequence of them
        Strategies to compare with, under the same parameters; by default the gauntlet's own test
        with equal shares, and "uniform" for other strategies and with a budget, if it supports the
        problem.
    max_pulls : int, default 10^7
        A run that needs more is stopped, undecided.
    within : float, optional
        With a budget: draws in which the arm that is named is that close to the best are counted
        too; by default the gap.
    size : int, optional
        Measurements of a batch, as in `Study.ask`; by default each strategy chooses its own sizes.
    guess : float, optional
        If sigma is None (unknown): the size of the noise that is drawn. The simulated studies do
        not know it.
    leads : sequence of float, or bool
        Further leads to simulate beside the gap, for `Plan.by_lead`; True for half of the gap and
        twice as much.
    progress : bool or function, optional
        Whether to show a bar on stderr; by default on a terminal, after a second. A function is
        called after each run with the number of finished runs and of all runs.
    **words
        Settings of the problem: those of the signature, explained in `Problem`. `sigma` is required
        unless `noise` has its own; None if it is unknown, with a `guess`. With costs, the plan
        counts cost instead of measurements. With `budget` every draw ends there at the latest, and
        the arm named then is what counts; strategies for a fixed budget can be planned too.

    Returns
    -------
    Plan

    Raises
    ------
    ProblemError
        Unless exactly one of `gap` and `theta` is given; if sigma is unknown and there is no guess,
        the gap impossible, or a strategy is one for a fixed budget and there is none.

    Examples
    --------
    >>> import finalist as fl
    >>> arms = fl.Arms.unstructured(3)
    >>> p = fl.plan(arms, sigma=1.0, gap=0.5, draws=20)
    >>> [row.name for row in p.rows]
    ['gauntlet', 'equal shares']
    >>> p.rows[0].median < p.rows[1].median
    True
    """
    problem = study_problem(arms, **words)
    drawn = checked_guess(problem, guess)
    if (gap is None) == (theta is None):
        both = "neither is given" if gap is None else "both are given"
        raise ProblemError(
            f"give either gap, how far the best candidate leads, or theta, the parameter; {both}."
        )
    contenders = _contenders(strategy, _usual(problem, strategy) if against is None else against)
    number = whole("draws", draws, 1)
    cap = MAX_PULLS if max_pulls is None else whole("max_pulls", max_pulls, 1)
    if problem.budget is not None and not in_cost(problem):
        cap = min(cap, problem.budget)
        problem = problem.with_(budget=cap)
    scale = None if gap is None else checked_gap(gap)
    batch = None if size is None else whole("size", size, 1)
    runs = Draws(problem, contenders, scale, theta, whole("seed", seed, 0), cap, batch, drawn)
    close = scale if within is None else _checked_within(within, problem)
    strategies = [runs.task(index).strategy for index in range(len(contenders))]
    if problem.budget is None:  # before the work begins
        for one in strategies:
            refuse_budget(one)
    all_leads = _checked_leads(leads, scale, problem)
    labels = labels_of(contenders, strategies)
    by_lead = _simulated(runs, labels, all_leads, number, n_jobs, progress)
    rows, outcomes = by_lead[scale]
    lead_rows = [
        LeadRow(lead, of, _fixed(replace(runs, gap=lead), number))
        for lead, (of, _) in by_lead.items()
        if lead is not None and problem.budget is None
    ]
    return Plan(
        rows=rows if problem.budget is None else _named(rows, runs, outcomes, close),
        gap=scale,
        sigma=problem.noise.sigma if drawn is None else drawn,
        delta=problem.delta,
        draws=number,
        max_pulls=cap,
        seed=runs.seed,
        lower_bound=_lower_bound(runs) if problem.budget is None else None,
        unit=unit_of(problem),
        budget=problem.budget,
        within=None if problem.budget is None or problem.top > 1 else close,
        by_lead=tuple(sorted(lead_rows, key=lambda row: row.lead)),
        size=batch,
        known=drawn is None,
    )


def _simulated(
    runs: Draws,
    labels: tuple[str, ...],
    leads: Sequence[float | None],
    number: int,
    n_jobs: int,
    progress: Shown,
) -> dict[float | None, tuple[tuple[PlanRow, ...], list[Outcome]]]:
    """Simulate all leads together; return for each the rows and outcomes."""
    each = [replace(runs, gap=lead) for lead in leads]
    plans = [replace(one, contenders=(who,)) for one in each for who in runs.contenders]
    outcomes = collect(Together(tuple(plans)), range(number * len(plans)), n_jobs, progress)
    if len(outcomes) < number * len(plans):
        raise KeyboardInterrupt
    found, K = {}, len(labels)
    for place, lead in enumerate(leads):
        mine = [
            one._replace(run=one.run // len(plans) * K + one.run % len(plans) - place * K)
            for one in outcomes
            if one.run % len(plans) // K == place
        ]
        found[lead] = rows_of(labels, mine, [runs.problem.costs] * K), mine
    return found


def _usual(problem: Problem, strategy: Strategy | str) -> tuple[Strategy | str, ...]:
    """Return the default comparison: the same test with equal shares, or uniform allocation."""
    if problem.budget is None and (strategy == "gauntlet" or type(strategy) is Gauntlet):
        return (EqualShares(),)
    try:
        named("uniform", problem.arms).start(problem)
    except NotYetSupportedError:
        return ()
    return ("uniform",)


def _checked_leads(
    leads: Sequence[float] | bool, gap: float | None, problem: Problem
) -> tuple[float | None, ...]:
    """Return the gap and further leads."""
    if leads is False:
        return (gap,)
    if gap is None or problem.budget is not None:
        raise ProblemError(
            f"leads is {leads!r}; further leads are simulated beside a gap, and without a budget. "
            "Leave them out."
        )
    if leads is True:  # means between 0 and 1 may not be twice as far apart
        leads = [gap / 2.0] if np.isfinite(problem.noise.range).all() else [gap / 2.0, 2.0 * gap]
    return tuple(dict.fromkeys([gap, *map(checked_gap, leads)]))


def _fixed(runs: Draws, number: int) -> float | None:
    """Return what an experiment of fixed size takes under the same parameters."""
    thetas = [runs.parameter(draw) for draw in range(number)]
    words = {"guess": runs.guess, "size": runs.size, "seed": runs.seed}
    return fixed_size(runs.problem, thetas, most=runs.max_pulls, **words)  # type: ignore[arg-type]


def _contenders(
    strategy: Strategy | str, against: Strategy | str | Sequence[Strategy | str]
) -> tuple[Strategy | str, ...]:
    """Return the strategies without repeats, the one asked for first."""
    others = [against] if isinstance(against, str | Strategy) else list(against)
    return (strategy, *(one for i, one in enumerate(others) if one not in [strategy, *others[:i]]))


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
        for one in mine if problem.top == 1 else ():
            means = problem.sign * problem.means(runs.parameter(one.run // len(rows)))
            best = float(means[problem.arms.candidate].max())
            behind.append(best - float(means[one.winner]) if one.winner >= 0 else np.inf)
        sure = [float(o.pulls @ problem.costs) if o.certain else np.inf for o in mine]
        right = sum(one.correct for one in mine)
        near = None
        if behind and within is not None:  # a lead of exactly that is within it, up to rounding
            near = sum(one <= within * (1.0 + CLOSE) for one in behind)
        worse = np.array(behind) if behind else None
        found.append(BudgetRow(row.name, np.array(sure), len(mine) - right, right, near, worse))
    return tuple(found)


def _lower_bound(runs: Draws) -> float | None:
    """Return T* kl(delta, 1 - delta) for a given theta; tied arms take infinitely long.

    Where a lead is given, an experiment that is planned for it may need fewer.
    """
    problem = runs.problem
    known = problem.epsilon == 0 and problem.top == 1 and problem.misspecification == 0
    known = known and problem.noise.sigma is not None and runs.gap is None
    if not known or problem.batch_intercept or not problem.noise.normal:
        return None
    try:
        return float(least_cost(problem, runs.parameter(0)))
    except TiedArmsError:
        return float("inf")
