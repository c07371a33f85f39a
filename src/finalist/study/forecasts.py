"""How a study would go on, simulated: as it is, and as a fork with a margin if it has none.

Such a fork has fresh evidence, and all results so far as its history. Forecasts are estimates and
promise nothing.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from finalist.compiled.threads import on_one_thread
from finalist.errors import EstimateError
from finalist.inference.least_squares import Estimate
from finalist.planning import Forecast, forecast
from finalist.planning.forecasts import twin_of
from finalist.problem import Problem
from finalist.problem.budget import pulls_for
from finalist.problem.remodel import with_margin
from finalist.problem.rules import NEWEST
from finalist.strategies import guaranteed, promise_of
from finalist.strategies.abilities import Informed
from finalist.study.state import State

if TYPE_CHECKING:
    from finalist.study.snapshot import Snapshot

#: A forecast is made up to so many arms times the square of their rank.
MAX_WORK = 200_000
#: How many margins are compared, by how many draws each.
MARGINS, DRAWS = 2, 10
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


class Ahead:
    """How a study would go on after a snapshot: simulated when somebody looks, and then kept.

    It has a copy of the run, so that it does not matter what happens in the study until then.
    Pickled, it is what was simulated.

    Parameters
    ----------
    snapshot : Snapshot
        Of this state.

    Attributes
    ----------
    event : int
        The last event.
    """

    def __init__(self, state: State, snapshot: "Snapshot") -> None:
        self.event = snapshot.event
        self._snapshot, self._seed, self._done = snapshot, state.settings.seed, state.pooled.pulls
        able = snapshot.can_forecast or snapshot.can_compare
        self._run = twin_of(state.run, state.problem) if able else None

    @cached_property
    @on_one_thread(lambda self: self._snapshot.arms.features.size)
    def soon(self) -> Forecast | None:
        """The forecast of the study: seconds when first looked at."""
        snapshot, run = self._snapshot, self._run
        if run is None or not snapshot.can_forecast:
            return None
        problem, left = snapshot.problem, snapshot.budget_left
        seed = _seed(self._seed, snapshot.event)
        cap = None if left is None else pulls_for(problem, left)
        return forecast(run, problem, snapshot.fit, self._done, seed=seed, cap=cap, brief=True)

    @cached_property
    @on_one_thread(lambda self: self._snapshot.arms.features.size)
    def margins(self) -> tuple[MarginForecast, ...]:
        """Those with margins: seconds more when first looked at."""
        if self._run is None or not self._snapshot.can_compare:
            return ()
        return compare(self._snapshot, self._seed, self._done, self.soon)

    def __reduce__(self) -> tuple[Any, ...]:
        return foreseen, (self.soon, self.margins)


def foreseen(soon: Forecast | None, margins: tuple[MarginForecast, ...] = ()) -> Ahead:
    """Return what was simulated before, or elsewhere.

    Examples
    --------
    >>> foreseen(None).margins
    ()
    """
    ahead = Ahead.__new__(Ahead)
    ahead.soon, ahead.margins = soon, margins
    return ahead


def can_have_margin(state: State) -> bool:
    """Return whether a fork with a margin can be asked for, guided by the results so far."""
    problem, strategy = state.problem, state.settings.strategy
    single = problem.top == 1 and problem.epsilon == 0.0 and len(problem.candidates) > 1
    return single and guaranteed(strategy) and isinstance(state.run, Informed)


def _seed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


def compare(
    snapshot: "Snapshot", seed: int, done: int, soon: Forecast | None
) -> tuple[MarginForecast, ...]:
    """Simulate forks with margins; none where the study itself is more than half way.

    Parameters
    ----------
    snapshot : Snapshot
        With `can_compare`.
    seed : int
        Of the study.
    done : int
        Pulls so far.
    soon : Forecast or None
        Of the study itself, if it goes on.
    """
    problem, standing = snapshot.problem, snapshot.standing
    if snapshot.doubts or (soon is not None and soon.median <= done):
        return ()
    cap = FURTHER * max(done, EARLY * snapshot.arms.rank)
    if soon is not None:
        cap = math.ceil(WORTH * (soon.cap if math.isinf(soon.median) else soon.median))
    if problem.budget is not None:
        cap = min(cap, pulls_for(problem, problem.budget))
    # The arm in front is behind the best by so much at most: that margin needs no measurement.
    within = None if standing is None else standing.within
    scale = within or _noise(problem, snapshot.fit)
    found = [_simulated(snapshot, seed, epsilon, cap) for epsilon in below(scale, MARGINS)]
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


def _simulated(snapshot: "Snapshot", seed: int, epsilon: float, cap: int) -> MarginForecast | None:
    """Simulate a fork with a margin; None if the results say too little to draw from."""
    question, fit = with_margin(snapshot.problem, epsilon).with_(rules=NEWEST), snapshot.fit
    seed = _seed(seed, snapshot.event, 1)
    run = snapshot.strategy.start(question, seed=seed)
    # Shifted batches would be taken for one batch; without them the forecast is a little long.
    if isinstance(run, Informed) and not question.batch_intercept:
        run.inform(fit.statistics.copy())
    try:
        found = forecast(run, question, fit, 0, draws=DRAWS, seed=seed, cap=cap, brief=True)
    except EstimateError:
        return None
    ends = (found.median, found.low, found.high)
    median, low, high = (end if math.isfinite(end) else None for end in ends)
    return MarginForecast(epsilon, median, low, high, found.cap)
