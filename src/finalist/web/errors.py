"""Errors of the library as HTTP responses, with the same message.

A program gets {"error": a word, "message": what was wrong, "remedy": what to do}; a person gets a
page that says the same.
"""

import json
import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from finalist import errors
from finalist.errors import FinalistError
from finalist.files import finite, printable
from finalist.study.databases import locate
from finalist.web.headers import HEADERS
from finalist.web.render import render

#: Seconds after which a busy server is worth another try.
RETRY = 1
_STATUS: tuple[tuple[type[FinalistError], int], ...] = (
    (errors.UnknownStudyError, 404),
    (errors.UnknownPullError, 404),
    (errors.UnknownArmError, 404),
    (errors.ConflictError, 409),
    (errors.NameTakenError, 409),
    (errors.TooLargeError, 413),
    (errors.DeadlineError, 504),
    (errors.BusyError, 503),
    (errors.SchemaError, 500),
    (errors.StorageError, 503),
    (errors.MissingExtraError, 501),
    (FinalistError, 422),
)
#: Characters of a message: a hostile value is cut.
_MAX_MESSAGE = 2000
_STUDY = re.compile(r"/studies/([1-9][0-9]{0,9})/")
#: Errors shown of a request with many.
_MAX_SHOWN = 5
_log = logging.getLogger("finalist.web")


class RefusedError(Exception):
    """A rejected request: the HTTP status, a word for programs, a message and a remedy."""

    def __init__(
        self,
        status: int,
        error: str,
        message: str,
        remedy: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.error, self.message, self.remedy = status, error, message, remedy
        self.headers = dict(headers or {})


class Json(Response):
    """JSON in ASCII; NaN and infinity become null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the text."""
        try:
            text = json.dumps(content, allow_nan=False, separators=(",", ":"))
        except ValueError:
            text = json.dumps(finite(content), allow_nan=False, separators=(",", ":"))
        return text.encode()


def http_status(error: FinalistError) -> int:
    """Return the HTTP status for an error of the library."""
    return next(status for kind, status in _STATUS if isinstance(error, kind))


def as_refusal(error: FinalistError) -> RefusedError:
    """Return the rejection for an error of the library."""
    status = http_status(error)
    headers = {"Retry-After": str(RETRY)} if isinstance(error, errors.BusyError) else {}
    return RefusedError(status, type(error).__name__, str(error), headers=headers)


def respond(request: Request, refusal: RefusedError) -> Response:
    """Return the response to a rejected request: JSON for a program, a page for a person."""
    if not wants_page(request):
        content = {"error": refusal.error, "message": _without_folder(request, refusal.message)}
        if refusal.remedy is not None:
            content["remedy"] = refusal.remedy
        content = {word: _shown(text) for word, text in content.items()}
        return Json(content, refusal.status, headers=refusal.headers)
    page = render(
        request,
        "error.html",
        refusal.status,
        title=_title(refusal.status),
        message=_shown(refusal.message),
        remedy=None if refusal.remedy is None else _shown(refusal.remedy),
        study=None if refusal.error == "UnknownStudyError" else _study(request),
        pull=refusal.error == "UnknownPullError",
    )
    page.headers.update(refusal.headers)
    return page


def wants_page(request: Request) -> bool:
    """Return whether a request is for a page, not for the API."""
    path: str = request.scope["path"]
    return path != "/api" and not path.startswith("/api/")


def _study(request: Request) -> str | None:
    """Return the number of the study in a path."""
    found = _STUDY.match(request.scope["path"])
    return None if found is None else found[1]


def _without_folder(request: Request, text: str) -> str:
    """Reduce the path of the database to its file name; remote programs need no more."""
    place = locate(request.app.state.studies.place)
    if place.path is None:
        return text.replace(place.shown, "the database")
    for name in (str(place.path), place.shown):
        text = text.replace(name, place.path.name)
    return text


def _title(status: int) -> str:
    titles = {404: "Not found", 409: "This contradicts what is on record", 422: "Not understood"}
    return titles.get(status) or HTTPStatus(status).phrase


def _shown(text: str) -> str:
    """Return a message cut to a length, as valid UTF-8."""
    plain = text.encode("utf-8", "backslashreplace").decode()
    return plain if len(plain) <= _MAX_MESSAGE else plain[: _MAX_MESSAGE - 1] + "…"


# ---- exception handlers --------------------------------------------------------------------


def add_handlers(app: FastAPI) -> None:
    """Register a handler for every error of the application."""
    app.add_exception_handler(FinalistError, _library)
    app.add_exception_handler(RefusedError, _refusal)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ArithmeticError, _arithmetic)
    app.add_exception_handler(np.linalg.LinAlgError, _arithmetic)
    app.add_exception_handler(Exception, _unexpected)


async def _library(request: Request, error: Exception) -> Response:
    assert isinstance(error, FinalistError)
    refusal = as_refusal(error)
    if refusal.status == 500:
        _log.error("%s", printable(str(error)))
    return respond(request, refusal)


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return respond(request, error)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    words = {
        404: f"there is nothing at {printable(request.scope['path'], 100)}.",
        405: f"{printable(request.method, 20)} is not allowed here.",
    }
    message = words.get(error.status_code, str(error.detail))
    name = "not found" if error.status_code == 404 else HTTPStatus(error.status_code).phrase.lower()
    return respond(request, RefusedError(error.status_code, name, message, headers=headers))


async def _invalid(request: Request, error: Exception) -> Response:
    """Say which values are invalid."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    words = []
    for problem in found[:_MAX_SHOWN]:
        where = ".".join(str(part) for part in problem["loc"][1:]) or str(problem["loc"][0])
        words.append(f"{printable(where, 80)}: {problem['msg']}")
    more = f" ({len(found) - _MAX_SHOWN} more)" if len(found) > _MAX_SHOWN else ""
    remedy = "The API is described at /api/v1/docs."
    message = "; ".join(words) + more + "."
    return respond(request, RefusedError(422, "invalid", message, remedy))


async def _arithmetic(request: Request, error: Exception) -> Response:
    """Say that numbers are too extreme; the library should have said so itself."""
    _log.error("arithmetic failed", exc_info=error)
    message = (
        "the numbers of this study are too large, too small or too close together to compute with."
    )
    return respond(request, RefusedError(422, "arithmetic", message, "Rescale them."))


async def _unexpected(request: Request, _: Exception) -> Response:
    """Say that the fault is ours; the traceback is in the server's log."""
    message = "an unexpected error occurred in the server; its log says more."
    refusal = RefusedError(500, "unexpected", message)
    try:
        answer = respond(request, refusal)
    except Exception:  # the error page itself fails
        answer = Json({"error": refusal.error, "message": message}, refusal.status)
    answer.headers.update(HEADERS)  # this response does not pass the guard
    return answer
