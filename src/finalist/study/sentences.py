"""What a study says in words: what is certain, what is recommended, what that rests on."""

import math

import numpy as np

from finalist.arms import Arms
from finalist.strategies import guaranteed, promise_of
from finalist.study.checks import checks_of
from finalist.study.pulls import Fate
from finalist.study.state import State
from finalist.text import counted, first_few


def promised(state: State) -> bool:
    """Return whether what was decided is wrong with probability at most delta.

    This is the one place that says so: without it nothing is called certain anywhere.
    """
    return guaranteed(state.settings.strategy) and not doubts_of(state)


def doubts_of(state: State) -> list[str]:
    """Return why nothing is certain, whatever was decided: checks that fail come after the log."""
    return [*state.doubts, *(check.reason for check in checks_of(state) if check.fails)]


def risk_of(state: State) -> float | None:
    """Return the probability with which the winner is wrong, at most; None without a guarantee."""
    return sum(state.levels) if promised(state) else None


def decided(state: State) -> str:
    """Say what a study that is decided has: a winner, or less than that."""
    return "a winner" if promised(state) else "a recommendation"


def counted_arms(arms: Arms) -> str:
    """Say how many arms there are: to measure, and to choose from, if that is not the same.

    Examples
    --------
    >>> duels = Arms([[1.0, -1.0]], names=["a against b"])
    >>> counted_arms(duels), counted_arms(duels.with_candidates(Arms.unstructured(["a", "b"])))
    ('1 arm', '1 arm to measure, 2 candidates')
    """
    if arms.measurable.all() and arms.candidate.all():
        return counted(len(arms), "arm")
    measured, can_win = int(arms.measurable.sum()), int(arms.candidate.sum())
    return f"{counted(measured, 'arm')} to measure, {counted(can_win, 'candidate')}"


def sentence(state: State, *, known: bool = True) -> str:
    """Say what is certain; `known` tells whether a winner without a guarantee can be estimated."""
    verdict, names, risk = state.verdict, state.arms.names, f"{sum(state.levels):.3g}"
    if promise_of(state.settings.strategy) == "budget":
        return _doubtful(state) + _budget_sentence(state, known)
    if not promised(state):
        return _doubtful(state) + _unproven_sentence(state, known)
    words = getattr(state.run, "words", None)
    if (verdict.decided or state.end is None) and words is not None and state.stage == 0:
        return str(words())
    if verdict.winner is not None:
        epsilon = state.problem.epsilon
        what = "the best" if epsilon == 0 else f"within {epsilon:g} of the best"
        return (
            f"{names[verdict.winner]} is {what}, after {counted(verdict.pulls, 'pull')}; this is "
            f"wrong with probability at most {risk}."
        )
    top = state.problem.top
    sought = "The best arm is" if top == 1 else f"The {top} best arms are"
    return (
        f"{_so_far(state)}{sought} among {_some(state)} ({len(verdict.survivors)} of "
        f"{len(state.problem.candidates)}); this is wrong with probability at most {risk}."
    )


def _so_far(state: State) -> str:
    """Say why it has ended without a winner, or how far it is."""
    pulls = counted(state.verdict.pulls, "pull")
    return {
        "stopped": f"Stopped ({state.stopped}) after {pulls}. ",
        "budget": f"The budget of {counted(state.settings.budget or 0, 'pull')} is used up. ",
        "exhausted": f"Every arm has had its {counted(state.problem.most_pulls or 0, 'pull')}. ",
    }.get(state.end or "", f"After {pulls}: ")


def _unproven_sentence(state: State, known: bool) -> str:
    """Say what a strategy has come to without a guarantee, and why there is none."""
    verdict, names = state.verdict, state.arms.names
    if len(state.problem.candidates) == 1:
        return f"{state.problem.candidates.names[0]} is the only arm."
    if guaranteed(state.settings.strategy):
        return _uncertain_sentence(state, known)
    epsilon = state.problem.epsilon
    what = "the best" if epsilon == 0 else f"within {epsilon:g} of the best"
    if verdict.winner is None:
        found = f"{_so_far(state)}The strategy names no winner"
    else:
        found = f"{names[verdict.winner]} is named {what}, after {counted(verdict.pulls, 'pull')}"
    return f"{found}; this threshold has no proof, so nothing is guaranteed."


def _doubtful(state: State) -> str:
    """Say why nothing is certain, whatever the strategy promises; this comes first."""
    doubts = doubts_of(state)
    return f"Nothing is certain, because {'; and '.join(doubts)}. " if doubts else ""


def _uncertain_sentence(state: State, known: bool) -> str:
    """Say what a strategy with a proof has come to where its guarantee does not hold."""
    verdict, pulls = state.verdict, counted(state.verdict.pulls, "pull")
    if verdict.winner is not None and known:
        who = first_few([state.arms.names[i] for i in verdict.winners])
        what = "is the best estimate" if len(verdict.winners) == 1 else "are the best estimates"
        return f"{who} {what} after {pulls}."
    left = f"{len(verdict.survivors)} of {counted(len(state.problem.candidates), 'arm')}"
    if state.end is None:
        return f"After {pulls} the test has left {left}."
    return f"{_so_far(state)}The test has left {left}."


