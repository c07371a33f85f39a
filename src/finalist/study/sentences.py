"""What a study says in words: what is certain, what is recommended, what that rests on."""

import math

import numpy as np

from finalist.arms import Arms
from finalist.problem.budget import in_cost, of_budget, pulls_for
from finalist.shapes import Float
from finalist.strategies import guaranteed, promise_of
from finalist.study.check import broken
from finalist.study.checks import better_by_all
from finalist.study.good_enough import nearly_tied
from finalist.study.snapshot import Snapshot
from finalist.text import counted, named, quoted


def counted_arms(arms: Arms) -> str:
    """Say how many arms there are: to measure, and to choose from, if that is not the same.

    Examples
    --------
    >>> duels = Arms([[1.0, -1.0]], names=["a against b"])
    >>> counted_arms(duels), counted_arms(duels.with_candidates(Arms.unstructured(["a", "b"])))
    ('1 candidate', '1 to measure, 2 to choose from')
    """
    if arms.measurable.all() and arms.candidate.all():
        return counted(len(arms), "candidate")
    measured, can_win = int(arms.measurable.sum()), int(arms.candidate.sum())
    return f"{measured:,} to measure, {can_win:,} to choose from"


def sentence(snapshot: Snapshot) -> str:
    """Say what is certain, and when more will be where tests wait for several batches."""
    words = _sentence(snapshot)
    if snapshot.until_test:
        words += f" The next test is after {counted(snapshot.until_test, 'measurement')}."
    if nearly_tied(snapshot):
        words += (
            " They may be nearly tied. A margin (a difference that does not matter to you) or a "
            "budget would end this soon."
        )
    return words


def _sentence(snapshot: Snapshot) -> str:
    known = snapshot.recommendation is not None  # a winner without a guarantee can be estimated
    verdict, names, risk = snapshot.verdict, snapshot.arms.names, f"{sum(snapshot.levels):.3g}"
    if promise_of(snapshot.strategy) == "budget":
        return _doubtful(snapshot) + _budget_sentence(snapshot, known)
    if promise_of(snapshot.strategy) == "zone":
        return _doubtful(snapshot) + _zone_sentence(snapshot)
    if not snapshot.certain:
        return _doubtful(snapshot) + _unproven_sentence(snapshot, known)
    if snapshot.said is not None:
        return snapshot.said
    if verdict.winner is not None:
        return (
            f"{quoted(names[verdict.winner])} is {snapshot.problem.goal.phrase}, after "
            f"{counted(verdict.pulls, 'measurement')}; this is wrong with probability at "
            f"most {risk}."
        )
    top, all_ = snapshot.problem.top, len(snapshot.problem.candidates)
    if len(verdict.survivors) == all_:
        what = "the best" if top == 1 else f"among the {top} best"
        who = "either" if all_ == 2 else f"any of the {all_:,}"
        return _begun(snapshot, f"no candidate is ruled out: {who} may be {what}.")
    sought = "the best candidate is" if top == 1 else f"the {top} best candidates are"
    found = f"{sought} among {_some(snapshot)} ({len(verdict.survivors)} of {all_})"
    return _begun(snapshot, f"{found}; this is wrong with probability at most {risk}.")


def _begun(snapshot: Snapshot, words: str) -> str:
    """Say why it has ended without a winner, or how far it is, and then something."""
    before = _so_far(snapshot)
    return before + (words if before.endswith(": ") else f"{words[0].upper()}{words[1:]}")


def _so_far(snapshot: Snapshot) -> str:
    """Say why it has ended without a winner, or how far it is."""
    pulls, limit = (
        counted(snapshot.verdict.pulls, "measurement"),
        snapshot.problem.max_pulls_per_arm,
    )
    return {
        "stopped": f"Stopped ({snapshot.stopped}) after {pulls}. ",
        "budget": f"The budget, {of_budget(snapshot.problem, snapshot.problem.budget or 0)}, is "
        "used up. "
        if in_cost(snapshot.problem)
        else f"The budget of {counted(snapshot.problem.budget or 0, 'measurement')} is used up. ",
        "exhausted": f"Every candidate has had its {counted(limit or 0, 'measurement')}. ",
    }.get(snapshot.end or "", f"After {pulls}: ")


def _unproven_sentence(snapshot: Snapshot, known: bool) -> str:
    """Say what a strategy has come to without a guarantee, and why there is none."""
    verdict, names = snapshot.verdict, snapshot.arms.names
    if len(snapshot.problem.candidates) == 1:
        return f"{quoted(snapshot.problem.candidates.names[0])} is the only candidate."
    if guaranteed(snapshot.strategy):
        return _uncertain_sentence(snapshot, known)
    what = snapshot.problem.goal.phrase
    if verdict.winner is None:
        found = _begun(snapshot, "the strategy names no winner")
    else:
        found = (
            f"{quoted(names[verdict.winner])} is named {what}, after "
            f"{counted(verdict.pulls, 'measurement')}"
        )
    return f"{found}; this threshold has no proof, so nothing is guaranteed."


