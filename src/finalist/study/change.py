"""A study's life between batches: other arms, a stop, a remark."""

import math
from collections.abc import Sequence

import numpy as np

from finalist.arms import Arms
from finalist.errors import ConflictError, StudyError
from finalist.problem import PerArm, Problem
from finalist.problem.budget import of_budget
from finalist.problem.values import checked_limit
from finalist.shapes import Int
from finalist.strategies import Batch, promise_of
from finalist.strategies.abilities import Rationing
from finalist.study.checks import promised, risk_of
from finalist.study.events import until_end
from finalist.study.log import Log
from finalist.study.replay import changeable
from finalist.study.rules import check_text
from finalist.study.settings import changed_problem, roles
from finalist.study.state import State
from finalist.study.storage.writer import Writer
from finalist.study.tables import arms_table, given_body, subset, union
from finalist.text import counted


def withdraw(log: Log, names: Sequence[str]) -> str:
    """Go on without some arms, with all tests anew; return what this means for delta."""
    with log.writing() as (writer, now):
        require_between(now)
        out = {now.arms.index(name) for name in names}
        kept = np.array([i for i in range(len(now.arms)) if i not in out], dtype=np.int64)
        if len(out) == 0 or len(kept) < 2:
            raise StudyError("withdraw at least one candidate, and leave two or more.")
        return _change_arms(log, writer, now, subset(now.arms, kept), kept, afresh=True)


def add(log: Log, arms: Arms, *, sigma: PerArm | None, cost: PerArm | None) -> str:
    """Go on with more arms; return what this means for delta."""
    with log.writing() as (writer, now):
        require_between(now)
        both, kept = union(now.arms, arms)
        return _change_arms(log, writer, now, both, kept, afresh=False, sigma=sigma, cost=cost)


def require_between(now: State) -> None:
    """Refuse to change arms while a batch is open, or after the decision."""
    if now.open is not None:
        raise ConflictError(
            f"batch {now.open.number} is open; the candidates can change when it is complete."
        )
    left = until_end(now)
    if left > 0:
        raise ConflictError(
            f"the test under way needs {counted(left, 'more measurement')}; the candidates "
            f"can change after "
            f"that. Ask for them: ask(size={left})."
        )
    if now.verdict.decided:
        raise ConflictError(
            f"the study has {_decided(now)}; create a new one for another question."
        )


def _decided(now: State) -> str:
    """Say what a study that is decided has: a winner, or less than that."""
    return "a winner" if promised(now) else "a recommendation"


def _change_arms(
    log: Log,
    writer: Writer,
    now: State,
    arms: Arms,
    kept: Int[np.ndarray, " n"],
    *,
    afresh: bool,
    sigma: PerArm | None = None,
    cost: PerArm | None = None,
) -> str:
    """Write down that the study goes on with other arms; return what this means for delta.

    New arms need a sigma and a cost of their own where those differ between arms.
    """
    stage, delta = now.stage + 1, now.settings.problem.delta
    level = delta / 2**stage
    body = {"stage": stage, "kept": kept.tolist(), "level": level, "afresh": afresh} | {
        name: value for name, value in roles(arms).items() if value is not None
    }
    body["given"] = given_body(arms)
    for name, old, new in (
        ("sigma", now.problem.noise.sigma, sigma),
        ("cost", now.problem.cost, cost),
    ):
        if isinstance(old, tuple):
            body[name] = _of_new(name, old, new, kept)
        elif new is not None:
            raise StudyError(
                f"{name} is given for the new candidates, and this study has one {name} for all."
            )
    problem = changed_problem(now.problem, arms, body)
    changeable(now.run).changed(problem, kept, level, afresh=afresh)  # or refuse
    writer.add_arms(log.row.id, stage, *arms_table(arms))
    log.append(writer, now, "changed", body)
    words = (
        f"{'All candidates are' if afresh else 'The new candidates are'} tested from here "
        f"on at the level "
        f"{level:.3g}. The candidates have changed {counted(stage, 'time')}"
    )
    risk = risk_of(now)
    if risk is None:
        return f"{words}, and nothing is certain."
    return f"{words}: a winner is now wrong with probability at most {risk:.3g}, not {delta:.3g}."


