"""How a study would go on, simulated: as it is, and as a fork with a margin if it has none.

Such a fork has fresh evidence, and all results so far as its history. Forecasts are estimates and
promise nothing.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from finalist.errors import EstimateError
from finalist.inference.least_squares import Estimate
from finalist.planning import Forecast, forecast
from finalist.problem import Problem
from finalist.problem.remodel import with_margin
from finalist.problem.rules import NEWEST
from finalist.strategies import guaranteed, promise_of
from finalist.strategies.abilities import Informed
from finalist.study.checks import doubts_of
from finalist.study.state import State

if TYPE_CHECKING:
    from finalist.study.snapshot import Snapshot

#: A forecast is made up to so many arms times the square of their rank.
MAX_WORK = 200_000
#: How many margins are compared.
MARGINS = 2
#: A fork is cut at this part of what the study itself would need: it has to save that much.
WORTH = 0.5
#: Where the study has ended, after so many times its pulls, counting at least EARLY per dimension.
FURTHER, EARLY = 5, 20


@dataclass(frozen=True)
class MarginForecast:
    """The measurements that a fork with a margin would need.

    Attributes
    ----------
    epsilon : float
        The margin.
    median, low, high : float or None
        Quantiles of the simulated forks, 5 % and 95 % beside the median; None for more than `cap`.
    cap : int
        Measurements after which a fork was cut.
    """

    epsilon: float
    median: float | None
    low: float | None
    high: float | None
    cap: int


def can_forecast(state: State, fit: Estimate) -> bool:
    """Return whether a study can be simulated from here; a budget is always used up."""
    arms = state.arms
    if len(arms) * arms.rank**2 > MAX_WORK or fit.information.rank < fit.dimension:
        return False
    if promise_of(state.settings.strategy) == "budget" or not state.replay.follows:
        return False
    return state.problem.noise.sigma is not None or fit.degrees_of_freedom >= 1


def forecasts_of(
    state: State, snapshot: "Snapshot"
) -> tuple[Forecast | None, tuple[MarginForecast, ...]]:
    """Simulate what is still needed after a snapshot of this state, and what with margins."""
    soon = None
    if snapshot.can_forecast:
        seeds = np.random.SeedSequence([state.settings.seed, state.last])
        seed, done = int(seeds.generate_state(1)[0]), state.pooled.pulls
        soon = forecast(state.run, state.problem, snapshot.fit, done, seed=seed, cap=state.left)
    if not snapshot.can_compare:
        return soon, ()
    within = None if snapshot.standing is None else snapshot.standing.within
    return soon, compare(state, snapshot.fit, within, soon)


def can_have_margin(state: State) -> bool:
    """Return whether a fork with a margin can be asked for, guided by the results so far."""
    problem, strategy = state.problem, state.settings.strategy
    single = problem.top == 1 and problem.epsilon == 0.0 and len(problem.candidates) > 1
    return single and guaranteed(strategy) and isinstance(state.run, Informed)


def compare(
    state: State, fit: Estimate, within: float | None, soon: Forecast | None
) -> tuple[MarginForecast, ...]:
    """Simulate forks with margins; none where the study itself is more than half way.

    Parameters
    ----------
    state : State
        With `can_have_margin`.
    fit : Estimate
        From all rewards.
    within : float or None
        How far the arm in front is behind the best at most: a margin of that needs no measurement.
    soon : Forecast or None
        Of the study itself, if it goes on.
    """
    done, problem = state.pooled.pulls, state.problem
    if doubts_of(state) or (soon is not None and soon.median <= done):
        return ()
    cap = FURTHER * max(done, EARLY * state.arms.rank)
    if soon is not None:
        cap = math.ceil(WORTH * (soon.cap if math.isinf(soon.median) else soon.median))
    cap = cap if problem.budget is None else min(cap, problem.budget)
    scale = within or _noise(problem, fit)
    found = [_simulated(state, fit, epsilon, cap) for epsilon in below(scale, MARGINS)]
    return tuple(one for one in found if one is not None)


def below(scale: float, count: int) -> tuple[float, ...]:
    """Return the largest margins below a number that people would name, the largest first.

    Examples
    --------
    >>> below(0.43, 4), below(1.0, 3)
    ((0.2, 0.1, 0.05, 0.02), (0.5, 0.2, 0.1))
    """
    if not 0.0 < scale < math.inf:
        return ()
    first = math.floor(math.log10(scale))
    some = [float(f"{m}e{e}") for e in range(first, first - count - 1, -1) for m in (5, 2, 1)]
    return tuple(one for one in some if one < scale)[:count]


def _noise(problem: Problem, fit: Estimate) -> float:
    """Return the size of the noise, or an estimate of it."""
    try:
        if problem.noise.sigma is None:
            return math.sqrt(fit.residual_variance)
    except EstimateError:
        return math.nan
    return float(np.median(problem.sigmas[problem.arms.measurable]))


def _simulated(state: State, fit: Estimate, epsilon: float, cap: int) -> MarginForecast | None:
    """Simulate a fork with a margin; None if the results say too little to draw from."""
    question = with_margin(state.problem, epsilon).with_(rules=NEWEST)
    seeds = np.random.SeedSequence([state.settings.seed, state.last, 1])
    seed = int(seeds.generate_state(1)[0])
    run = state.settings.strategy.start(question, seed=seed)
    # Shifted batches would be taken for one batch; without them the forecast is a little long.
    if isinstance(run, Informed) and not question.batch_intercept:
        run.inform(fit.statistics.copy())
    try:
        found = forecast(run, question, fit, 0, seed=seed, cap=cap)
    except EstimateError:
        return None
    ends = (found.median, found.low, found.high)
    median, low, high = (end if math.isfinite(end) else None for end in ends)
    return MarginForecast(epsilon, median, low, high, found.cap)
