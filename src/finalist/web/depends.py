"""Dependencies of request handlers: objects of the application, path parameters, CSV bodies."""

from typing import Annotated, Any

from fastapi import Depends, Header, Path, Query, Request
from pydantic import BaseModel

from finalist.tables import Dialect
from finalist.web.cache import Snapshots
from finalist.web.errors import RefusedError
from finalist.web.pool import Studies
from finalist.web.workers.issuer import BatchIssuer
from finalist.web.workers.pool import Workers

#: Numbers of studies are 32-bit integers in PostgreSQL.
_LARGEST = 2**31 - 1


def from_app(name: str) -> Any:
    """Return the dependency on an object of the application."""

    async def get(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(get)


#: Workbooks.
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODS = "application/vnd.oasis.opendocument.spreadsheet"


def _body(what: str, *kinds: str) -> Any:
    """Return the dependency on a body of one of these types.

    None of them can be sent by a form of another site.
    """

    async def get(request: Request) -> bytes:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in kinds:
            raise RefusedError(
                415,
                "content type",
                f"the body is not declared as {what}.",
                f"Send the file with 'Content-Type: {kinds[0]}'.",
            )
        return await request.body()

    return Depends(get)


async def _dialect(
    decimal: Annotated[
        str | None, Query(pattern=r"^[.,]$", description="Decimal sign; found out if not given.")
    ] = None,
    delimiter: Annotated[
        str | None, Query(min_length=1, max_length=1, description="Between cells of a text file.")
    ] = None,
    encoding: Annotated[
        str | None, Query(max_length=40, description="Of a text file: utf-8, windows-1252, ...")
    ] = None,
    sheet: Annotated[
        str | None, Query(max_length=100, description="A sheet of a workbook: name or number.")
    ] = None,
) -> Dialect:
    if decimal is not None and decimal == delimiter:
        raise RefusedError(422, "invalid", "the delimiter is the decimal sign, too.")
    return Dialect(delimiter, decimal, encoding, sheet)


async def _key(
    key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            min_length=1,
            max_length=255,
            description="A name for this call, ideally random. Repeating a call that got no "
            "response under the same name changes nothing and returns the same response.",
        ),
    ] = None,
) -> str | None:
    if key is not None and not (key.isascii() and key.isprintable() and key.strip()):
        raise RefusedError(
            422, "invalid", "Idempotency-Key must be 1 to 255 printable ASCII characters."
        )
    return key


StudiesDep = Annotated[Studies, from_app("studies")]
SnapshotsDep = Annotated[Snapshots, from_app("snapshots")]
WorkersDep = Annotated[Workers, from_app("workers")]
IssuerDep = Annotated[BatchIssuer, from_app("issuer")]
Csv = Annotated[bytes, _body("CSV", "text/csv")]
Sheet = Annotated[bytes, _body("a workbook", XLSX, ODS, "application/octet-stream")]
DialectDep = Annotated[Dialect, Depends(_dialect)]
OwnToo = Annotated[bool, Query(description="With the candidates' own columns.")]
Key = Annotated[str | None, Depends(_key)]
Number = Annotated[int, Path(ge=1, le=_LARGEST, description="The number of the study.")]
PullNumber = Annotated[int, Path(ge=1, le=2**53 - 1, description="The number of the pull.")]
DecimalMark = Annotated[str, Query(pattern=r"^[.,]$", description="Decimal mark of the file.")]

#: OpenAPI description of a CSV body.
CSV_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"text/csv": {"schema": {"type": "string"}}}}
}
#: OpenAPI description of a workbook as a body.
SHEET_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            kind: {"schema": {"type": "string", "format": "binary"}} for kind in (XLSX, ODS)
        },
    }
}


class ErrorAnswer(BaseModel):
    """What was wrong, and what to do about it."""

    error: str
    message: str
    remedy: str | None = None


_WORDS = {
    400: "The request cannot be read.",
    401: "The token is missing or wrong.",
    403: "Another site asked for a change, or a form of unknown origin did.",
    404: "There is no such study, pull or arm.",
    409: "This contradicts what is on record; nothing was changed.",
    413: "The body is too large.",
    415: "The body has the wrong type.",
    422: "A value is invalid; nothing was changed.",
    429: "Too many wrong tokens.",
    503: "The server is busy or at its connection limit; try again after Retry-After seconds.",
    504: "This took longer than the server's deadline, and was cancelled.",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": words} for status, words in _WORDS.items()
}
