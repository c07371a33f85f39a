"""Simulate cases through a store of results, so that a stopped reproduction can continue."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from finalist.lab.paper.experiment import DELTA, SIGMA, Case, Extent, instance
from finalist.simulation.summary import mean_interval

if TYPE_CHECKING:
    from finalist.simulation import Simulation

#: Called before each case with its number, how many there are, and the case.
Announce = Callable[[int, int, Case], None]
STORE = "results.sqlite"
#: Runs stored together: a full reproduction reuses the blocks of a quick one.
_BLOCK = 10


@dataclass(frozen=True, eq=False)
class Tally:
    """The results of the runs of a case.

    Attributes
    ----------
    samples : (runs,) array of int
        Pulls of each run.
    pulls : (K,) array
        Mean pulls of each arm.
    wrong : int
        Runs that did not return the best arm.
    """

    samples: Int[np.ndarray, " runs"]
    pulls: Float[np.ndarray, " K"]
    wrong: int

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.samples)

    @property
    def mean(self) -> float:
        """Mean pulls of a run."""
        return float(self.samples.mean())

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % bootstrap interval of the mean."""
        return mean_interval(self.samples)

    @property
    def shares(self) -> Float[np.ndarray, " K"]:
        """The share of all pulls that each arm gets."""
        return np.asarray(self.pulls / self.pulls.sum())


#: What was measured of each case.
Tallies = Mapping[Case, Tally]


def distinct(cases: Iterable[Case]) -> list[Case]:
    """Return every case once, the quickest first, so that errors show early."""
    return sorted(dict.fromkeys(cases), key=lambda case: case.seconds(1))


def measure(
    cases: Iterable[Case],
    extent: Extent,
    folder: Path,
    *,
    seed: int = 0,
    jobs: int = 1,
    announce: Announce | None = None,
) -> dict[Case, Tally]:
    """Simulate every case once; runs in the folder's store are not simulated again.

    Parameters
    ----------
    cases : iterable of Case
    extent : Extent
        How many runs each case gets.
    folder : Path
        Where `results.sqlite` is, or will be.
    seed, jobs : int
        Of the simulations; results do not depend on the number of jobs.
    announce : function, optional
        Called before each case.

    Raises
    ------
    KeyboardInterrupt
        If the simulation of a case is interrupted; finished blocks are in the store.
    """
    from finalist.lab.store import Store

    tallies: dict[Case, Tally] = {}
    wanted = distinct(cases)
    with Store(folder / STORE) as store:
        for number, case in enumerate(wanted, 1):
            if announce is not None:
                announce(number, len(wanted), case)
            problem, runs = instance(case.d), extent.runs_of(case)
            found = store.simulate(
                problem.arms,
                problem.theta,
                case.strategy(problem),
                sigma=SIGMA,
                delta=DELTA,
                runs=runs,
                block=_BLOCK,
                seed=seed,
                n_jobs=jobs,
                progress=False,
            )
            if len(found.samples) < runs:
                raise KeyboardInterrupt
            tallies[case] = _tally(found)
    return tallies


def _tally(found: "Simulation") -> Tally:
    return Tally(found.samples, found.pulls_per_arm.mean(axis=0), int((~found.correct).sum()))
