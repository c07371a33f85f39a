"""What the gauntlet bets against: claims, of which the true ones are rejected with little chance.

Claims say what they want to know, note with every batch which pair of arms attacks each of them,
and draw their conclusions from the bets. The attacks are fixed before the batch is seen.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from finalist.inference.information import Information
from finalist.problem import Problem
from finalist.shapes import Float, Int
from finalist.strategies.abilities import Evidence
from finalist.strategies.gauntlet.bets import FIRST_ODDS, ODDS, Bets, Odds
from finalist.strategies.gauntlet.contrasts import Pairs
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.stakes import Stakes
from finalist.strategies.gauntlet.targets import Comparisons
from finalist.strategies.protocol import Batch, Verdict

#: Estimates of differences with half-widths, `GauntletRun.interval`.
Intervals = Callable[
    [Float[np.ndarray, "M r"]], tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]]
]

#: V1 is set anew where a direction has so many times more or less of it.
FACTOR = 30.0


@dataclass(frozen=True, eq=False)
class Wager:
    """Bets on what a batch says of pairs, plus epsilon; `at` are the claims that they attack.

    `odds`, if given, has drifts in units of epsilon.
    """

    bets: Bets
    at: Int[np.ndarray, " n"]
    pairs: Pairs
    epsilon: float = 0.0
    odds: Odds | None = None

    def place(
        self, scores: Float[np.ndarray, " n"], tested: Int[np.ndarray, " t"], stakes: Stakes
    ) -> None:
        """Bet on the scores of the pairs that are tested."""
        n, at = len(self.bets.log_m), self.at[tested]
        z, some = np.zeros(n), np.zeros(n, dtype=bool)
        z[at], some[at] = scores[tested], True
        speed, before, expert = stakes.among(n, at)
        self.bets.place(z, speed, some, before, expert)

    def open(self, at: Int[np.ndarray, " t"], scale: Float[np.ndarray, " t"], sigma: float) -> None:
        """Set V1 of claims that are tested for the first time, or in quite another direction.

        Gaps to one rival and to another may differ by any factor (arms that are nearly the same),
        and a grid that is laid out for the one says nothing of the other.
        """
        if self.odds is not None:
            scale = np.full(len(at), (sigma / self.epsilon) ** 2)
        old = self.bets.scale[at]
        other = (old < scale / FACTOR) | (old > scale * FACTOR)
        self.bets.scale[at[other]] = scale[other]


@runtime_checkable
class Claims(Protocol):
    """Claims about arms, with the bets against them."""

    @property
    def bets(self) -> Bets:
        """The bets, at least one."""
        ...

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

    def purpose(self, batch: Batch, past: Past) -> str:
        """Say what a batch with the note of `attack` tests."""
        ...

    def check(self, note: Mapping[str, Any]) -> None:
        """Refuse a note that is not as `attack` returns it; that of a pilot has no attacks."""
        ...

    def move(self, note: Mapping[str, Any]) -> None:
        """Prepare bets for an epoch that begins, as its note says."""
        ...

    def wagers(self, note: Mapping[str, Any]) -> Iterator[Wager]:
        """Yield what is bet on a batch; each bet is placed before the next one is asked for."""
        ...

    def settle(self, note: Mapping[str, Any], past: Past, pulls: int) -> None:
        """Conclude from the bets on a batch of so many pulls."""
        ...

    def end_epoch(self) -> None:
        """Begin all bets anew from what the past says: the path of an epoch is part of it now."""
        ...

    def copy(self) -> "Claims":
        """Return claims that change independently of these."""
        ...


def bets_against(problem: Problem, claims: int, level: float | Float[np.ndarray, " K"]) -> Bets:
    """Return bets against a number of claims, by the rules of the problem."""
    rules = problem.rules
    odds = ODDS if rules.epochs else FIRST_ODDS
    return Bets.against(claims, level, problem.noise.normal, rules.untilted, odds)


def can_test(problem: Problem, counts: Int[np.ndarray, " K"], info: Information) -> bool:
    """Return whether a batch can test at all: residuals are needed to estimate sigma."""
    return problem.noise.sigma is not None or int(counts.sum()) > info.rank
