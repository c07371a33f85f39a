"""What may be asked and told: pure functions of the state of a study."""

import math
from typing import cast

import numpy as np

from finalist.errors import (
    ConflictError,
    NotNeededError,
    RewardError,
    StudyError,
    UnknownPullError,
)
from finalist.files import printable
from finalist.problem.budget import in_cost, prices_of
from finalist.shapes import Bool, Int
from finalist.strategies import Batch as Issuing
from finalist.strategies import block_size
from finalist.strategies.abilities import Sized
from finalist.strategies.affordable import affordable
from finalist.study.batch import AskState, Batch, named_pulls, open_batch
from finalist.study.pulls import Fate
from finalist.study.results import Results
from finalist.study.state import State
from finalist.text import named, show

#: Characters of a name, a note or a reason.
MAX_TEXT = 10_000


def check_name(name: object) -> None:
    """Reject a study name that is hard to type again."""
    check_text("name", name)
    if str(name) != str(name).strip():
        raise StudyError(f"name is {name!r}; leave out the space around it.")


def check_text(what: str, text: object) -> None:
    """Reject anything but a non-empty string that can be stored."""
    if not isinstance(text, str) or not text.strip():
        raise StudyError(f"{what} is {text!r}; it must be a non-empty string.")
    if len(text) > MAX_TEXT or "\0" in text:
        raise StudyError(
            f"{what} is {printable(text, 40)!r}; it may have at most {MAX_TEXT} characters, none "
            "of them null."
        )


def check_size(size: object) -> None:
    """Reject a size that is not a positive integer."""
    if size is None:
        return
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise StudyError(f"size is {show(size)}; it is a number of measurements, 1 or more.")


# ---- asking ------------------------------------------------------------------------------


def next_batch(state: State, size: int | None, worker: str | None) -> Issuing | None:
    """Return the next batch, cut to what is left of a budget; None if that pays for no pull.

    When several workers share a batch it is whole parts of what one of them can measure, one for
    each who has asked so far.
    """
    run = state.run
    block = block_size(run, size, whole=worker is not None)
    if worker is not None and size is not None and block is not None:
        block = max(block, size * len({*state.workers, worker}))
    if state.left is None:
        return run.next(block)
    if block is None and isinstance(run, Sized):
        block = run.own_size
    if block is not None and not in_cost(state.problem):
        return run.next(min(block, int(state.left)))
    return affordable(run, block, state.left, prices_of(state.problem))


def open_count(state: State) -> int:
    """Return how many pulls of the open batch are without a reward."""
    return 0 if state.open is None else len(state.pulls.open(state.open.number))


def of_worker(state: State, worker: str) -> Int[np.ndarray, " n"]:
    """Return the open pulls of a worker."""
    assert state.open is not None
    pulls = state.pulls.open(state.open.number)
    if worker not in state.workers:
        return pulls[:0]
    mine = state.pulls.worker[pulls - 1] == state.workers.index(worker)
    return np.asarray(pulls[mine])


def share_of(state: State, size: int | None, worker: str) -> Int[np.ndarray, " n"]:
    """Return the pulls that a worker without any gets: at most `size` of those nobody has.

    Without a size it is one part of them, of as many as the batch has workers, and one more for
    whoever comes next: fast workers ask more often, and nobody waits long for a slow one.
    """
    assert state.open is not None
    pulls = state.pulls.open(state.open.number)
    free = pulls[state.pulls.worker[pulls - 1] == -1]
    if size is None:
        busy = set(state.pulls.worker[pulls - 1].tolist()) - {-1}
        if worker in state.workers:
            busy.discard(state.workers.index(worker))
        size = math.ceil(len(free) / (len(busy) + 2))
    return np.asarray(free[:size])


def batch_of(state: State, numbers: Int[np.ndarray, " n"]) -> Batch:
    """Return pulls of the open batch as people see them."""
    assert state.open is not None
    assert state.open.stage == state.stage
    arms, whose = (getattr(state.pulls, word)[numbers - 1] for word in ("arm", "worker"))
    rows = named_pulls(state.arms.names, state.workers, numbers, arms, whose)
    left, words = open_count(state), state.purpose()
    return open_batch(state.problem, rows, state.open.number, left, words)


