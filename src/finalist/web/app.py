"""The application: the pages and the API on one database."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from os import PathLike
from pathlib import Path

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import Depends, FastAPI
from fastapi.staticfiles import StaticFiles

from finalist import __version__
from finalist.errors import FinalistError, StudyError
from finalist.web.addresses import LOOPBACK
from finalist.web.api import routes as api
from finalist.web.cache import Looking
from finalist.web.csrf import check_csrf
from finalist.web.deadlines import Deadlines
from finalist.web.errors import add_handlers
from finalist.web.lifetime import DEADLINE
from finalist.web.live import Events
from finalist.web.pages import routes as pages
from finalist.web.pool import Studies
from finalist.web.render import HERE
from finalist.web.security import login
from finalist.web.security.guard import Guard
from finalist.web.security.tokens import Failures, Sessions, Token
from finalist.web.workers.asking import Asking
from finalist.web.workers.pool import Workers

#: Requests that are worked on at a time; those that wait for others to write count too.
THREADS = 100
_DESCRIPTION = """\
The same as the library, in JSON. A study is known by its number; `GET /api/v1/studies?name=NAME`
finds it. If the server has a token, send `Authorization: Bearer TOKEN`. Errors have the keys
`error`, `message` and perhaps `remedy`, and then nothing was changed. Repeat a `tell` that had no
answer with the same `Idempotency-Key`: it is taken once. Work that takes longer than the
deadline of the server is ended, with status 504.
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
    """Return the server's application.

    Parameters
    ----------
    place : path-like or str
        Where studies are kept; a file is made if it is missing.
    token_hash : str, optional
        SHA-256 of the token that everyone has to give; see `finalist.web.security.tokens`.
    token_file : path-like, optional
        A file with such a hash, in place of it. It is followed: a new hash is good at once, and
        the old one no longer.
    hosts : sequence of str
        Names under which the server may be called, besides those of this machine.
    behind_tls : bool
        Whether everybody comes through a proxy that speaks TLS; then cookies are Secure.
    deadline : float
        Seconds in which a request has to have its answer; longer work is ended.
    """
    if not 0 < deadline < float("inf"):
        raise StudyError(f"deadline is {deadline}; it is a positive number of seconds.")
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
    app.state.looking = Looking(app.state.studies, app.state.workers)
    app.state.asking = Asking(app.state.studies, app.state.workers)
    app.state.lives = {}
    app.state.events = Events(app.state.studies)
    app.state.token = Token(token_hash, None if token_file is None else Path(token_file))
    app.state.failures = Failures()
    app.state.sessions = Sessions()
    add_handlers(app)
    app.include_router(api.router)
    app.include_router(login.router)
    app.include_router(pages.router, dependencies=[Depends(check_csrf)], include_in_schema=False)
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
    with suppress(FinalistError):  # who looks is told
        await run_sync(app.state.looking.summaries, 0.0)  # begins to read, so that pages need not
    yield
    app.state.events.close()
    app.state.workers.close()
    app.state.studies.close()