def _of_new(
    name: str, old: tuple[float, ...], new: PerArm | None, kept: Int[np.ndarray, " n"]
) -> list[float]:
    """Return the value of each arm: that which it had, or the one given for it."""
    values, added = np.array(old)[kept], kept < 0
    count = int(added.sum())
    if count:
        try:
            given = np.atleast_1d(np.asarray(np.nan if new is None else new, dtype=float))
        except (TypeError, ValueError):
            given = np.array([np.nan])
        if given.shape not in ((1,), (count,)) or not (given > 0).all():
            each = "the new candidate" if count == 1 else f"each of the {count} new candidates"
            raise StudyError(
                f"{name} differs between the candidates of this study; give one positive "
                f"{name} for "
                f"{each}, {name}=[...]."
            )
        values[added] = given
    return [float(value) for value in values]


def set_budget(log: Log, budget: int | None) -> str:
    """Write down another budget, None for none; return what this means.

    What is measured or handed out stays, so a budget below that is refused.
    """
    limit = checked_limit("budget", budget)
    with log.writing() as (writer, now):
        if now.verdict.decided:
            raise ConflictError(
                f"the study has {_decided(now)}; there is nothing left to spend a budget on."
            )
        name = now.settings.strategy.name
        if promise_of(now.settings.strategy) == "budget":
            raise StudyError(
                f"strategy {name!r} divides its budget before the first measurement, so "
                f"this cannot "
                "change. Start a new study with these results as earlier measurements."
            )
        problem, old, used = now.problem, now.problem.budget, now.pulls.spent
        if limit is not None and limit < used:
            raise StudyError(
                f"budget is {limit}; measured or handed out already: {of_budget(problem, used)}. "
                f"With {math.ceil(used)} the study ends when these measurements have their "
                f"results; or "
                "stop it."
            )
        if limit == old:
            return f"{_budget(problem, limit)}, as before."
        _require_tested(now)
        before = _budget(problem, old)
        text = f"{_budget(problem, limit)}. Before, {before[0].lower()}{before[1:]}."
        log.append(writer, now, "note", {"text": text, "budget": limit, "was": old})
        left = "" if now.left is None else f" Left: {of_budget(problem, now.left)}."
        return f"{text}{left} {_kept(now)}"


def _require_tested(now: State) -> None:
    """Refuse another budget while results of a pilot are seen that are still to be tested."""
    run, batch = now.run, now.open
    if not now.replay.follows or not isinstance(run, Rationing) or len(now.pulls) == 0:
        return
    issued = (
        None if batch is None else Batch(now.pulls.counts(batch.number, len(now.arms)), batch.note)
    )
    if run.waits(issued):
        first = "tell the results of the open batch, then " if batch is not None else ""
        raise ConflictError(
            "the first results are still to be tested, and a budget that is chosen by them "
            f"would spoil the test. The budget can change as soon as that test is planned: {first}"
            "ask for the next batch."
        )


def _budget(problem: Problem, budget: int | None) -> str:
    """Say what the budget is, as the beginning of a sentence."""
    return "There is no budget" if budget is None else f"The budget is {of_budget(problem, budget)}"


def _kept(now: State) -> str:
    """Say what another budget means for what is promised."""
    risk = risk_of(now)
    if risk is None:
        return "Nothing is guaranteed, as before."
    return (
        f"The risk stays at most {risk:.3g}: evidence and intervals hold at all times, whenever "
        "and for whatever reason a budget changes. What is measured next is planned anew."
    )


def mark(log: Log, stopped: str | None) -> None:
    """Write down that a study is stopped, for this reason, or goes on (None)."""
    if stopped is not None:
        check_text("reason", stopped)
    with log.writing() as (writer, now):
        if now.verdict.decided:
            raise ConflictError(f"the study has {_decided(now)}; it cannot be stopped or resumed.")
        if stopped is None and now.stopped is None:
            raise ConflictError("the study was not stopped, so there is nothing to resume.")
        log.append(writer, now, "decided", {"stopped": stopped})


def note(log: Log, text: str) -> None:
    """Write down a remark."""
    check_text("note", text)
    with log.writing() as (writer, now):
        log.append(writer, now, "note", {"text": text})
