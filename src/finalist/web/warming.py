"""What the first visitors would wait for, done in the background when a server starts."""

import threading

import numpy as np
from fastapi import FastAPI

from finalist.arms import Arms
from finalist.problem import as_problem
from finalist.strategies import named
from finalist.web.render import environment


def warm_up(app: FastAPI) -> threading.Thread:
    """Read the studies, get ready what draws and chooses; nobody waits for it, nor for its end."""
    thread = threading.Thread(target=_warm, args=(app,), daemon=True)
    thread.start()
    return thread


def compile_templates() -> None:
    """Compile all templates; each page would do so with its own."""
    for name in environment.list_templates():
        environment.get_template(name)


def load_kernels() -> None:
    """Choose a batch as a study does: the first of a server would wait for compiled code."""
    arms = Arms.unstructured(3)
    named("gauntlet", arms).start(as_problem(arms, sigma=1.0), seed=0).next(12)


def _warm(app: FastAPI) -> None:
    compile_templates()
    app.state.looking.read_all()
    from finalist.charts import weights_chart
    from finalist.charts.theme import to_svg

    to_svg(weights_chart(["a"], np.array([1.0])))
    load_kernels()
