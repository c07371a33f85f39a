"""What the first visitors would wait for, done in the background when a server starts."""

import threading

import numpy as np
from fastapi import FastAPI


def warm_up(app: FastAPI) -> threading.Thread:
    """Read the studies, and get what draws ready; nobody waits for it, nor for its end."""
    thread = threading.Thread(target=_warm, args=(app,), daemon=True)
    thread.start()
    return thread


def _warm(app: FastAPI) -> None:
    app.state.looking.read_all()
    from finalist.charts import weights_chart
    from finalist.charts.theme import to_svg

    to_svg(weights_chart(["a"], np.array([1.0])))
