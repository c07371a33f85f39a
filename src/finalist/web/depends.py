"""What requests need: the studies of this server, the number in the address, the key of a call."""

from typing import Annotated, Any

from fastapi import Depends, Header, Path, Query, Request
from pydantic import BaseModel

from finalist.web.cache import Looking
from finalist.web.pool import Studies
from finalist.web.refusals import RefusedError
from finalist.web.workers.asking import Asking
from finalist.web.workers.pool import Workers

#: Numbers of studies are 32-bit integers in PostgreSQL.
_LARGEST = 2**31 - 1


async def _studies(request: Request) -> Studies:
    found: Studies = request.app.state.studies
    return found


async def _looking(request: Request) -> Looking:
    found: Looking = request.app.state.looking
    return found


async def _workers(request: Request) -> Workers:
    found: Workers = request.app.state.workers
    return found


async def _asking(request: Request) -> Asking:
    found: Asking = request.app.state.asking
    return found


async def _csv(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/csv":
        raise RefusedError(
            415,
            "content type",
            "the body is not said to be CSV.",
            "Send the file with 'Content-Type: text/csv'.",
        )
    return await request.body()


async def _key(
    key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            min_length=1,
            max_length=255,
            description="A name for this call, at best random. A second call of this name, because "
            "no answer came to the first, changes nothing and has the same answer.",
        ),
    ] = None,
) -> str | None:
    if key is not None and not (key.isascii() and key.isprintable() and key.strip()):
        raise RefusedError(
            422, "invalid", "Idempotency-Key has plain letters, digits and signs, 1 to 255."
        )
    return key


Opened = Annotated[Studies, Depends(_studies)]
Looked = Annotated[Looking, Depends(_looking)]
Working = Annotated[Workers, Depends(_workers)]
Asked = Annotated[Asking, Depends(_asking)]
Csv = Annotated[bytes, Depends(_csv)]
Key = Annotated[str | None, Depends(_key)]
Number = Annotated[int, Path(ge=1, le=_LARGEST, description="The number of the study.")]
PullNumber = Annotated[int, Path(ge=1, le=2**53 - 1, description="The number of the pull.")]
DecimalMark = Annotated[str, Query(pattern=r"^[.,]$", description="Decimal mark of the file.")]

#: How a body of CSV is described.
CSV_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"text/csv": {"schema": {"type": "string"}}}}
}


class ErrorAnswer(BaseModel):
    """What was wrong, and what to do."""

    error: str
    message: str
    remedy: str | None = None


_WORDS = {
    400: "The request cannot be read.",
    401: "The token is missing or wrong.",
    403: "Another site asked for a change.",
    404: "There is no such study, pull or arm.",
    409: "This contradicts what is on record; nothing was changed.",
    413: "The body is too large.",
    415: "The body has the wrong type.",
    422: "A value is wrong; nothing was changed.",
    429: "Too many wrong tokens.",
    503: "Too many write, plan or are connected; try again after Retry-After seconds.",
    504: "This took longer than a request may take, and was ended.",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": words} for status, words in _WORDS.items()
}
