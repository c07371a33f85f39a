"""Many runs of a strategy with drawn rewards, in this process or in several.

A run does not depend on the number of runs or processes. Ctrl-C ends a simulation and keeps the
finished runs.
"""

import itertools
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from finalist.arms import Arms
from finalist.errors import SimulationError
from finalist.problem import Problem
from finalist.settings import ProblemWords, spelled_out
from finalist.simulation.result import PER_RUN, Simulation
from finalist.simulation.rewards import Kind, RewardFunction
from finalist.simulation.task import Numbered, Outcome, Task, make_task, whole
from finalist.strategies import Strategy

#: Seconds before the progress bar appears, unless it was asked for.
_PATIENCE = 1.0
#: Whether to show a bar, or a function called with the number of finished runs and of all runs.
Shown = bool | Callable[[int, int], None] | None


@spelled_out
def simulate(
    arms: Arms | Problem,
    theta: ArrayLike,
    strategy: Strategy | str = "gauntlet",
    *,
    runs: int = 100,
    seed: int = 0,
    n_jobs: int = 1,
    rewards: Kind | RewardFunction | None = None,
    max_pulls: int = 10**9,
    size: int | None = None,
    shift: float = 0.0,
    deviations: ArrayLike | None = None,
    progress: Shown = None,
    **words: Unpack[ProblemWords],
) -> Simulation:
    """Run a strategy many times with rewards drawn from a known parameter.

    Parameters
    ----------
    arms : Arms or Problem
        The arms, with the settings in `words`; or the problem.
    theta : (d,) array-like
        The true parameter; the expected rewards are X theta.
    strategy : str or Strategy
        A name, or a configured object such as `XYAdaptive(alpha=0.1)`.
    runs : int
        How many runs.
    seed : int
        Run i depends only on the seed and i.
    n_jobs : int
        Processes; 1 is this one, -1 means one per core.
    rewards : "gaussian", "bounded", "bernoulli" or function, optional
        What is drawn; by default what the noise model describes: normal noise, noise of +sigma or
        -sigma, or rewards 0 and 1. A function is called as `rewards(arm, n, rng)` and returns n
        rewards of an arm given by its index.
    max_pulls : int
        A run that needs more is stopped and counted as undecided; not used with a budget.
    size : int, optional
        Pulls of a batch, such as those of a plate; a batch too small to be tested alone is tested
        with the next. By default each strategy chooses its own sizes, or looks after every pull.
    shift : float
        Standard deviation of the constant that is drawn for each batch.
    deviations : (K,) array-like, optional
        How far the mean of each arm is from the linear model.
    progress : bool or function, optional
        Whether to show a bar on stderr; by default on a terminal, after a second. A function is
        called after each run with the number of finished runs and of all runs.
    **words
        Settings of the problem: those of the signature, explained in `Problem`. `sigma` is required
        unless `noise` has its own. With a budget, a run ends when it is used up, and the best of
        the arms that are left is recommended, without a guarantee.

    Returns
    -------
    Simulation
        On Ctrl-C, with the runs finished so far; KeyboardInterrupt if there are none.

    Examples
    --------
    >>> import finalist as fl
    >>> r = fl.simulate(fl.Arms.unstructured(3), [1.0, 0.0, 0.0], sigma=0.5, runs=10)
    >>> r.correct.all(), r.samples.shape, r.pulls_per_arm.shape
    (np.True_, (10,), (10, 3))
    >>> three, means = fl.Arms.unstructured(3), [1.0, 0.0, 0.0]
    >>> r = fl.simulate(three, means, "gse", sigma=1.0, budget=60, runs=10)
    >>> set(r.samples.tolist()), r.certain.any()
    ({60}, np.False_)
    """
    task = make_task(
        arms,
        theta,
        strategy,
        rewards=rewards,
        seed=seed,
        max_pulls=max_pulls,
        size=size,
        shift=shift,
        deviations=deviations,
        **words,
    )
    requested = whole("runs", runs, 1)
    outcomes = collect(task, range(requested), n_jobs, progress)
    if not outcomes:
        raise KeyboardInterrupt
    return gather(task, outcomes, requested)


