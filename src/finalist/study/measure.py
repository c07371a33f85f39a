"""What was measured before, and what happens between two decisions.

Pulls are handed out, rewards come in, some are lost. Every function writes its events under the
lock, or refuses and leaves the log as it was.
"""

import hashlib
import json
from typing import NamedTuple, cast

import numpy as np

from finalist.compiled.threads import on_one_thread
from finalist.errors import ConflictError
from finalist.problem.budget import of_budget
from finalist.study.batch import Batch, Pull
from finalist.study.history import event_body
from finalist.study.log import Log
from finalist.study.pulls import Fate
from finalist.study.results import Results
from finalist.study.rules import (
    MAX_TEXT,
    batch_of,
    check_size,
    check_text,
    check_told,
    next_batch,
    nothing,
    of_worker,
    require_needed,
    row_of,
    share_of,
    waiting,
)
from finalist.study.state import State
from finalist.study.storage.writer import Writer
from finalist.text import counted


def import_history(log: Log, history: Results) -> None:
    """Write down measurements made before the study, of arms by their names."""
    with log.writing() as (writer, now):
        if now.issued:
            raise ConflictError(
                "a batch was issued already; earlier measurements are brought in before that."
            )
        if now.history_pulls:
            verb = "is" if now.history_pulls == 1 else "are"
            raise ConflictError(
                f"{counted(now.history_pulls, 'earlier measurement')} {verb} in already; bring in "
                "all of them in one table."
            )
        log.append(writer, now, "history", event_body(now.problem, history))


def ask(log: Log, size: int | None, worker: str | None) -> Batch:
    """Return what to measure next, for everybody or for one worker; issue a batch if need be."""
    check_size(size)
    size = None if size is None else int(size)
    if worker is not None:
        check_text("worker", worker)
    while True:
        state = log.now()
        if state.end is not None:
            return nothing(state.end)
        if state.open is None:
            issue(log, state, size, worker)
            continue
        if worker is None:
            return batch_of(state, state.pulls.open(state.open.number)[:size])
        mine = of_worker(state, worker)
        if len(mine) > 0:
            return batch_of(state, mine[:size])
        if len(share_of(state, size, worker)) == 0 and worker in state.workers:
            return waiting(state)
        assign(log, size, worker)


@on_one_thread(lambda _, state, *__: state.arms.features.size)
def issue(log: Log, state: State, size: int | None, worker: str | None) -> None:
    """Choose the next batch and write it down, unless someone else did so meanwhile."""
    state.replay.require_run()
    last, number = state.last, len(state.issued) + 1  # `state` itself goes on with the log
    batch = next_batch(state, size, worker)
    if batch is None:
        with log.writing() as (writer, now):
            if now.last == last:
                reason = f"the {of_budget(now.problem, now.left or 0.0)} that is left of the budget"
                reason += " does not pay for the next measurement"
                log.append(writer, now, "decided", {"stopped": reason})
        return
    order = batch.order
    if order is None:  # a drift must not look like a difference of arms
        rng = np.random.default_rng([state.settings.seed, number])
        order = rng.permutation(np.repeat(np.arange(len(batch.counts)), batch.counts))
    body = {"batch": number, "arms": order.tolist(), "note": dict(batch.note)}
    with log.writing() as (writer, now):
        if now.last == last:
            log.append(writer, now, "issued", body)
            decide(log, writer, now)  # what was kept back of a pilot may be enough


def assign(log: Log, size: int | None, worker: str) -> None:
    """Write down which pulls of the open batch are a worker's, unless all are given out.

    Somebody new who finds none is written down too: the next batch has some for everybody.
    """
    with log.writing() as (writer, now):
        if now.open is None or len(of_worker(now, worker)) > 0:
            return
        new = share_of(now, size, worker)
        if len(new) > 0 or worker not in now.workers:
            log.append(writer, now, "assigned", {"worker": worker, "pulls": new.tolist()})


