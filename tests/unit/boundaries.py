"""Runs that are told just so much, to see where a rule decides.

Three arms that share nothing are pulled so that the widths are simple: arms 0 and 1 equally often,
arm 2 four times as often and with rewards far behind. Then only arms 0 and 1 are left to tell
apart, and a rule that asks for gap > radius ||y|| is looked at just below and just above the gap
that was worked out by hand.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import finalist as fl
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.strategies.protocol import Batch

THREE = fl.Arms.unstructured(3)
SIGMA, DELTA = 2.0, 0.05
#: How near to the boundary, relatively.
NEAR = 1e-6
#: The mean of the arm that is far behind.
FAR = -1000.0
#: All pulls at the first three looks, and ||e_0 - e_1|| by them: sqrt(1/8 + 1/8) = 1/2, ...
PULLS = ((8, 8, 32), (32, 32, 128), (128, 128, 512))
WIDTHS = (0.5, 0.25, 0.125)
#: Under a ridge that counts as one pull of each arm: sqrt(1/(1 + 7) + 1/(1 + 7)) = 1/2, ...
RIDGED = ((7, 7, 31), (31, 31, 127), (127, 127, 511))


def problem_of(arms: fl.Arms = THREE, **settings: Any) -> Problem:
    """Return the problem of these tests: sigma = 2, delta = 0.05."""
    noise = fl.Gaussian(SIGMA)
    return fl.Problem(arms, noise=noise, **{"delta": DELTA, **settings})


def tell(run: Any, counts: ArrayLike, means: ArrayLike, **note: Any) -> None:
    """Record pulls, of each arm so many with that mean."""
    n = np.array(counts, dtype=np.int64)
    run.record(Batch(n, note), Statistics.of_batch(n, n * np.array(means, dtype=float)))


def after_looks(run: Any, look: int, gap: float, ridge: bool = False, sign: int = 1) -> Any:
    """Look so many times at pulls that say nothing but the last time; arm 0 is ahead by a gap.

    With a ridge that counts as one pull of each arm, means are sum / (1 + n).
    """
    pulls = np.array(RIDGED if ridge else PULLS)
    for k in range(look):
        new = pulls[k] - (pulls[k - 1] if k > 0 else 0)
        assert not run.verdict.decided
        last = k + 1 == look
        whole = pulls[k] + (1 if ridge else 0)
        means = np.array([gap, 0.0, FAR]) * whole / new if last else np.zeros(3)
        tell(run, new, sign * means)
    return run


def after_phases(run: Any, phase: int, gap: float, sign: int = 1) -> Any:
    """End so many phases, each tested by its own rewards; arm 0 is ahead by a gap in the last."""
    for k in range(1, phase + 1):
        assert not run.verdict.decided
        means = np.array([gap, 0.0, FAR]) if k == phase else np.zeros(3)
        tell(run, PULLS[0], sign * means, phase=k, ends=True)
    return run
