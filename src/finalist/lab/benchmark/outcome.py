"""What came out of a cell: pulls beside the lower bound, errors, batches, CPU."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from finalist.lab.benchmark.plan import Cell
from finalist.simulation import Simulation
from finalist.simulation.bootstrap import FEWEST, mean_interval


@dataclass(frozen=True, eq=False)
class Outcome:
    """The runs of a cell, or why there are none.

    Attributes
    ----------
    cell : Cell
    result : Simulation or None
    reason : str
        Why there is no result, otherwise empty.
    """

    cell: Cell
    result: Simulation | None
    reason: str = ""

    @property
    def measured(self) -> Simulation:
        """The runs; only for cells that have some."""
        assert self.result is not None, self.cell.label
        return self.result

    @cached_property
    def ratios(self) -> Float[np.ndarray, " runs"]:
        """Pulls of each run over the lower bound; at least the cap where it was undecided."""
        found = self.measured
        pulls = np.where(found.decided, found.samples, self.cell.cap)
        return np.asarray(pulls / self.cell.bound)

    @property
    def ratio(self) -> float:
        """Mean pulls over the lower bound; more than that if runs were undecided."""
        return float(self.ratios.mean())

    @cached_property
    def interval(self) -> tuple[float | None, float | None]:
        """The 95 % interval of the ratio (bootstrap); None for an end that is not known.

        With few runs neither end is. Runs that were cut may have needed any number of pulls, so
        that their mean has no upper end; the lower one holds, as each counts at most as it needs.
        """
        if len(self.ratios) < FEWEST:
            return None, None
        low, high = mean_interval(self.ratios)
        return low, None if self.undecided else high

    @property
    def pulls_interval(self) -> tuple[float | None, float | None]:
        """The interval of the mean pulls."""
        low, high = (None if end is None else end * self.cell.bound for end in self.interval)
        return low, high

    @property
    def batches(self) -> float:
        """Mean batches of a run; more than that if runs were undecided.

        A run that was cut had another batch to come, which is counted.
        """
        return float((self.measured.batches + ~self.measured.decided).mean())

    @property
    def undecided(self) -> int:
        """Runs stopped at the cap."""
        return int((~self.measured.decided).sum())

    @property
    def seconds(self) -> float:
        """Median CPU of a run. The first run of a process also loads compiled code."""
        return float(np.median(self.measured.seconds))

    def record(self) -> dict[str, Any]:
        """Return the cell for CSV and JSON; what does not exist is None."""
        cell = self.cell
        about = {
            "instance": cell.instance.name,
            "arms": len(cell.instance.arms),
            "rank": cell.instance.arms.rank,
            "delta": cell.delta,
            "strategy": cell.spec.label,
            "marks": ", ".join(cell.marks),
            "lower_bound": cell.bound,
            "max_pulls": cell.cap,
            "reason": self.reason,
        }
        return about | (_NOTHING if self.result is None else self._figures())

    def _figures(self) -> dict[str, Any]:
        found, bound = self.measured, self.cell.bound
        (low, high), (few, many) = self.interval, self.pulls_interval
        least, most = found.error_bounds()
        return {
            "runs": len(found),
            "undecided": self.undecided,
            "mean_pulls": self.ratio * bound,
            "mean_pulls_low": few,
            "mean_pulls_high": many,
            "ratio": self.ratio,
            "ratio_low": low,
            "ratio_high": high,
            "errors": found.errors,
            "error_low": least,
            "error_high": most,
            "mean_batches": self.batches,
            "median_cpu_seconds": self.seconds,
        }


_FIGURES = (
    "runs undecided mean_pulls mean_pulls_low mean_pulls_high ratio ratio_low ratio_high errors "
    "error_low error_high mean_batches median_cpu_seconds"
)
_NOTHING: dict[str, Any] = dict.fromkeys(_FIGURES.split())