def _budget_sentence(state: State, known: bool) -> str:
    """Say what a strategy that keeps a budget has come to; it guarantees nothing."""
    verdict, names, budget = state.verdict, state.arms.names, state.settings.budget
    if len(names) == 1:
        return f"{names[0]} is the only arm."
    lost = int(state.lost.sum())
    made = verdict.pulls + lost
    if verdict.winner is not None:
        after = counted(made, "pull")
        if lost:
            after = f"{counted(verdict.pulls, 'reward')} of {after}"
        if not known:
            return f"After {after}, the whole budget, no arm that is left can be estimated."
        return (
            f"{names[verdict.winner]} is recommended after {after}, the whole budget; this "
            "strategy guarantees no probability of error."
        )
    stopped = "" if state.stopped is None else f"Stopped ({state.stopped}). "
    without = f", {lost:,} of them without a reward," if lost else ""
    verb = "is" if len(verdict.survivors) == 1 else "are"
    return (
        f"{stopped}After {made:,} of {budget:,} pulls{without} {_some(state)} {verb} compared "
        f"({len(verdict.survivors)} of {len(names)} arms); nothing is certain, and the winner will "
        "be a recommendation without a guarantee."
    )


def _some(state: State) -> str:
    """Name the arms that are left, the first few of many."""
    return first_few([state.arms.names[i] for i in state.verdict.survivors])


def advice(
    state: State, arm: int | None, error: float | None, sure: float | None, other: int | None
) -> str:
    """Say what is recommended without a guarantee, and how sure that is.

    `other` is an arm that all rewards together speak for (`checks.better_by_all`).
    """
    if arm is None:
        return "No recommendation: no arm that is left can be estimated from the rewards."
    if state.problem.top > 1:
        return _several(state)
    epsilon = state.problem.epsilon
    better = "better" if epsilon == 0 else f"better by more than {epsilon:g}"
    words = f"Recommendation: {state.arms.names[arm]}."
    if error is not None:
        words += (
            f" Another arm is {better} with probability {error:.2g}: an estimate under a flat "
            "prior, not a guarantee."
        )
    if other is not None:
        words += f" All rewards together speak for {state.arms.names[other]}."
    if sure is not None and sure > 0.0:
        share = min(math.floor(1000.0 * sure), 999) / 10.0
        words += f" No arm is {better}, with a confidence of at least {share:g} % (log-det bound)."
    return words


def _several(state: State) -> str:
    """Name as many arms as are asked for, by their estimates."""
    means = state.problem.sign * state.pooled.estimate().means()
    known = [i for i in state.verdict.survivors if not np.isnan(means[i])]
    best = sorted(known, key=lambda i: -means[i])[: state.problem.top]
    return (
        f"Recommendation: {', '.join(state.arms.names[i] for i in best)}, by the estimates of the "
        "arms that are left; this is not a guarantee."
    )


def assumptions(state: State) -> list[str]:
    """Say what the guarantee rests on."""
    what = state.problem.noise.assumption(_size(state))
    found = [
        f"{what}, independent between pulls",
        _model(state),
        "no reward was left out, measured again or changed because of its value",
    ]
    missing = int(np.count_nonzero(state.pulls.fate == Fate.MISSING))
    void = int(np.count_nonzero(state.pulls.fate == Fate.VOID))
    if missing or void:
        found.append(
            f"1 {'void' if void else 'missing'} pull was lost whatever its value"
            if void + missing == 1
            else f"{void} void and {missing} missing pulls were lost whatever their value"
        )
    if len(state.levels) > 1:
        often = counted(state.stage, "time")
        found.append(f"the arms changed {often}; the levels {_sum(state.levels)} add up")
    if state.problem.noise.sigma is None:
        found.append("intervals take sigma from the residuals, at the upper end of what is likely")
    if state.history_pulls:
        earlier = counted(state.history_pulls, "earlier measurement")
        verb = "steers" if state.history_pulls == 1 else "steer"
        found.append(f"{earlier} {verb} the design, no test")
    if state.fork is not None and guaranteed(state.settings.strategy):
        found.append(
            f"this is a fork of {state.fork[0]} from before batch {state.fork[1]}: each of the two "
            "is wrong with its own probability, and these add up if both are looked at, or if the "
            "fork was made because of rewards"
        )
    return found


def _size(state: State) -> str:
    """Describe a known sigma."""
    sigma = state.problem.noise.sigma
    if isinstance(sigma, tuple):
        measured = state.problem.sigmas[state.arms.measurable]  # others have none
        low, high = measured.min(), measured.max()
        return f"of a size that is given for each arm, {low:.3g} to {high:.3g}"
    return f"of size {sigma}"


def _model(state: State) -> str:
    """Say what is assumed of the means."""
    problem, arms = state.problem, state.arms
    linear = "linear in the features"
    if problem.misspecification > 0:
        linear = f"within {problem.misspecification:g} of a function that is {linear}"
    what = f"the expected reward is {linear}"
    if arms.rank == len(arms) and arms.measurable.all():
        what = "nothing about how the arms are related"
    if problem.batch_intercept:
        what += ", and all rewards of a batch may share a constant of their own"
    if not arms.measurable.all():
        what += f"; {counted(int((~arms.measurable).sum()), 'arm')} cannot be measured"
    return what


def _sum(levels: list[float]) -> str:
    return " + ".join(f"{level:.3g}" for level in levels)
