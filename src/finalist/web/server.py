"""The server: uvicorn on one address, which ends open pages when it is told to end."""

from types import FrameType

import uvicorn
from fastapi import FastAPI

from finalist.web.security.connections import Limits, limited

#: Seconds for requests under way when the server ends.
_GRACE = 5


class Server(uvicorn.Server):
    """Ends what would not end soon, news and long work, before it waits for requests."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal to end."""
        close_long(self.config.app)
        super().handle_exit(sig, frame)


def close_long(app: object) -> None:
    """Let all open pages go, and end all workers."""
    for word in ("events", "workers"):
        found = getattr(getattr(app, "state", None), word, None)
        if found is not None:
            found.close()


def make_server(app: FastAPI, limits: Limits | None = None) -> Server:
    """Return a server for an application; `run(sockets=[...])` serves until a signal."""
    config = uvicorn.Config(
        app,
        http=limited(limits or Limits()),
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody may say for others where they come from
        timeout_graceful_shutdown=_GRACE,
        h11_max_incomplete_event_size=64 * 2**10,
    )
    return Server(config)
