"""Assess a study: estimates, intervals, checks and a forecast become its `Status`."""

import math
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from finalist.arms import Arms
from finalist.arms.span import SPAN_TOLERANCE
from finalist.inference.intervals import certainty, error_estimate, pooled_widths, start_of
from finalist.inference.intervals import leader as leader_of
from finalist.inference.least_squares import Estimate
from finalist.inference.misspecification import Bias
from finalist.planning import Forecast
from finalist.planning import forecast as forecast_of
from finalist.strategies import guaranteed, promise_of
from finalist.study.checks import better_by_all, checks_of, doubts, given_up
from finalist.study.pulls import Fate
from finalist.study.sentences import advice, assumptions, doubts_of, promised, risk_of, sentence
from finalist.study.state import State
from finalist.study.status import ArmStatus, Status

#: The confidence of the interval of each arm, all arms and times together.
CONFIDENCE = 0.95
#: A forecast is made up to so many arms times the square of their rank.
MAX_WORK = 200_000


def assess(name: str, state: State, *, forecast: bool) -> Status:
    """Return the status of a study in a state, with a forecast if that is wanted and possible."""
    fit = state.pooled.estimate()
    verdict, names = state.verdict, state.arms.names
    means = fit.means()
    known = ~np.isnan(means) & state.arms.candidate
    good = np.where(known, state.problem.sign * means, -np.inf)
    leader = names[int(good.argmax())] if np.isfinite(good).any() else None
    ended = state.end is not None
    certain = promised(state)
    chosen = _chosen(state, fit) if ended else None
    winner = chosen if verdict.decided else None
    open_end = ended and not (certain and verdict.decided)
    error, sure = _figures(state, fit, chosen) if open_end and chosen is not None else (None, None)
    other = None if certain else better_by_all(state.problem, fit, chosen, error)
    warnings = _warnings(state)
    if open_end:
        warnings += doubts(state, fit, chosen, error, other)
    return Status(
        name=name,
        verdict=_verdict(state, winner is not None),
        certain=certain,
        winner=None if winner is None else names[winner],
        winners=() if winner is None else tuple(names[i] for i in verdict.winners),
        top=state.problem.top,
        leader=leader,
        survivors=tuple(names[i] for i in verdict.survivors),
        risk=risk_of(state),
        recommendation=None if chosen is None else names[chosen],
        error_estimate=error,
        certainty=sure,
        advice=advice(state, chosen, error, sure, other) if open_end else None,
        sentence=sentence(state, known=chosen is not None),
        pulls=int(np.count_nonzero(state.pulls.fate == Fate.TOLD)),
        open_pulls=int(np.count_nonzero(state.pulls.fate == Fate.OPEN)),
        batches=len(state.decisions),
        budget_left=state.left,
        assumptions=tuple(assumptions(state)),
        warnings=tuple(warnings),
        doubts=tuple(doubts_of(state)),
        forecast=_forecast_of(state, fit) if forecast and not ended else None,
        arms=_arms(state, fit, means),
    )


def _verdict(state: State, found: bool) -> Literal["continue", "winner", "uncertain", "undecided"]:
    """Say where a study stands; `found` tells whether there is a winner."""
    if not found:
        return "continue" if state.end is None else "undecided"
    return "uncertain" if doubts_of(state) else "winner"


def _chosen(state: State, fit: Estimate) -> int | None:
    """Return the winner, or the best of the survivors; None if the rewards tell of none.

    When a budget is spent there is a winner, be the rewards lost or not.
    """
    winner, alive = state.verdict.winner, state.verdict.survivors
    tested = promise_of(state.settings.strategy) == "confidence"
    if winner is not None and (tested or len(state.arms) == 1):
        return winner
    if np.isnan(fit.means()[list(alive)]).all():
        return None
    return leader_of(fit, state.problem.sign, alive) if winner is None else winner


def _figures(state: State, fit: Estimate, arm: int) -> tuple[float | None, float | None]:
    """Return how likely it is by an estimate that another arm is better, and what is certain."""
    if doubts_of(state):
        return None, None
    problem = state.problem
    sign, epsilon, sigma = problem.sign, problem.epsilon, problem.scale
    bias, feigned = _bias(state, fit), None
    if bias is not None:
        arms = np.arange(len(state.arms))
        feigned = bias.of_pairs(np.full(len(arms), arm), arms)
    # An estimate of how likely a wrong model is right has no meaning.
    error = None
    if bias is None:
        error = error_estimate(fit, arm, sign=sign, sigma=sigma, epsilon=epsilon)
    start = _start(state)
    return error, certainty(
        fit, arm, sign=sign, sigma=sigma, start=start, epsilon=epsilon, bias=feigned
    )


