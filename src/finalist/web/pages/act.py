"""What people do to a study on its page: measure, mend, note, stop, fork."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.datastructures import FormData, UploadFile

from finalist.errors import FinalistError, RewardError
from finalist.files import printable
from finalist.study import Study
from finalist.web.depends import Asked, Number, Opened, PullNumber
from finalist.web.errors import status_of
from finalist.web.pages.look import Form, Seen, back, show_pull, show_study, text_of
from finalist.web.pages.typed import read_size, read_typed
from finalist.web.pool import Studies
from finalist.web.snapshot import Looks
from finalist.web.uploads import tell_table

router = APIRouter()


@router.post("/studies/{number}/ask")
def ask(request: Request, number: Number, form: Form, asking: Asked, looks: Seen) -> Response:
    """Issue the next batch."""
    try:
        asking.ask(number, read_size(text_of(form, "size")))
    except FinalistError as error:
        return refuse(request, number, looks, form, "next", error)
    return back(number, "issued", part="#next")


@router.post("/studies/{number}/tell")
def tell(request: Request, number: Number, form: Form, studies: Opened, looks: Seen) -> Response:
    """Take the rewards that were typed: all of them, or none."""
    rewards, wrong = read_typed(form.multi_items())
    typed = {k: v for k, v in form.multi_items() if isinstance(v, str)}
    if wrong or not rewards:
        words = (
            "Nothing was stored: correct the marked fields."
            if wrong
            else "Nothing was stored: fill in at least one reward."
        )
        return show_study(
            request, looks.of(number), 422, problem=words, part="next", typed=typed, wrong=wrong
        )
    return change(
        request, number, studies, looks, form, "next", lambda s: _stored(number, s.tell(rewards))
    )


def _stored(number: int, new: int) -> RedirectResponse:
    if new == 1:
        return back(number, "stored-one")
    return back(number, "stored", new) if new else back(number, "same")


@router.post("/studies/{number}/upload")
def upload(request: Request, number: Number, form: Form, studies: Opened, looks: Seen) -> Response:
    """Take the rewards of a CSV file, or of rows that were pasted: all of them, or none."""
    content, name = uploaded(form)

    def act(study: Study) -> Response:
        if not content.strip():
            raise RewardError("there is no table. Choose a file, or paste the rows.")
        decimal = "," if text_of(form, "decimal") == "," else "."
        return _stored(number, tell_table(study, content, decimal=decimal, name=name).new)

    return change(request, number, studies, looks, form, "upload", act)


def uploaded(
    form: FormData, field: str = "file", pasted: str = "pasted", name: str = "the table"
) -> tuple[bytes, str]:
    """Return the file of a form with its name for messages, or the rows that were pasted."""
    file = form.get(field)
    if isinstance(file, UploadFile) and file.filename:
        return file.file.read(), printable(file.filename.replace("\\", "/").rsplit("/")[-1], 60)
    return text_of(form, pasted).encode("utf-8", "replace"), name


@router.post("/studies/{number}/note")
def note(request: Request, number: Number, form: Form, studies: Opened, looks: Seen) -> Response:
    """Write a note into the history."""

    def act(study: Study) -> Response:
        study.note(text_of(form, "text"))
        return back(number, "noted", part="#history")

    return change(request, number, studies, looks, form, "history", act)


@router.post("/studies/{number}/stop")
def stop(request: Request, number: Number, form: Form, studies: Opened, looks: Seen) -> Response:
    """Stop without a winner."""

    def act(study: Study) -> Response:
        study.stop(text_of(form, "reason"))
        return back(number, "stopped")

    return change(request, number, studies, looks, form, "stop", act)


@router.post("/studies/{number}/resume")
def resume(request: Request, number: Number, form: Form, studies: Opened, looks: Seen) -> Response:
    """Go on."""

    def act(study: Study) -> Response:
        study.resume()
        return back(number, "resumed")

    return change(request, number, studies, looks, form, "resume", act)


@router.post("/studies/{number}/fork")
def fork(request: Request, number: Number, form: Form, studies: Opened, looks: Seen) -> Response:
    """Start a new study from before a batch of this one."""

    def act(study: Study) -> Response:
        batch = text_of(form, "until").strip()
        name = text_of(form, "name").strip()
        whole = batch.isascii() and batch.isdigit() and len(batch) <= 9
        study.fork(name, int(batch) if whole else 0).close()
        return back(studies.number(name), "forked")

    return change(request, number, studies, looks, form, "fork", act)


def change(
    request: Request,
    number: int,
    studies: Studies,
    looks: Looks,
    form: FormData,
    part: str,
    act: Callable[[Study], Response],
) -> Response:
    """Change a study; if that is refused, show its page with what was typed and why.

    `part` is the form of the page that is shown with the reason.
    """
    try:
        with studies.writing(number) as study:
            return act(study)
    except FinalistError as error:
        return refuse(request, number, looks, form, part, error)


def refuse(
    request: Request, number: int, looks: Looks, form: FormData, part: str, error: FinalistError
) -> Response:
    """Show the page of a study with what was typed, and why it was refused."""
    look = looks.of(number)  # raises again if there is no such study
    typed = {k: v for k, v in form.multi_items() if isinstance(v, str)}
    return show_study(request, look, status_of(error), problem=str(error), part=part, typed=typed)


# ---- one pull ----------------------------------------------------------------------------


def _do_pull(
    request: Request,
    number: int,
    pull: int,
    studies: Studies,
    looks: Looks,
    form: FormData,
    act: Callable[[Study], tuple[str, int]],
) -> Response:
    try:
        with studies.writing(number) as study:
            word, n = act(study)
        return back(number, word, n, "#next")
    except FinalistError as error:
        typed: dict[str, Any] = {k: v for k, v in form.multi_items() if isinstance(v, str)}
        page: HTMLResponse = show_pull(
            request, looks.of(number), pull, status_of(error), problem=str(error), typed=typed
        )
        return page


@router.post("/studies/{number}/pulls/{pull}/void")
def void(
    request: Request, number: Number, pull: PullNumber, form: Form, studies: Opened, looks: Seen
) -> Response:
    """Measure again: another pull of the same arm takes its place."""
    return _do_pull(
        request,
        number,
        pull,
        studies,
        looks,
        form,
        lambda study: ("void", study.void(pull, text_of(form, "reason")).pull_id),
    )


@router.post("/studies/{number}/pulls/{pull}/missing")
def missing(
    request: Request, number: Number, pull: PullNumber, form: Form, studies: Opened, looks: Seen
) -> Response:
    """Go on without it."""

    def act(study: Study) -> tuple[str, int]:
        study.missing(pull, text_of(form, "reason"))
        return "missing", pull

    return _do_pull(request, number, pull, studies, looks, form, act)


@router.post("/studies/{number}/pulls/{pull}/amend")
def amend(
    request: Request, number: Number, pull: PullNumber, form: Form, studies: Opened, looks: Seen
) -> Response:
    """Correct a reward that was told wrongly."""

    def act(study: Study) -> tuple[str, int]:
        rewards, wrong = read_typed([(f"reward-{pull}", text_of(form, "reward"))])
        if pull not in rewards:
            raise RewardError(wrong.get(pull, "Write the right reward."))
        study.amend(pull, rewards[pull], text_of(form, "reason"))
        return "amended", pull

    return _do_pull(request, number, pull, studies, looks, form, act)