class Told(NamedTuple):
    """What came of a call that told rewards."""

    new: int
    #: Pulls that failed and are measured again.
    again: int
    #: The study right after it, until its handle reads on.
    state: State
    #: Both numbers in the first call of this name, if this one repeats it.
    repeated: tuple[int, int] | None = None


def tell(log: Log, told: Results, client_id: str | None) -> Told:
    """Take all rewards and give up the pulls that failed; nothing of it on an error."""
    if client_id is not None:
        check_text("client_id", client_id)
    call = _digests(told)
    with log.writing() as (writer, now):
        if client_id is not None:
            earlier = _earlier(log, writer, client_id, call)
            if earlier is not None:
                return Told(0, 0, now, repeated=earlier)
        new = check_told(now, told)
        fresh, lost = told.taken(new & ~told.failed), told.taken(new & told.failed)
        if len(fresh) or client_id is not None:
            failed = {"failed": len(lost)} if len(lost) else {}
            body = {"count": len(fresh), **failed, **call}
            log.append(writer, now, "told", body, client=client_id, rewards=fresh)
        for pull, note in zip(lost.pull.tolist(), lost.note, strict=True):
            log.append(writer, now, "voided", {"pull": pull, "reason": _reason(note)})
        decide(log, writer, now)
        return Told(len(fresh), len(lost), now)


def _reason(note: str | None) -> str:
    """Return why a pull is given up whose result says that it failed, with what is noted there."""
    notes = {} if note is None else json.loads(note)
    words = [f"{key}: {text}" for key, text in notes.items() if key.lower() != "note"]
    said = [str(text) for key, text in notes.items() if key.lower() == "note"]
    reason = ": ".join(["its result says failed", *filter(None, ["; ".join([*said, *words])])])
    return reason.replace("\0", "\ufffd")[:MAX_TEXT]


def _digests(told: Results) -> dict[str, str | None]:
    """Return what identifies a call: its rewards, and its notes if it has any."""
    content = told.pull.tobytes() + told.value.tobytes()
    pairs = zip(told.pull.tolist(), told.note, strict=True)
    notes = {pull: note for pull, note in pairs if note}
    return {
        "digest": hashlib.sha256(content).hexdigest(),
        "notes": hashlib.sha256(json.dumps(notes).encode()).hexdigest() if notes else None,
    }


def _earlier(
    log: Log, writer: Writer, client_id: str, call: dict[str, str | None]
) -> tuple[int, int] | None:
    """Return how many rewards and failures were new in the call of this name, None without one.

    Another call of the same name is refused.
    """
    event = writer.client(log.row.id, client_id)
    if event is None:
        return None
    # Before there were rules, nothing was written down about notes.
    if any(event.body.get(word, digest) != digest for word, digest in call.items()):
        raise ConflictError(
            f"client_id {client_id!r} was used for other results or notes (event {event.number}); "
            "use a new one for each call."
        )
    return int(event.body["count"]), int(event.body.get("failed", 0))


def decide(log: Log, writer: Writer, now: State) -> None:
    """Let the strategy decide if the open batch is complete, or enough of it has arrived."""
    body = now.decision()
    if body is not None:
        now.count(writer.append(log.row.id, now.last + 1, "decided", body))


def void(log: Log, pull_id: int, reason: str) -> Pull:
    """Give up a pull without a reward; return the one that replaces it."""
    check_text("reason", reason)
    with log.writing() as (writer, now):
        row = row_of(now, pull_id)
        if now.pulls.fate[row] == Fate.VOID:
            raise ConflictError(f"measurement {pull_id} is void already.")
        require_needed(now, pull_id)
        _require_open(now, pull_id, "void")
        if now.pulls.fate[row] != Fate.OPEN:
            raise ConflictError(
                f"measurement {pull_id} is {Fate(now.pulls.fate[row]).name.lower()}, so it is not "
                "lost. Drawing again what has been seen breaks the guarantee; correct a wrong "
                "result with `amend`."
            )
        log.append(writer, now, "voided", {"pull": row + 1, "reason": reason})
        return cast(Pull, batch_of(now, np.array([len(now.pulls)]))[0])