def collect(
    task: Numbered,
    indices: Sequence[int],
    n_jobs: int,
    progress: Shown,
    each: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """Return the outcomes of runs in the order in which they finish; fewer on Ctrl-C.

    Parameters
    ----------
    indices : sequence of int
        Which runs.
    each : function, optional
        Called with every outcome as it arrives.
    """
    _check_progress(progress)
    jobs = min(_checked_jobs(n_jobs), len(indices))
    stream = _here(task, indices) if jobs <= 1 else _in_processes(task, indices, jobs)
    outcomes: list[Outcome] = []
    try:
        with _bar(len(indices), progress) as advance, closing(stream):
            for outcome in stream:
                outcomes.append(outcome)
                advance()
                if each is not None:
                    each(outcome)
    except KeyboardInterrupt:
        pass  # the result says how many runs are missing
    return outcomes


def gather(task: Task, outcomes: Sequence[Outcome], requested: int) -> Simulation:
    """Combine outcomes in the order of their runs."""
    columns = zip(*sorted(outcomes, key=lambda outcome: outcome.run), strict=True)
    return Simulation(
        arms=task.problem.arms.names,
        name=task.strategy.name,
        strategy=repr(task.strategy),
        delta=task.problem.delta,
        seed=task.seed,
        requested=requested,
        **dict(zip(PER_RUN, map(np.array, columns), strict=True)),
        budget=task.problem.budget,
        costs=None if task.problem.cost == 1.0 else task.problem.costs,
        gaps=task.gaps,
    )


def _here(task: Numbered, indices: Sequence[int]) -> Generator[Outcome, None, None]:
    return (task.run(index) for index in indices)


def _in_processes(
    task: Numbered, indices: Sequence[int], jobs: int
) -> Generator[Outcome, None, None]:
    """Spread the runs over processes; closing the generator stops those still running."""
    from joblib import Parallel, delayed, parallel_config  # type: ignore[import-untyped]

    from finalist.compiled.folders import prepare

    prepare()
    # joblib batches short runs until one batch takes a fraction of a second.
    calls = (delayed(task.run)(index) for index in indices)
    with parallel_config("loky", inner_max_num_threads=1, initializer=_leave_interrupts):
        results = Parallel(n_jobs=jobs, return_as="generator_unordered")(calls)
    try:
        yield from results
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib warns when it is stopped early
            results.close()


def _leave_interrupts() -> None:
    """Ignore Ctrl-C, which reaches every process of a terminal; the parent handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _checked_jobs(n_jobs: int) -> int:
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or not (n_jobs == -1 or n_jobs > 0):
        raise SimulationError(
            f"n_jobs is {n_jobs!r}; it must be a number of processes, or -1 for one per core."
        )
    if n_jobs > 0:
        return n_jobs
    from joblib import cpu_count

    return int(cpu_count())


@contextmanager
def _bar(total: int, wanted: Shown) -> Iterator[Callable[[], None]]:
    """Show how many runs are done and the time left; yield a callback for each finished run.

    Parameters
    ----------
    total : int
        Runs to do.
    wanted : bool, function or None
        None: on a terminal, after a second. True: always, at once. False: never. A function is
        called after each run.
    """
    if callable(wanted):
        done = itertools.count(1)
        yield lambda: wanted(next(done), total)
        return
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    columns = ("Simulating", BarColumn(), MofNCompleteColumn(), "runs", TimeRemainingColumn())
    progress = Progress(*columns, console=console, transient=wanted is None)
    row = progress.add_task("", total=total)
    # A timer, so that the bar also appears during a long first run.
    timer = threading.Timer(0.0 if wanted else _PATIENCE, progress.start)
    timer.start()
    try:
        yield lambda: progress.advance(row)
    finally:
        timer.cancel()
        timer.join()
        progress.stop()


def _check_progress(wanted: object) -> None:
    """Refuse anything but a bool, None or a function."""
    if wanted is not None and not isinstance(wanted, bool) and not callable(wanted):
        raise SimulationError(
            f"progress is {wanted!r}; it must be True, False, None (a bar on a terminal), or a "
            "function of the number of finished runs and of all runs."
        )