def _doubtful(snapshot: Snapshot) -> str:
    """Say why nothing is certain, whatever the strategy promises; this comes first."""
    doubts = "; and ".join(snapshot.doubts)
    return f"Nothing is certain, because {doubts}. " if doubts else ""


def _uncertain_sentence(snapshot: Snapshot, known: bool) -> str:
    """Say what a strategy with a proof has come to where its guarantee does not hold."""
    verdict, pulls = snapshot.verdict, counted(snapshot.verdict.pulls, "measurement")
    if verdict.winner is not None and known:
        who = named([snapshot.arms.names[i] for i in verdict.winners])
        what = "is the best estimate" if len(verdict.winners) == 1 else "are the best estimates"
        return f"{who} {what} after {pulls}."
    left, all_ = len(verdict.survivors), counted(len(snapshot.problem.candidates), "candidate")
    found = f"{left:,} of {all_} {'is' if left == 1 else 'are'} not ruled out."
    if left == len(snapshot.problem.candidates):
        found = "no candidate is ruled out."
    return _begun(snapshot, found)


def _budget_sentence(snapshot: Snapshot, known: bool) -> str:
    """Say what a strategy that keeps a budget has come to; it guarantees nothing."""
    verdict, names, budget = snapshot.verdict, snapshot.arms.names, snapshot.problem.budget
    if len(names) == 1:
        return f"{quoted(names[0])} is the only candidate."
    lost = snapshot.lost
    made = verdict.pulls + lost
    if verdict.winner is not None:
        after = counted(made, "measurement")
        if lost:
            after = f"{counted(verdict.pulls, 'result')} of {after}"
        if not known:
            return f"After {after}, the whole budget, no candidate that is left can be estimated."
        return (
            f"{quoted(names[verdict.winner])} is recommended after {after}, the whole budget; this "
            "strategy guarantees no probability of error."
        )
    stopped = "" if snapshot.stopped is None else f"Stopped ({snapshot.stopped}). "
    without = f", {lost:,} of them without a result," if lost else ""
    verb = "is" if len(verdict.survivors) == 1 else "are"
    return (
        f"{stopped}After {made:,} of {budget:,} measurements{without} {_some(snapshot)} "
        f"{verb} still being compared ({len(verdict.survivors)} of {len(names)} candidates); "
        "nothing is certain, and the winner will be a recommendation without a guarantee."
    )


def _zone_sentence(snapshot: Snapshot) -> str:
    """Say what a strategy with an indifference zone has come to, and what that is worth."""
    verdict, names, problem = snapshot.verdict, snapshot.arms.names, snapshot.problem
    if len(names) == 1:
        return f"{quoted(names[0])} is the only candidate."
    if verdict.winner is None:
        left = f"{len(verdict.survivors)} of {len(names)} candidates are left"
        found, whom = f"{_so_far(snapshot)}{left}", "the winner will be the best"
    else:
        pulls = counted(verdict.pulls, "measurement")
        found, whom = (
            (f"{quoted(names[verdict.winner])} is selected, after {pulls}"),
            "it is the best",
        )
    if snapshot.doubts:
        return f"{found}."
    return (
        f"{found}. If the best candidate leads every other by {problem.epsilon:g} or more, "
        f"{whom} with probability at least {1.0 - sum(snapshot.levels):.3g}; nothing is proven "
        "for smaller leads."
    )


def _some(snapshot: Snapshot) -> str:
    """Name the arms that are left, the first few of many."""
    return named([snapshot.arms.names[i] for i in snapshot.verdict.survivors])


def advice(snapshot: Snapshot) -> str | None:
    """Say what is recommended without a guarantee, and how sure that is."""
    if not _is_open(snapshot):
        return None
    arm, error, sure = snapshot.recommendation, snapshot.error_estimate, snapshot.certainty
    if arm is None:
        return "No recommendation: no candidate that is left can be estimated from the results."
    if snapshot.problem.top > 1:
        return _several(snapshot)
    if _by_bends(snapshot) is not None:
        return f"Recommendation: {quoted(snapshot.arms.names[arm])}, by a model that bends."
    better, other = snapshot.problem.goal.better, _better(snapshot)
    words = f"Recommendation: {quoted(snapshot.arms.names[arm])}."
    if error is not None:
        words += (
            f" Another candidate is {better} with probability {_rounded(error)}: an estimate, not "
            f"a guarantee."
        )
    if other is not None:
        words += f" All results together speak for {quoted(snapshot.arms.names[other])}."
    if sure is not None and sure > 0.0:
        share = min(math.floor(1000.0 * sure), 999) / 10.0
        words += (
            f" With a confidence of at least {share:g} % no candidate is {better}; this bound "
            f"holds whenever you look."
        )
    return words


