"""The same pulls in another process: a study may be continued by another program."""

import os
import pickle
import subprocess
import sys

from finalist.arms import Arms
from finalist.problem import as_problem
from finalist.simulation.instances import gaussian
from finalist.strategies import Strategy, promise_of
from finalist.testing.runs import THETA, Make, NotApplicable, ensure, step


def same_pulls_in_another_process(make: Make) -> None:
    """Nothing depends on the order of sets, on addresses, or on what ran before."""
    strategy = make(_arms(), THETA)
    if not sys.executable:
        raise NotApplicable("there is no Python interpreter to start")
    here = pulls_of(strategy)
    for seed in ("1", "2"):
        there = _pulls_elsewhere(strategy, seed)
        ensure(there == here, f"here the pulls are {here}, in another process {there}")


def pulls_of(strategy: Strategy) -> str:
    """Return the pulls and the verdict of a run as text."""
    budget = 120 if promise_of(strategy) == "budget" else None
    problem = as_problem(_arms(), sigma=0.5, budget=budget)
    run, log = step(strategy, problem, THETA, seed=2, cap=500)
    return f"{run.verdict} {[batch.counts.tolist() for batch, _ in log]}"


def answer() -> None:
    """Read a strategy from standard input and print its pulls; runs in the other process."""
    print(pulls_of(pickle.load(sys.stdin.buffer)), end="")


def _arms() -> Arms:
    return Arms(gaussian(9, 3, 5))


def _pulls_elsewhere(strategy: Strategy, seed: str) -> str:
    """Return the pulls in a new interpreter, whose hash seed changes the order of sets."""
    path = os.pathsep.join(place or os.getcwd() for place in sys.path)
    done = subprocess.run(
        [sys.executable, "-c", "from finalist.testing.elsewhere import answer; answer()"],
        input=_packed(strategy),
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed},
        capture_output=True,
        check=False,
    )
    complaint = done.stderr.decode(errors="replace").strip().splitlines()
    ensure(done.returncode == 0, f"it cannot run in another process: {' '.join(complaint[-1:])}")
    return done.stdout.decode()


def _packed(strategy: Strategy) -> bytes:
    """Pickle the strategy, with its class if that cannot be imported."""
    try:
        import cloudpickle  # type: ignore[import-untyped]
    except ImportError:  # joblib 1.5 has it inside
        from joblib.externals import cloudpickle  # type: ignore[import-untyped]
    try:
        packed: bytes = cloudpickle.dumps(strategy)
    except Exception as error:
        raise AssertionError(f"it cannot be sent to another process: {error}") from error
    return packed