def missing(log: Log, pull_id: int, reason: str) -> None:
    """Go on without the reward of a pull that cannot be measured again."""
    check_text("reason", reason)
    with log.writing() as (writer, now):
        row = row_of(now, pull_id)
        if now.pulls.fate[row] == Fate.MISSING:
            return
        require_needed(now, pull_id)
        if now.pulls.fate[row] != Fate.OPEN:
            raise ConflictError(
                f"measurement {pull_id} is {Fate(now.pulls.fate[row]).name.lower()}, so it is not "
                "missing. Correct a wrong result with `amend`."
            )
        log.append(writer, now, "missing", {"pull": row + 1, "reason": reason})
        decide(log, writer, now)


def amend(log: Log, pull_id: int, reward: float, reason: str) -> None:
    """Replace a reward that no decision has used."""
    check_text("reason", reason)
    with log.writing() as (writer, now):
        row = row_of(now, pull_id)
        told = Results([row + 1], [reward])
        require_needed(now, pull_id)
        if now.pulls.fate[row] != Fate.TOLD:
            raise ConflictError(f"measurement {pull_id} has no result; use `tell`.")
        _require_open(now, pull_id, "amend")
        now.problem.noise.refuse(told.value, told.where)
        old = float(now.pulls.reward[row])
        body = {"pull": row + 1, "old": old, "reason": reason}
        log.append(writer, now, "amended", body, rewards=told)
        decide(log, writer, now)


def undo(log: Log, event: int | None) -> dict[int, float]:
    """Take back the results that were saved last, or by an event; return them by their pulls.

    The pulls are open again, and the log keeps the results. This is for results that were entered
    wrongly: measuring again what has been seen would break the guarantee.
    """
    with log.writing() as (writer, now):
        last = None if now.open is None else now.pulls.last_saved(now.open.number)
        if last is None or last.correction or event not in (None, last.event):
            raise ConflictError(_no_undo(log, writer, now, event))
        taken = {pull: float(now.pulls.reward[pull - 1]) for pull in last.pulls}
        # Programs that know nothing of this refuse it for the measurement that it names.
        body = {"pull": last.pulls[0], "taken_back": list(last.pulls), "reason": "undone"}
        log.append(writer, now, "amended", body)
        return taken


def _no_undo(log: Log, writer: Writer, now: State, event: int | None) -> str:
    """Say why the results of the last save, or of an event, cannot be taken back."""
    told = (now.pulls.fate == Fate.TOLD) & (event is None or now.pulls.told == event)
    batch = int(now.pulls.batch[told].max(initial=0))
    if batch == 0 and event is None:
        return "there is nothing to undo: no results are in yet."
    if batch and (now.open is None or now.open.number != batch):
        return (
            "these results cannot be taken back: a decision has used them. To correct one, "
            f"{_start_anew(batch)}"
        )
    last = now.pulls.last_saved(batch)
    if last is not None and last.correction and event in (None, last.event):
        (change,) = (e for e in writer.events(log.row.id, last.event - 1) if e.number == last.event)
        return (
            f"the last change was a correction: measurement {last.pulls[0]} had "
            f"{change.body['old']!r} before. Correct it again with `amend`."
        )
    return (
        "these results cannot be taken back: others were saved or changed after them. Correct them "
        "one by one with `amend`."
    )


def _require_open(now: State, pull_id: int, verb: str) -> None:
    batch = int(now.pulls.batch[pull_id - 1])
    if now.open is None or now.open.number != batch:
        raise ConflictError(
            f"measurement {pull_id} cannot be changed ({verb}): its batch {batch} is decided on. "
            f"To correct it, {_start_anew(batch)}"
        )


def _start_anew(batch: int) -> str:
    return (
        f"start anew from before batch {batch}: 'finalist fork NAME NEW --until {batch}', or "
        f"study.fork(new, until={batch})."
    )