def waiting(state: State) -> Batch:
    """Return an empty batch for a worker when all pulls are with others."""
    assert state.open is not None
    return Batch((), "waiting", state.open.number, open_count(state), state.purpose())


def nothing(end: str) -> Batch:
    """Return an empty batch that says why."""
    return Batch((), cast(AskState, end))


# ---- telling -----------------------------------------------------------------------------


def row_of(state: State, pull_id: object) -> int:
    """Return the row of a pull, or refuse the number of a pull that does not exist."""
    whole = isinstance(pull_id, int | np.integer) and not isinstance(pull_id, bool)
    if not whole or not 1 <= cast(int, pull_id) <= len(state.pulls):
        raise UnknownPullError(_no_pull(pull_id, state))
    return int(cast(int, pull_id)) - 1


def _no_pull(pull_id: object, state: State) -> str:
    count = len(state.pulls)
    issued = f"they are numbered 1 to {count}" if count else "nothing has been asked for"
    return f"there is no measurement {show(pull_id)} in this study; {issued}."


def require_needed(state: State, pull_id: int) -> None:
    """Refuse to give up or change a pull that the study was decided without."""
    if state.pulls.fate[pull_id - 1] == Fate.UNNEEDED:
        winners = named([state.arms.names[i] for i in state.verdict.winners])
        verb = "wins" if len(state.verdict.winners) == 1 else "win"
        raise NotNeededError(
            f"measurement {pull_id} is not needed any more: the study is decided without "
            f"it, {winners} "
            f"{verb}. There is nothing to do."
        )


def check_told(state: State, told: Results) -> Bool[np.ndarray, " n"]:
    """Refuse what cannot be told; return which of the rewards and failures are new."""
    for i in np.flatnonzero(~state.pulls.known(told.pull))[:1]:
        raise UnknownPullError(_no_pull(int(told.pull[i]), state))
    rows = told.pull - 1
    fate, old = state.pulls.fate[rows], state.pulls.reward[rows]
    _check_arms(state, told)
    for i in np.flatnonzero((fate == Fate.TOLD) & (old != told.value))[:1]:
        said = "it did not fail" if told.failed[i] else f"not {told.value[i]}"
        raise ConflictError(
            f"{told.where(i)} has the result {old[i]} and {said}; correct a wrong one with `amend`."
        )
    lost = (fate == Fate.VOID) | (fate == Fate.MISSING)
    for i in np.flatnonzero(lost & ~told.failed)[:1]:
        again = (
            (", and its candidate is measured again under another number")
            if fate[i] == Fate.VOID
            else ""
        )
        raise ConflictError(
            f"{told.where(i)} is {Fate(fate[i]).name.lower()}{again}; it cannot have a result."
        )
    measured = told.taken(~told.failed)
    state.problem.noise.refuse(measured.value, measured.where)
    late = (fate == Fate.UNNEEDED) & ~told.failed  # measured all the same: nothing is thrown away
    return np.asarray((fate == Fate.OPEN) | late)


def _check_arms(state: State, told: Results) -> None:
    """Refuse a table whose arms do not match its pulls: rows were mixed up."""
    named = [i for i, name in enumerate(told.arm) if name is not None]
    rows = told.pull[named] - 1
    arms, batches = state.pulls.arm[rows].tolist(), state.pulls.batch[rows].tolist()
    for i, arm, batch in zip(named, arms, batches, strict=True):
        if state.issued[batch - 1].stage != state.stage:
            continue
        if told.arm[i] not in state.arms.aliases[arm]:
            raise RewardError(
                f"{told.where(i)} is of the candidate {state.arms.names[arm]!r} and the table says "
                f"{told.arm[i]!r}; were rows mixed up? Nothing was stored."
            )