def _rounded(chance: float | None) -> str:
    """Say a probability that is an estimate: nothing is impossible, and nothing sure.

    Examples
    --------
    >>> _rounded(0.0078), _rounded(1e-9), _rounded(0.9999)
    ('0.0078', 'below 0.001', 'above 0.99')
    """
    if chance is None or 0.001 <= chance <= 0.99:
        return f"{chance or 0.0:.2g}"
    return "below 0.001" if chance < 0.5 else "above 0.99"


def _is_open(snapshot: Snapshot) -> bool:
    """Return whether a study has ended without a winner that is certain."""
    return snapshot.end is not None and not (snapshot.certain and snapshot.verdict.decided)


def _better(snapshot: Snapshot) -> int | None:
    """Return an arm that all rewards together speak for, and not the strategy."""
    if snapshot.certain:
        return None
    arm, error = snapshot.recommendation, snapshot.error_estimate
    return better_by_all(snapshot.problem, snapshot.fit, arm, error)


def _by_bends(snapshot: Snapshot) -> Float[np.ndarray, " K"] | None:
    """Return the means by a model that bends, if they recommend: the straight one does not fit."""
    fails = any(check.kind == "bend" and check.fails for check in snapshot.checks)
    return snapshot.bent.means if fails and snapshot.verdict.winner is None else None


def _several(snapshot: Snapshot) -> str:
    """Name as many arms as are asked for, by their estimates."""
    bent, means, some = _by_bends(snapshot), snapshot.means, snapshot.verdict.survivors
    by = "the estimates of the candidates that are left"
    if bent is not None:
        means, by = bent, "a model that bends"
        some = tuple(np.flatnonzero(snapshot.arms.candidate).tolist())
    known = [i for i in some if not np.isnan(means[i])]
    best = sorted(known, key=lambda i: -snapshot.problem.sign * means[i])[: snapshot.problem.top]
    who = named([snapshot.arms.names[i] for i in best], len(best))
    return f"Recommendation: {who}, by {by}; this is not a guarantee."


def warnings(snapshot: Snapshot) -> list[str]:
    """Say what is not as assumed, and what speaks against a recommendation."""
    # A check that fails takes the guarantee away, where the strategy has one.
    had = guaranteed(snapshot.strategy)
    found = [check.words(had) for check in snapshot.checks]
    if snapshot.history is not None:
        found += snapshot.history.unanswered(snapshot.checks, snapshot.fit)
    if snapshot.late is not None:
        count, first = snapshot.late
        found.append(
            f"{counted(count, 'measurement was', 'measurements were')} given up as missing after "
            f"results of the same batch had come in, first in batch {first}. If that had to do "
            f"with how the batch looked, {broken(had)}."
        )
    found += [
        f"Nothing here is certain: {doubt}. Start a new study, and bring in these results as "
        "earlier measurements."
        for doubt in snapshot.contradictions
    ]
    found += _too_small(snapshot)
    if _is_open(snapshot) and snapshot.recommendation is not None:
        found += _against(snapshot, snapshot.recommendation)
    return found


def _too_small(snapshot: Snapshot) -> list[str]:
    """Warn of a budget that cannot compare all arms."""
    problem = snapshot.problem
    if problem.budget is None:
        return []
    most, rank = pulls_for(problem, problem.budget), problem.arms.rank
    if most >= rank:
        return []
    return [
        f"The budget pays for {counted(most, 'measurement')}, but comparing all candidates takes "
        f"at least {rank}: the recommendation will be the best of those that could be compared. "
        "Raise the budget, leave candidates out, or describe them by fewer columns."
    ]


def _against(snapshot: Snapshot, arm: int) -> list[str]:
    """Warn of what speaks against a recommendation, and of arms that were never in question."""
    names, found, other = snapshot.arms.names, [], _better(snapshot)
    if other is not None:
        found.append(
            f"The strategy recommends {quoted(names[arm])}, but all results together speak for "
            f"{quoted(names[other])}: by the estimate the recommendation is wrong with probability "
            f"{_rounded(snapshot.error_estimate)}. Measure both again, or take "
            f"{quoted(names[other])}."
        )
    left_out = [names[i] for i in np.flatnonzero(np.isnan(snapshot.means)) if i != arm]
    if left_out:
        means = "its mean is" if len(left_out) == 1 else "their means are"
        found.append(
            f"The recommendation leaves out {named(left_out)}: too many results were lost or never "
            f"measured, so {means} unknown."
        )
    return found
