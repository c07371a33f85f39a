"""The application: pages and API on top of one database."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from os import PathLike
from pathlib import Path

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from finalist import __version__
from finalist.errors import FinalistError, StudyError
from finalist.web import live
from finalist.web.addresses import LOOPBACK
from finalist.web.api import look as api_look
from finalist.web.api import measure, plan, reference, studies
from finalist.web.cache import Snapshots
from finalist.web.deadlines import Deadlines
from finalist.web.depends import ERRORS
from finalist.web.errors import add_handlers
from finalist.web.lifetime import DEADLINE
from finalist.web.pages import act, change, example, look, new, sigma
from finalist.web.pool import Studies
from finalist.web.render import HERE
from finalist.web.security import login
from finalist.web.security.guard import Guard
from finalist.web.security.tokens import Failures, Sessions, Token
from finalist.web.workers.issuer import BatchIssuer
from finalist.web.workers.pool import Workers

#: Requests handled at a time, including those that wait for a writer.
THREADS = 100
_DESCRIPTION = """\
The library over HTTP, in JSON. A study is identified by its number; `GET
/api/v1/studies?name=NAME` finds it. If the server has a token, send `Authorization: Bearer TOKEN`.
Errors have the keys `error`, `message` and sometimes `remedy`, and mean that nothing was changed.
Repeat a `tell` that got no response with the same `Idempotency-Key`: it is carried out once. Work
that takes longer than the server's deadline is cancelled, with status 504.
"""


def create_app(
    place: str | PathLike[str],
    *,
    token_hash: str | None = None,
    token_file: str | PathLike[str] | None = None,
    hosts: Sequence[str] = LOOPBACK,
    behind_tls: bool = False,
    deadline: float = DEADLINE,
) -> FastAPI:
    """Return the application that serves a database.

    Parameters
    ----------
    place : path-like or str
        Where studies are kept; a missing file is created.
    token_hash : str, optional
        SHA-256 of the token that every client must present; see `finalist.web.security.tokens`.
    token_file : path-like, optional
        A file with such a hash, instead of `token_hash`. It is watched: a new hash takes effect
        at once and invalidates the old one.
    hosts : sequence of str
        Host names the server accepts besides those of this machine.
    behind_tls : bool
        Whether all clients connect through a TLS proxy; cookies are then marked Secure.
    deadline : float
        Seconds within which a request must be answered; longer work is cancelled.
    """
    if not 0 < deadline < float("inf"):
        raise StudyError(f"deadline is {deadline}; it must be a positive number of seconds.")
    app = FastAPI(
        title="finalist",
        summary="Find the best of K candidates with few costly, noisy measurements.",
        description=_DESCRIPTION,
        license_info={"name": "MIT"},
        version=__version__,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.studies = Studies(place)
    app.state.workers = Workers()
    app.state.snapshots = Snapshots(app.state.studies, app.state.workers)
    app.state.issuer = BatchIssuer(app.state.studies, app.state.workers)
    app.state.lives = {}
    app.state.events = live.Events(app.state.studies)
    app.state.token = Token(token_hash, None if token_file is None else Path(token_file))
    app.state.failures = Failures()
    app.state.sessions = Sessions()
    add_handlers(app)
    for part in (studies, measure, api_look, plan, live, reference):
        app.include_router(part.router, prefix="/api/v1", responses=ERRORS)
    for part in (login, look, new, sigma, act, change, example):
        app.include_router(part.router, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    app.add_middleware(Deadlines, seconds=deadline, lives=app.state.lives)
    app.add_middleware(
        Guard,
        hosts=(*LOOPBACK, *hosts),
        token=app.state.token,
        failures=app.state.failures,
        sessions=app.state.sessions,
        behind_tls=behind_tls,
    )
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    current_default_thread_limiter().total_tokens = THREADS
    with suppress(FinalistError):  # reported by the page that needs it
        await run_sync(app.state.snapshots.lines, 0.0)  # starts reading in the background
    yield
    app.state.events.close()
    app.state.workers.close()
    app.state.studies.close()
