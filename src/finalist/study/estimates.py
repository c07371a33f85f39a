"""What the rewards of a study say: estimates with intervals, and what to recommend by them."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from finalist.arms import Arms
from finalist.arms.span import SPAN_TOLERANCE
from finalist.inference.draws import others_of
from finalist.inference.intervals import certainty, error_estimate, leader, mixture, start_of
from finalist.inference.leads import Leads, ahead_at_least, behind_at_most, leads, mean_widths
from finalist.inference.least_squares import Estimate
from finalist.inference.misspecification import Bias
from finalist.inference.mixtures import Batches
from finalist.problem import Problem
from finalist.strategies import promise_of
from finalist.study.checks import doubts_of, promised
from finalist.study.pulls import Fate
from finalist.study.state import State

#: The confidence of the interval of each arm, all arms and times together.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Standing:
    """How good the arm in front is by intervals that hold for all arms and at all times.

    Where sigma is unknown, it is taken from the residuals.

    Attributes
    ----------
    arm : int
        The winner, or what is recommended, or the survivor with the best estimate.
    within : float or None
        It is at most so far behind the best, with probability at least 1 - delta. None if that is
        not known, and for a winner, of which the tests say more.
    reach : tuple of int, or None
        With a margin: the other candidates that are not shown to be worse than the arm by more,
        with `CONFIDENCE`, the best by the estimate first. None without a margin, and where nothing
        is known.
    """

    arm: int
    within: float | None
    reach: tuple[int, ...] | None


class Leading(NamedTuple):
    """The arm in front of a study that goes on, and how far it is ahead of each other candidate."""

    arm: int
    leads: Leads


def recommended(
    state: State, fit: Estimate, bent: Float[np.ndarray, " K"] | None = None
) -> int | None:
    """Return the winner, or the best of the survivors; None if the rewards tell of none.

    When a budget is spent there is a winner, be the rewards lost or not. Where the model does not
    fit, `bent` are the means by one that bends: who is out by the wrong model is not out by it.
    """
    winner, alive = state.verdict.winner, state.verdict.survivors
    tested = promise_of(state.settings.strategy) == "confidence"
    if winner is not None and (tested or len(state.arms) == 1):
        return winner
    if winner is None and bent is not None:
        candidates = np.flatnonzero(state.arms.candidate)
        return int(candidates[np.argmax(state.problem.sign * bent[candidates])])
    if np.isnan(fit.means()[list(alive)]).all():
        return None
    return leader(fit, state.problem.sign, alive) if winner is None else winner


def figures(state: State, fit: Estimate, arm: int) -> tuple[float | None, float | None]:
    """Return how likely it is by an estimate that another arm is better, and what is certain."""
    if doubts_of(state):
        return None, None
    problem = state.problem
    sign, epsilon, sigma = problem.sign, problem.epsilon, problem.scale
    feigned, error = _feigned(state, fit, arm), None
    if feigned is None:  # how likely a wrong model is right by an estimate has no meaning
        error = error_estimate(fit, arm, sign=sign, sigma=sigma, epsilon=epsilon)
    sure = certainty(
        fit,
        arm,
        sign=sign,
        sigma=sigma,
        start=_start(state),
        epsilon=epsilon,
        bias=feigned,
        bets=_bets(state),
    )
    return error, sure


def widths(state: State, fit: Estimate) -> Float[np.ndarray, " K"]:
    """Return half-widths of intervals for the means, for all arms and times at once."""
    problem, Z = state.problem, fit.arms.coordinates
    found = mean_widths(fit, _start(state), CONFIDENCE, problem.scale, _bets(state))
    if doubts_of(state):
        return np.full(len(Z), np.inf)
    bias = _bias(problem, fit)
    if bias is not None and np.isfinite(found).any():
        found = found + bias.of_arms(np.arange(len(Z)))
    return np.where(_have_level(state.arms), found, np.inf)


def widths_along(
    state: State, fit: Estimate, directions: Float[np.ndarray, "n r"]
) -> Float[np.ndarray, " n"]:
    """Return half-widths for y'phi, for all y and times at once; the y are fixed in advance.

    There are none while an assumption fails, or where means may be off the model.
    """
    problem = state.problem
    none = np.full(len(directions), np.inf)
    if doubts_of(state) or problem.misspecification > 0.0:
        return none
    found = mixture(fit, directions, _start(state), problem.scale, _bets(state), len(directions))
    if found is None:
        return none
    below, above = found.reach(1.0 - CONFIDENCE)
    return np.asarray(np.maximum(below, above))


def leads_of(state: State, fit: Estimate, arm: int | None) -> Leads | None:
    """Return how far an arm is ahead of each other candidate; None if that cannot be told.

    The ends of intervals hold for all candidates and times at once, beside the confidence with
    which a winner is the best. They are NaN where they have no proof.

    A winner that is the best (within epsilon) leads by at least -epsilon. So an interval that
    reaches below that is cut there: all of them still hold wherever they held and the winner is the
    best, with probability at least 1 - delta - (1 - CONFIDENCE), as without the cut. Tests and
    intervals are different arithmetic of the same results; uncut they can seem to disagree.
    """
    problem = state.problem
    if arm is None or not problem.arms.candidate[arm]:
        return None
    doubtful = bool(doubts_of(state)) or problem.misspecification > 0.0
    best = state.verdict.winner == arm and problem.epsilon == 0.0 and problem.top == 1
    won, start = best and promised(state), None if doubtful else _start(state)
    sign, bets = problem.sign, _bets(state)
    found = leads(fit, arm, start, CONFIDENCE, problem.scale, bets, sign=sign, won=won)
    if state.verdict.winner != arm or problem.top > 1 or not promised(state):
        return found
    least = 0.0 - problem.epsilon  # where all of an interval is below it, the two do contradict
    low = np.where(found.high >= least, np.maximum(found.low, least), found.low)
    return Leads(found.estimate, low, found.high)


def leading_of(state: State, fit: Estimate) -> Leading | None:
    """Return the arm in front of a study that goes on, and how far it is ahead of each other.

    Any arm may be in front, so the intervals are those for all pairs. None where nothing is known.
    """
    problem, survivors = state.problem, state.verdict.survivors
    if state.end is not None or problem.top > 1 or np.isnan(fit.means()[list(survivors)]).all():
        return None
    arm = leader(fit, problem.sign, survivors)
    doubtful = bool(doubts_of(state)) or problem.misspecification > 0.0
    start, sign, bets = None if doubtful else _start(state), problem.sign, _bets(state)
    words: dict[str, Any] = {"sign": sign, "won": False, "named": True}
    found = leads(fit, arm, start, CONFIDENCE, problem.scale, bets, **words)
    return Leading(arm, found)


def standing_of(state: State, fit: Estimate, chosen: int | None) -> Standing | None:
    """Return how good the arm in front is, beside what tests promise; None if that is unknown."""
    problem, survivors = state.problem, state.verdict.survivors
    if problem.top > 1 or len(problem.candidates) == 1 or not state.measured or not promised(state):
        return None
    arm = leader(fit, problem.sign, survivors) if chosen is None else chosen
    if np.isnan(fit.means()[arm]):
        return None
    words: dict[str, Any] = {
        "sign": problem.sign,
        "sigma": problem.scale,
        "start": _start(state),
        "bias": _feigned(state, fit, arm),
        "bets": _bets(state),
    }
    within, reach = None, None
    if not state.verdict.decided:
        within = behind_at_most(fit, arm, **words, confidence=1.0 - problem.delta)
    if problem.epsilon > 0.0:
        least = ahead_at_least(fit, arm, **words, confidence=CONFIDENCE)
        others = np.flatnonzero(others_of(fit, arm))
        if not np.isnan(least).all():
            near = others[~(least[others] > problem.epsilon)]
            order = np.argsort(-problem.sign * fit.means()[near], kind="stable")
            reach = tuple(near[order].tolist())
    return Standing(arm, within, reach)


def _bets(state: State) -> Batches | None:
    """Return what bets on single numbers are made of; None if the question allows none.

    There are none where the model may be wrong: what it can feign is known for all pulls together.
    They are left out where pulls were given up after rewards of their batch: its counts may have
    been chosen by these. So is a last batch that was cut short by the decision.
    """
    if state.problem.misspecification > 0.0:
        return None
    found = Batches(state.problem, state.measured[: state.cut])
    return found.left_out() if late_of(state) else found


def late_of(state: State) -> tuple[int, int] | None:
    """Count pulls given up when rewards of their batch were known; with the first such batch."""
    pulls, first = state.pulls, np.full(len(state.issued) + 1, np.inf)
    first[list(state.first_told)] = list(state.first_told.values())
    late = np.flatnonzero((pulls.fate == Fate.MISSING) & (first[pulls.batch] < pulls.told))
    return (len(late), int(pulls.batch[late[0]])) if len(late) else None


def _bias(problem: Problem, fit: Estimate) -> Bias | None:
    """Return what a model that may be wrong can feign in the estimate from all rewards."""
    Z, count = fit.arms.coordinates, fit.statistics.count
    return Bias.of(problem.misspecification, problem.precisions, Z, count, fit.information)


def _feigned(state: State, fit: Estimate, arm: int) -> Float[np.ndarray, " K"] | None:
    """Return how far the difference of an arm and each other may be from a linear model."""
    bias, arms = _bias(state.problem, fit), np.arange(len(state.arms))
    return None if bias is None else bias.of_pairs(np.full(len(arms), arm), arms)


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
