"""What the rest of a budget will probably bring: chances by the results so far, and no promise.

Parameters are drawn from what the results leave possible (`inference.belief`), and for each of them
the estimates at the end, as if the measurements that are left were shared as they would be planned
now. A study plans anew later, and may stop early: at the end it is a little better than this says.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float, Int

from finalist.inference.belief import Belief
from finalist.inference.intervals import leaders
from finalist.inference.least_squares import Estimate, weighted_rows
from finalist.problem import Problem
from finalist.problem.budget import prices_of
from finalist.strategies import promise_of
from finalist.strategies.abilities import Rationing
from finalist.study.checks import doubts_of
from finalist.study.state import State
from finalist.text import counted, named

#: Draws of the parameter, fewer of them where all draws of all arms would be more than this.
DRAWS, MAX_WORK = 2000, 5_000_000
#: A difference is stated for which the chance at the end is at least so large.
NEARLY = 0.95


@dataclass(frozen=True, eq=False)
class Outlook:
    """How far behind the best the choice may be, by draws: now, and at the end of the budget.

    Attributes
    ----------
    arms : tuple of int
        What would be chosen now.
    to_come : int
        Results that are still to come, of the whole budget.
    epsilon : float
        A choice that is so far behind the best is right.
    now : (n,) array
        By how much another arm is better than the choice now; 0 where it is the best.
    at_end : (n,) array or None
        The same for the choice at the end. None at the end, and for strategies that do not choose
        by all results.
    """

    arms: tuple[int, ...]
    to_come: int
    epsilon: float
    now: Float[np.ndarray, " n"] = field(repr=False)
    at_end: Float[np.ndarray, " n"] | None = field(repr=False)

    def chances(self, difference: float) -> tuple[float, float | None]:
        """Return the chances to be within a difference of the best, now and at the end."""
        now = float((self.now <= difference).mean())
        return now, None if self.at_end is None else float((self.at_end <= difference).mean())

    @property
    def usual(self) -> float | None:
        """A round difference within which the choice at the end probably is; None if it is 0."""
        behind = self.now if self.at_end is None else self.at_end
        least = float(np.quantile(behind, NEARLY, method="higher"))
        if least <= self.epsilon:
            return None
        start = int(np.floor(np.log10(least)))
        return next(one for one in _round(start) if one >= least)


def _round(start: int) -> tuple[float, ...]:
    return tuple(float(f"{m}e{e}") for e in (start, start + 1) for m in (1, 2, 5))


def outlook_of(state: State, fit: Estimate) -> Outlook | None:
    """Return the outlook of a study with a budget; None where nothing is known, or all is.

    There is none after a decision with a guarantee, while an assumption fails, and where the model
    may be wrong: how likely a wrong model is right has no meaning.
    """
    problem, survivors = state.problem, state.verdict.survivors
    if problem.budget is None or problem.misspecification > 0.0 or doubts_of(state):
        return None
    budgeted = promise_of(state.settings.strategy) == "budget"
    if (state.verdict.decided and not budgeted) or len(problem.candidates) <= problem.top:
        return None
    if fit.information.rank < fit.dimension:
        return None
    made = state.pooled.statistics.count + state.lost
    left = max(problem.budget - float(made @ prices_of(problem)), 0.0)
    chosen = state.verdict.winners or leaders(fit, problem.sign, survivors, problem.top)
    more = None
    if left > 0 and state.end is None:
        more = _pulls_to_come(state, fit, left)
    found = foresee(problem, fit, chosen, survivors, None if budgeted else more)
    to_come = 0 if more is None else round(float(more.sum()))
    return None if found is None else replace(found, to_come=to_come)


def _pulls_to_come(state: State, fit: Estimate, left: float) -> Float[np.ndarray, " K"]:
    """Return how often each arm would be measured; shared as so far, if nobody plans it."""
    run, made = state.run, fit.statistics.count
    if state.replay.follows and isinstance(run, Rationing):
        return run.rest(fit, left)
    return np.asarray(left * made / (made @ prices_of(state.problem)))


def foresee(
    problem: Problem,
    fit: Estimate,
    chosen: Sequence[int],
    survivors: Sequence[int],
    more: Float[np.ndarray, " K"] | None,
) -> Outlook | None:
    """Return an outlook; None where the noise is not known.

    Parameters
    ----------
    fit : Estimate
        From all results so far.
    chosen : sequence of int
        What would be chosen now.
    survivors : sequence of int
        The arms that can be chosen at the end.
    more : (K,) array or None
        How often each arm will be measured until then; None if this is the end.
    """
    belief = Belief.of(fit, problem.scale)
    if belief is None:
        return None
    rng, candidates = np.random.default_rng(0), np.flatnonzero(fit.arms.candidate)
    drawn, factor = belief.draw(min(max(MAX_WORK // len(candidates), 200), DRAWS), rng)
    axes = problem.sign * belief.sigma * belief.axes
    means = drawn @ axes[candidates].T
    place = np.full(len(fit.arms), -1)
    place[candidates] = np.arange(len(candidates))
    now, at_end = behind(means, np.tile(place[list(chosen)], (len(drawn), 1))), None
    if more is not None:
        W = weighted_rows(fit.arms.coordinates, problem.precisions)
        estimates = belief.estimates_at_end(drawn, factor, (W.T * more) @ W, rng)
        estimates = estimates @ axes[list(survivors)].T
        best = np.argpartition(-estimates, problem.top - 1, axis=1)[:, : problem.top]
        at_end = behind(means, place[np.array(survivors)][best])
    to_come = 0 if more is None else round(float(more.sum()))
    return Outlook(tuple(chosen), to_come, problem.epsilon, now, at_end)


def behind(
    means: Float[np.ndarray, "n C"], chosen: Int[np.ndarray, "n m"] | Sequence[Sequence[int]]
) -> Float[np.ndarray, " n"]:
    """Return how much better the best arm that is not chosen is than the worst that is, or 0.

    Examples
    --------
    >>> behind(np.array([[1.0, 0.7, 0.2], [1.0, 1.5, 0.2]]), np.array([[0], [0]]))
    array([0. , 0.5])
    """
    rows, taken = np.arange(len(means))[:, None], np.asarray(chosen)
    worst = means[rows, taken].min(axis=1)
    others = means.copy()
    others[rows, taken] = -np.inf
    return np.asarray(np.maximum(others.max(axis=1) - worst, 0.0))


@dataclass(frozen=True)
class Chances:
    """What the choice is worth by an estimate, now and at the end of the budget.

    Attributes
    ----------
    right, right_at_end : float, float or None
        The chance that the choice is right: the best, or within epsilon of it. None at the end of
        the budget, or where that is not estimated.
    difference : float or None
        Stated by the user; or a round number within which of the best the choice at the end is with
        a chance of 95 % or more.
    near, near_at_end : float or None
        The chance to be within that difference of the best.
    to_come : int
        Results still to come, of the whole budget.
    """

    right: float
    right_at_end: float | None
    difference: float | None
    near: float | None
    near_at_end: float | None
    to_come: int
    words: str


def chances(
    outlook: Outlook,
    names: Sequence[str],
    difference: float | None = None,
    *,
    ended: bool = False,
    error: float | None = None,
) -> Chances:
    """Return the chances of an outlook with their words.

    Parameters
    ----------
    names : sequence of str
        The names of all arms.
    difference : float, optional
        Of which it speaks.
    ended : bool
        Whether there is a recommendation; `error` is what is said of it elsewhere.

    Examples
    --------
    >>> some = Outlook((0,), 40, 0.0, np.array([0.0, 0.3, 0.3, 0.6]), np.array([0.0, 0, 0, 0.3]))
    >>> chances(some, ["a", "b"], 0.4).words
    'If you chose now, a would be right with a chance of about 25 %, and within 0.4 of the best ...'
    """
    stated = outlook.usual if difference is None else difference
    right, later = outlook.chances(outlook.epsilon)
    right = right if error is None else 1.0 - error
    near, near_later = (None, None) if stated is None else outlook.chances(stated)

    def said(chance: float, close: float | None) -> str:
        words = f"with a chance of {percent(chance)}"
        if close is None:
            return words
        return f"{words}, and within {stated:g} of the best with {percent(close)}"

    who = named([names[i] for i in outlook.arms])
    if ended:
        words = f"By this estimate the recommendation is right {said(right, near)}."
    else:
        words = f"If you chose now, {who} would be right {said(right, near)}."
        if later is not None:
            words += (
                f" At the end of the budget, {counted(outlook.to_come, 'result')} from here, the "
                f"choice will be right {said(later, near_later)}."
            )
        words += " These are estimates from the results so far, not a guarantee."
    return Chances(right, later, stated, near, near_later, outlook.to_come, words)


def percent(chance: float) -> str:
    """Say how large a chance is that was estimated by draws.

    Examples
    --------
    >>> percent(0.871), percent(0.9999), percent(0.0001)
    ('about 87 %', 'more than 99 %', 'less than 1 %')
    """
    if chance > 0.99:
        return "more than 99 %"
    return f"about {100.0 * chance:.0f} %" if chance >= 0.01 else "less than 1 %"
