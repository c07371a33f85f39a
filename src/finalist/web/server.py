"""The server: uvicorn on one address, warmed up at the start, quick to shut down."""

import threading
from types import FrameType

import numpy as np
import uvicorn
from fastapi import FastAPI

from finalist.arms import Arms
from finalist.problem import as_problem
from finalist.strategies import named
from finalist.web.render import environment
from finalist.web.security.connections import Limits, limited

#: Seconds that requests in progress have to finish when the server shuts down.
_GRACE = 5


class Server(uvicorn.Server):
    """Closes event streams and kills long work before it waits for the other requests."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal to shut down."""
        close_long(self.config.app)
        super().handle_exit(sig, frame)


def close_long(app: object) -> None:
    """Close all event streams and kill all workers."""
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
        proxy_headers=False,  # clients could forge them
        timeout_graceful_shutdown=_GRACE,
        h11_max_incomplete_event_size=64 * 2**10,
    )
    return Server(config)


# ---- warming up --------------------------------------------------------------------------------


def warm_up(app: FastAPI) -> threading.Thread:
    """Do in the background what the first visitors would otherwise wait for."""
    thread = threading.Thread(target=_warm, args=(app,), daemon=True)
    thread.start()
    return thread


def _warm(app: FastAPI) -> None:
    compile_templates()
    app.state.snapshots.read_all()
    from finalist.charts import weights_chart
    from finalist.charts.theme import to_svg

    to_svg(weights_chart(["a"], np.array([1.0])))
    load_kernels()


def compile_templates() -> None:
    """Compile all templates, so that no page has to."""
    for name in environment.list_templates():
        environment.get_template(name)


def load_kernels() -> None:
    """Choose a batch as a study does, which loads the compiled code."""
    arms = Arms.unstructured(3)
    named("gauntlet", arms).start(as_problem(arms, sigma=1.0), seed=0).next(12)
