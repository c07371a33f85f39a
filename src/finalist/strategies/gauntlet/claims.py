"""What the gauntlet bets against: claims, of which the true ones are rejected with little chance.

Claims say what they want to know, note with every batch which pair of arms attacks each of them,
and draw their conclusions from the bets. The attacks are fixed before the batch is seen.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from finalist.inference.information import Information
from finalist.problem import Problem
from finalist.strategies.gauntlet.bets import Bets
from finalist.strategies.gauntlet.contrasts import Pairs
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.targets import Comparisons
from finalist.strategies.protocol import Verdict

#: Bets on what a batch says of pairs, plus epsilon: the bets, the numbers of those of the pairs.
Place = Callable[[Bets, Int[np.ndarray, " n"], Pairs, float], None]
#: Estimates of differences with half-widths, `GauntletRun.interval`.
Intervals = Callable[
    [Float[np.ndarray, "M r"]], tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]]
]


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence against "this arm is best", for every arm.

    Attributes
    ----------
    share : (K,) array
        log M / log(1/delta) in [0, 1]; an arm is rejected at 1.
    p_value : (K,) array
        1 / M, valid at any time; never below the level at which bets end: delta, or its
        share for each claim (delta / 2 with epsilon, less by pairs).
    rival : (K,) array of int
        The arm that last spoke against each; -1 if none has.
    rejected : (K,) array of bool
    """

    share: Float[np.ndarray, " K"]
    p_value: Float[np.ndarray, " K"]
    rival: Int[np.ndarray, " K"]
    rejected: Bool[np.ndarray, " K"]


@runtime_checkable
class Claims(Protocol):
    """Claims about arms, with the bets against them."""

    bets: Bets

    def verdict(self, pulls: int) -> Verdict:
        """Return what is certain after so many pulls."""
        ...

    def evidence(self) -> Evidence:
        """Return the evidence against every arm, as people look at it."""
        ...

    def words(self, past: Past, interval: Intervals) -> str:
        """Say in one sentence what is certain now, after the pilot."""
        ...

    def wanted(self, past: Past) -> Comparisons:
        """Return which arms to tell apart."""
        ...

    def attack(
        self, past: Past, counts: Int[np.ndarray, " K"], info: Information
    ) -> dict[str, Any]:
        """Return the note of a batch: who attacks which claim, from the past and the counts."""
        ...

    def check(self, note: Mapping[str, Any]) -> None:
        """Refuse a note that is not as `attack` returns it; that of a pilot has no attacks."""
        ...

    def settle(self, note: Mapping[str, Any], past: Past, pulls: int, place: Place) -> None:
        """Place the bets on a batch of so many pulls, and conclude."""
        ...


def bets_against(problem: Problem, claims: int, level: float) -> Bets:
    """Return bets against a number of claims, by the rules of the problem."""
    return Bets.against(claims, level, problem.noise.normal, problem.rules.untilted)


def can_test(problem: Problem, counts: Int[np.ndarray, " K"], info: Information) -> bool:
    """Return whether a batch can test at all: residuals are needed to estimate sigma."""
    return problem.noise.sigma is not None or int(counts.sum()) > info.rank
