"""What people do on the page of a study: measure, correct, note, stop, fork."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response

from finalist.errors import FileFormatError, FinalistError, RewardError, StudyError
from finalist.study import Study, handles
from finalist.study.measure import Told
from finalist.study.results import as_results
from finalist.tables import Dialect
from finalist.web.depends import IssuerDep, Number, PullNumber, SnapshotsDep, StudiesDep
from finalist.web.errors import http_status
from finalist.web.pages.fields import (
    Form,
    digits,
    not_negative,
    read_rewards,
    read_size,
    text_of,
    texts_of,
    uploaded,
    whole,
)
from finalist.web.pages.look import show_pull, show_study
from finalist.web.pages.said import back
from finalist.web.uploads import tell_table

router = APIRouter()
#: How the library asks for the decimal sign.
_SIGNS = re.compile(r"decimal=\. or decimal=,\.?")


@dataclass(frozen=True)
class Submission:
    """A form sent from a page of a study."""

    request: Request
    number: Number
    form: Form
    studies: StudiesDep
    snapshots: SnapshotsDep

    def text(self, field: str) -> str:
        """Return a field as text."""
        return text_of(self.form, field)

    def change(self, part: str, act: Callable[[Study], Response]) -> Response:
        """Change the study, or show its page with the error.

        `part` is the form of the page at which the error is shown, with what was typed.
        """
        try:
            with self.studies.writing(self.number) as study:
                return act(study)
        except FinalistError as error:
            return self.refuse(part, error)

    def refuse(self, part: str, error: FinalistError) -> Response:
        """Show the page of the study with an error and with what was typed."""
        return show_study(
            self.request,
            self.snapshots.of(self.number),  # raises again if there is no such study
            http_status(error),
            problem=str(error),
            part=part,
            typed=texts_of(self.form),
        )

    def change_pull(self, pull: int, act: Callable[[Study], tuple[str, int]]) -> Response:
        """Change something about a pull, or show its page with the error."""
        try:
            with self.studies.writing(self.number) as study:
                word, n = act(study)
            return back(self.number, word, n, "#next")
        except FinalistError as error:
            return show_pull(
                self.request,
                self.snapshots.of(self.number),
                pull,
                http_status(error),
                problem=str(error),
                typed=texts_of(self.form),
            )


Sent = Annotated[Submission, Depends()]


@router.post("/studies/{number}/ask")
def ask(sent: Sent, issuer: IssuerDep) -> Response:
    """Issue the next batch."""
    try:
        issuer.ask(sent.number, read_size(sent.text("size")))
    except FinalistError as error:
        return sent.refuse("next", error)
    return back(sent.number, "issued", part="#next")


@router.post("/studies/{number}/tell")
def tell(sent: Sent) -> Response:
    """Store the results that were typed: all of them, or none."""
    rewards, wrong = read_rewards(sent.form.multi_items())
    if not wrong and rewards:
        told = as_results(rewards)
        return sent.change(
            "next", lambda study: _stored(sent.number, handles.tell(study, told, None))
        )
    problem = "correct the marked fields." if wrong else "fill in at least one result."
    return show_study(
        sent.request,
        sent.snapshots.of(sent.number),
        422,
        problem=f"Nothing was stored: {problem}",
        part="next",
        typed=texts_of(sent.form),
        wrong=wrong,
    )


def _stored(number: int, told: Told) -> RedirectResponse:
    """Say how many results are new, how many measurements are made again, and what was decided."""
    if told.new:
        used = told.state.issued[-1].number if told.state.open is None else 0
        word = _counted("stored", told.new)
        return back(number, word, told.new, again=told.again, used=used)
    if told.again:
        return back(number, _counted("failed", told.again), told.again)
    return back(number, "same")


def _counted(word: str, n: int) -> str:
    return f"{word}-one" if n == 1 else word


@router.post("/studies/{number}/undo")
def undo(sent: Sent) -> Response:
    """Take the results of the last save back, unless a decision has used them."""

    def act(study: Study) -> Response:
        taken = len(study.undo(digits(sent.text("event"))))
        return back(sent.number, _counted("undone", taken), taken)

    return sent.change("next", act)


@router.post("/studies/{number}/upload")
def upload(sent: Sent) -> Response:
    """Store the results in a file, or in pasted rows: all of them, or none."""
    content, name = uploaded(sent.form)

    def act(study: Study) -> Response:
        if not content.strip():
            raise RewardError("there is no table. Choose a file, or paste the rows.")
        sign = sent.text("decimal")
        dialect = Dialect(decimal=sign if sign in (".", ",") else None)
        try:
            told = tell_table(study, content, dialect=dialect, name=name)
        except FileFormatError as error:
            raise FileFormatError(_SIGNS.sub("choose it below.", str(error))) from error
        return _stored(sent.number, told)

    return sent.change("upload", act)


@router.post("/studies/{number}/note")
def note(sent: Sent) -> Response:
    """Write a note into the history."""

    def act(study: Study) -> Response:
        study.note(sent.text("text"))
        return back(sent.number, "noted", part="#history")

    return sent.change("history", act)


@router.post("/studies/{number}/stop")
def stop(sent: Sent) -> Response:
    """Stop without a winner."""

    def act(study: Study) -> Response:
        study.stop(sent.text("reason"))
        return back(sent.number, "stopped")

    return sent.change("stop", act)


@router.post("/studies/{number}/resume")
def resume(sent: Sent) -> Response:
    """Continue after a stop."""

    def act(study: Study) -> Response:
        study.resume()
        return back(sent.number, "resumed")

    return sent.change("resume", act)


@router.post("/studies/{number}/budget")
def budget(sent: Sent) -> Response:
    """Go on with another budget, or without one."""

    def act(study: Study) -> Response:
        text = sent.text("budget").strip()
        try:
            limit = whole(text) if text else None
        except ValueError as error:
            raise StudyError(f"the budget: {error}") from error
        study.set_budget(limit)
        return back(sent.number, "rebudgeted")

    return sent.change("budget", act)


@router.post("/studies/{number}/fork")
def fork(sent: Sent) -> Response:
    """Start a new study from before a batch of this one, or with another model or margin."""

    def act(study: Study) -> Response:
        name, model = sent.text("name").strip(), sent.text("model") or None
        epsilon = _margin(sent.text("epsilon")) if "epsilon" in sent.form else None
        if model is not None or epsilon is not None:
            study.fork(name, model=model, epsilon=epsilon).close()
            return back(sent.studies.number(name), "remodelled")
        study.fork(name, digits(sent.text("until"))).close()
        return back(sent.studies.number(name), "forked")

    return sent.change("fork", act)


def _margin(text: str) -> float:
    """Read a margin."""
    try:
        return not_negative(text.strip())
    except ValueError as error:
        raise StudyError(f"the margin cannot be used: {error}") from error


# ---- one pull ----------------------------------------------------------------------------


@router.post("/studies/{number}/pulls/{pull}/void")
def void(sent: Sent, pull: PullNumber) -> Response:
    """Measure again: another pull of the same arm replaces this one."""
    return sent.change_pull(
        pull, lambda study: ("void", study.void(pull, sent.text("reason")).pull_id)
    )


@router.post("/studies/{number}/pulls/{pull}/missing")
def missing(sent: Sent, pull: PullNumber) -> Response:
    """Continue without this pull."""

    def act(study: Study) -> tuple[str, int]:
        study.missing(pull, sent.text("reason"))
        return "missing", pull

    return sent.change_pull(pull, act)


@router.post("/studies/{number}/pulls/{pull}/amend")
def amend(sent: Sent, pull: PullNumber) -> Response:
    """Correct a wrong reward."""

    def act(study: Study) -> tuple[str, int]:
        rewards, wrong = read_rewards([(f"reward-{pull}", sent.text("reward"))])
        right = rewards.get(pull)
        if not isinstance(right, float):
            raise RewardError(wrong.get(pull, "Write the right result, a number."))
        study.amend(pull, right, sent.text("reason"))
        return "amended", pull

    return sent.change_pull(pull, act)