def _warnings(state: State) -> list[str]:
    # A check that fails takes the guarantee away, where the strategy has one.
    had = guaranteed(state.settings.strategy)
    found = [check.words(had) for check in checks_of(state)]
    found += given_up(state, promised=had)
    found += [
        f"Nothing here is certain: {doubt}. Start a new study, and bring in these rewards as "
        "earlier measurements."
        for doubt in state.doubts
    ]
    return found


def _forecast_of(state: State, fit: Estimate) -> Forecast | None:
    arms = state.arms
    if len(arms) * arms.rank**2 > MAX_WORK or fit.information.rank < fit.dimension:
        return None
    if promise_of(state.settings.strategy) == "budget" or not state.replay.follows:
        return None  # it takes what is left of the budget
    if state.problem.noise.sigma is None and fit.degrees_of_freedom < 1:
        return None
    seed = int(np.random.SeedSequence([state.settings.seed, state.last]).generate_state(1)[0])
    done, cap = state.pooled.pulls, state.left
    return forecast_of(state.run, state.problem, fit, done, seed=seed, cap=cap)


def _arms(state: State, fit: Estimate, means: Float[np.ndarray, " K"]) -> tuple[ArmStatus, ...]:
    names, count = state.arms.names, state.pooled.statistics.count
    widths = _widths(state, fit)
    found = state.replay.evidence()
    valid = found is not None and state.stage == 0 and not doubts_of(state)
    alive = np.zeros(len(names), dtype=bool)
    alive[list(state.verdict.survivors)] = True
    candidate, none = state.arms.candidate, np.full(len(names), np.nan)
    columns = (
        names,
        count.tolist(),
        _numbers(means),
        _numbers(means - widths),
        _numbers(means + widths),
        _numbers(none if found is None else np.where(candidate, found.share, np.nan)),
        _numbers(np.where(candidate, found.p_value, np.nan) if valid and found else none),
        [
            names[i] if i >= 0 else None
            for i in ([-1] * len(names) if found is None else found.rival.tolist())
        ],
        alive.tolist(),
        state.arms.measurable.tolist(),
        candidate.tolist(),
    )
    return tuple(map(ArmStatus, *columns))


def _numbers(values: Float[np.ndarray, " K"]) -> list[float | None]:
    """Return what is finite as numbers, None for the rest."""
    return [value if math.isfinite(value) else None for value in values.tolist()]


def _widths(state: State, fit: Estimate) -> Float[np.ndarray, " K"]:
    """Return half-widths of intervals for the means, for all arms and times at once."""
    problem, Z = state.problem, fit.arms.coordinates
    widths = pooled_widths(fit, Z, _start(state), CONFIDENCE, problem.scale)
    if doubts_of(state):
        return np.full(len(Z), np.inf)
    bias = _bias(state, fit)
    if bias is not None and np.isfinite(widths).any():
        widths = widths + bias.of_arms(np.arange(len(Z)))
    return np.where(_have_level(state.arms), widths, np.inf)


def _bias(state: State, fit: Estimate) -> Bias | None:
    """Return what a model that may be wrong can feign in the estimate from all rewards."""
    problem, Z, count = state.problem, fit.arms.coordinates, fit.statistics.count
    return Bias.of(problem.misspecification, problem.precisions, Z, count, fit.information)


def _have_level(arms: Arms) -> Bool[np.ndarray, " K"]:
    """Return which arms have means that measurements can tell.

    Those of candidates outside the span of what is measured they cannot: duels tell how players
    differ, not how good they are.
    """
    if arms.measurable.all():
        return np.ones(len(arms), dtype=bool)
    X, Z, can = arms.features, arms.coordinates, arms.measurable
    X = X / np.where(X.any(axis=0), np.abs(X).max(axis=0), 1.0)
    rest = X - Z @ np.linalg.lstsq(Z[can], X[can], rcond=None)[0]
    inside = np.linalg.norm(rest, axis=1) <= SPAN_TOLERANCE * np.linalg.norm(X, axis=1)
    return np.asarray(inside)


def _start(state: State) -> Float[np.ndarray, "r r"] | None:
    """Return what intervals start from; None where they have no proof.

    That is when the arms were changed, perhaps because of rewards, and where batches are shifted
    and the model may be wrong as well: what it can feign is known for one batch only.
    """
    problem = state.problem
    if state.stage > 0 or (problem.batch_intercept and problem.misspecification > 0.0):
        return None
    return start_of(problem)
