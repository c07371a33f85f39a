"""What a study says in words: what is certain, what is recommended, what that rests on."""

import math

import numpy as np

from finalist.noise import Bernoulli, Gaussian
from finalist.strategies import guaranteed, promise_of
from finalist.study.pulls import Fate
from finalist.study.state import State


def sentence(state: State, *, known: bool = True) -> str:
    """Say what is certain; `known` tells whether a winner without a guarantee can be estimated."""
    verdict, names, risk = state.verdict, state.arms.names, f"{sum(state.levels):.3g}"
    if promise_of(state.settings.strategy) == "budget":
        return _budget_sentence(state, known)
    if not guaranteed(state.settings.strategy):
        return _unproven_sentence(state)
    words = getattr(state.run, "words", None)
    if (verdict.decided or state.end is None) and words is not None and state.stage == 0:
        return str(words())
    if verdict.winner is not None:
        epsilon = state.problem.epsilon
        what = "the best" if epsilon == 0 else f"within {epsilon:g} of the best"
        return (
            f"{names[verdict.winner]} is {what}, after {verdict.pulls:,} pulls; this is wrong with "
            f"probability at most {risk}."
        )
    return (
        f"{_so_far(state)}The best arm is among {_some(state)} ({len(verdict.survivors)} of "
        f"{len(names)}); this is wrong with probability at most {risk}."
    )


def _so_far(state: State) -> str:
    """Say why it has ended without a winner, or how far it is."""
    pulls = state.verdict.pulls
    return {
        "stopped": f"Stopped ({state.stopped}) after {pulls:,} pulls. ",
        "budget": f"The budget of {state.settings.budget:,} pulls is used up. "
        if state.settings.budget is not None
        else "",
        "exhausted": f"Every arm has had its {state.problem.most_pulls} pulls. ",
    }.get(state.end or "", f"After {pulls:,} pulls: ")


def _unproven_sentence(state: State) -> str:
    """Say what a strategy has come to that stops by a threshold without a proof."""
    verdict, names = state.verdict, state.arms.names
    if len(names) == 1:
        return f"{names[0]} is the only arm."
    if verdict.winner is None:
        found = f"{_so_far(state)}The strategy names no winner"
    else:
        epsilon = state.problem.epsilon
        what = "the best" if epsilon == 0 else f"within {epsilon:g} of the best"
        found = f"{names[verdict.winner]} is named {what}, after {verdict.pulls:,} pulls"
    return f"{found}; this threshold has no proof, so nothing is guaranteed."


def _budget_sentence(state: State, known: bool) -> str:
    """Say what a strategy that keeps a budget has come to; it guarantees nothing."""
    verdict, names, budget = state.verdict, state.arms.names, state.settings.budget
    if len(names) == 1:
        return f"{names[0]} is the only arm."
    lost = int(state.lost.sum())
    made = verdict.pulls + lost
    if verdict.winner is not None:
        after = f"{verdict.pulls:,} rewards of {made:,} pulls" if lost else f"{made:,} pulls"
        if not known:
            return f"After {after}, the whole budget, no arm that is left can be estimated."
        return (
            f"{names[verdict.winner]} is recommended after {after}, the whole budget; this "
            "strategy guarantees no probability of error."
        )
    stopped = "" if state.stopped is None else f"Stopped ({state.stopped}). "
    without = f", {lost:,} of them without a reward," if lost else ""
    return (
        f"{stopped}After {made:,} of {budget:,} pulls{without} {_some(state)} are compared "
        f"({len(verdict.survivors)} of {len(names)} arms); nothing is certain, and the winner will "
        "be a recommendation without a guarantee."
    )


def _some(state: State) -> str:
    """Name the arms that are left, the first few of many."""
    alive = [state.arms.names[i] for i in state.verdict.survivors]
    return ", ".join(alive[:5]) + (f" and {len(alive) - 5} more" if len(alive) > 5 else "")


def advice(
    state: State, arm: int | None, error: float | None, sure: float | None, other: int | None
) -> str:
    """Say what is recommended without a guarantee, and how sure that is.

    `other` is an arm that all rewards together speak for (`checks.better_by_all`).
    """
    if arm is None:
        return "No recommendation: no arm that is left can be estimated from the rewards."
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


def assumptions(state: State) -> list[str]:
    """Say what the guarantee rests on."""
    noise = state.problem.noise
    if isinstance(noise, Bernoulli):
        what = "rewards are 0 or 1"
    elif isinstance(noise, Gaussian):
        size = "of one unknown size in a batch" if noise.sigma is None else f"of size {noise.sigma}"
        what = f"the noise is Gaussian, {size}"
    else:
        what = f"the noise is sub-Gaussian of size {noise.sigma}"
    found = [
        f"{what}, independent between pulls",
        "the expected reward is linear in the features"
        if state.arms.rank < len(state.arms)
        else "nothing about how the arms are related",
        "no reward was left out, measured again or changed because of its value",
    ]
    missing = int(np.count_nonzero(state.pulls.fate == Fate.MISSING))
    void = int(np.count_nonzero(state.pulls.fate == Fate.VOID))
    if missing or void:
        found.append(f"{void} void and {missing} missing pulls were lost whatever their value")
    if len(state.levels) > 1:
        found.append(
            f"the arms changed {state.stage} times; the levels {_sum(state.levels)} add up"
        )
    if noise.sigma is None:
        found.append("intervals take sigma from the residuals, at the upper end of what is likely")
    if state.history_pulls:
        found.append(f"{state.history_pulls} earlier measurements steer the design, no test")
    return found


def _sum(levels: list[float]) -> str:
    return " + ".join(f"{level:.3g}" for level in levels)
