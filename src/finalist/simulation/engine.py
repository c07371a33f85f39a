"""Many runs of a strategy with drawn rewards, in this process or in several.

Every run is the same whatever the number of runs or processes. Ctrl-C ends a simulation with the
runs that are finished.
"""

import signal
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from finalist.arms import Arms
from finalist.errors import SimulationError
from finalist.problem.noise import UNSET, Noise, PerArm, Unset
from finalist.simulation.progress import Shown, bar, check_progress
from finalist.simulation.result import Simulation
from finalist.simulation.rewards import Kind, RewardFunction
from finalist.simulation.task import Numbered, Outcome, Task, make_task, whole
from finalist.strategies import Strategy


def simulate(
    arms: Arms,
    theta: ArrayLike,
    strategy: Strategy | str = "gauntlet",
    *,
    sigma: PerArm | Unset | None = UNSET,
    delta: float = 0.05,
    runs: int = 100,
    seed: int = 0,
    n_jobs: int = 1,
    rewards: Kind | RewardFunction | None = None,
    noise: Noise | str | None = None,
    objective: Literal["max", "min"] = "max",
    epsilon: float = 0.0,
    top: int = 1,
    max_pulls: int = 10**9,
    budget: int | None = None,
    size: int | None = None,
    candidates: Arms | None = None,
    cost: PerArm = 1.0,
    batch_intercept: bool = False,
    misspecification: float = 0.0,
    shift: float = 0.0,
    deviations: ArrayLike | None = None,
    progress: Shown = None,
) -> Simulation:
    """Run a strategy many times with rewards drawn from a known parameter.

    Parameters
    ----------
    arms : Arms
    theta : (d,) array-like
        The true parameter; the expected rewards are X theta.
    strategy : str or Strategy
        A name, or a configured object such as `XYAdaptive(alpha=0.1)`.
    sigma : float, (K,) sequence or None
        Size of the noise, of all arms or of each, also of the rewards drawn. None if the strategy
        is not to know it; then `rewards` is a function. Has to be given unless `noise` has its own.
    delta : float
        Probability with which the strategy may be wrong.
    runs : int
        How many runs.
    seed : int
        Run i depends on the seed and i alone.
    n_jobs : int
        Processes; 1 is this one, -1 is one for every core.
    rewards : "gaussian", "bounded", "bernoulli" or function, optional
        What is drawn, by default what `noise` speaks of: normal noise, noise of +sigma or
        -sigma, or rewards 0 and 1. A function is called as `rewards(arm, n, rng)` and returns n
        rewards of an arm given by its index.
    noise : Noise or "gaussian", "sub-gaussian", "bernoulli", optional
        What the strategy assumes; "bernoulli" has its own sigma.
    objective : "max" or "min"
        Whether the largest or the smallest mean is best.
    epsilon : float
        Positive: an arm within `epsilon` of the best is good enough.
    top : int
        How many of the best arms are asked for; `winner` is then the first of them.
    max_pulls : int
        A run that needs more is stopped and counted as undecided; not used with a budget.
    budget : int, optional
        The pulls there are: a run ends with its winner, or when they are used up. Then the best
        of the arms that are left is recommended, without a guarantee. Strategies for a fixed
        budget ("od-linbai", "gse", "peace", "g-budget") need it.
    size : int, optional
        Pulls of a batch, as a plate has them; one that is too small to test with is joined with
        the next. By default every strategy takes the sizes it likes best, or looks at each pull.
    candidates : Arms, optional
        What the winner is chosen from, by measuring `arms`; see `Problem`. The arms of the result
        are both, the candidates last.
    cost : float or (K,) sequence
        Cost of a pull; strategies that know of it keep the cost low instead of the pulls.
    batch_intercept : bool
        Whether the strategy allows for a constant that all rewards of a batch share.
    misspecification : float
        How far, at most, the strategy allows means to be from the linear model.
    shift : float
        Standard deviation of the constant that is drawn for each batch.
    deviations : (K,) array-like, optional
        How far the mean of each arm is from the linear model.
    progress : bool or function, optional
        Whether to show a bar on stderr; by default on a terminal, after a second. A function is
        called after each run with how many are done, and of how many.

    Returns
    -------
    Simulation
        On Ctrl-C with the runs finished so far; KeyboardInterrupt if there is none.

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
        sigma=sigma,
        noise=noise,
        delta=delta,
        objective=objective,
        epsilon=epsilon,
        top=top,
        budget=budget,
        size=size,
        candidates=candidates,
        cost=cost,
        batch_intercept=batch_intercept,
        misspecification=misspecification,
        shift=shift,
        deviations=deviations,
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
    """Return the outcomes of runs in the order in which they end; fewer of them on Ctrl-C.

    Parameters
    ----------
    task : Task, or whatever has runs by number
    indices : sequence of int
        Which runs.
    n_jobs : int
    progress : bool, function or None
    each : function, optional
        Called with every outcome as it comes.
    """
    check_progress(progress)
    jobs = min(_checked_jobs(n_jobs), len(indices))
    stream = _here(task, indices) if jobs <= 1 else _in_processes(task, indices, jobs)
    outcomes: list[Outcome] = []
    try:
        with bar(len(indices), progress) as advance, closing(stream):
            for outcome in stream:
                outcomes.append(outcome)
                advance()
                if each is not None:
                    each(outcome)
    except KeyboardInterrupt:
        pass  # the result says how many runs are missing
    return outcomes


def gather(task: Task, outcomes: Sequence[Outcome], requested: int) -> Simulation:
    """Put outcomes together in the order of their runs."""
    ordered = sorted(outcomes, key=lambda outcome: outcome.run)
    return Simulation(
        arms=task.problem.arms.names,
        name=task.strategy.name,
        strategy=repr(task.strategy),
        delta=task.problem.delta,
        seed=task.seed,
        requested=requested,
        run=np.array([o.run for o in ordered], dtype=np.int64),
        winner=np.array([o.winner for o in ordered], dtype=np.int64),
        correct=np.array([o.correct for o in ordered], dtype=bool),
        pulls_per_arm=np.array([o.pulls for o in ordered], dtype=np.int64),
        batches=np.array([o.batches for o in ordered], dtype=np.int64),
        seconds=np.array([o.seconds for o in ordered], dtype=float),
        certain=np.array([o.certain for o in ordered], dtype=bool),
        budget=task.problem.budget,
        costs=None if task.problem.cost == 1.0 else task.problem.costs,
    )


def _here(task: Numbered, indices: Sequence[int]) -> Generator[Outcome, None, None]:
    return (task.run(index) for index in indices)


def _in_processes(
    task: Numbered, indices: Sequence[int], jobs: int
) -> Generator[Outcome, None, None]:
    """Share the runs among processes; closing the generator ends those that are at work."""
    from joblib import Parallel, delayed, parallel_config  # type: ignore[import-untyped]

    from finalist.compiled.folders import prepare

    prepare()
    # joblib sends short runs in larger and larger parcels, until one takes a fraction of a second.
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
    """Leave Ctrl-C, which reaches all processes of a terminal, to the one that started them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _checked_jobs(n_jobs: int) -> int:
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or not (n_jobs == -1 or n_jobs > 0):
        raise SimulationError(
            f"n_jobs is {n_jobs!r}; it is the number of processes, or -1 for one on every core."
        )
    if n_jobs > 0:
        return n_jobs
    from joblib import cpu_count

    return int(cpu_count())
