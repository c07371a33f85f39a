"""What both courses of the gauntlet have: batches that are tested one by one, and epochs."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from finalist.errors import ProblemError, RewardError
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.strategies.gauntlet.claims import Claims
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.planner import Planner
from finalist.strategies.protocol import Batch, Verdict

UNKNOWN = "this batch has no note; record batches as `next` returns them."


class Course(ABC):
    """What is measured when, and when it is tested.

    Attributes
    ----------
    past : Past
        What the chooser knows.
    claims : Claims
        What is bet against.
    used : int or None
        The results after which it was decided, if it was before the last one.
    """

    def __init__(self, past: Past, planner: Planner, claims: Claims) -> None:
        self.past, self.planner, self.claims = past, planner, claims
        self.used: int | None = None

    @property
    def verdict(self) -> Verdict:
        """What is certain now."""
        return self.claims.verdict(self.past.pulls)

    @abstractmethod
    def next(self, size: int | None) -> Batch:
        """Return the next batch."""

    @abstractmethod
    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Turn a complete batch into evidence; then learn from it."""

    @abstractmethod
    def purpose(self, batch: Batch) -> str:
        """Say what a batch is for."""

    @abstractmethod
    def check(self, note: Any) -> None:
        """Refuse a note that is not as `next` returns it."""

    @property
    @abstractmethod
    def own_size(self) -> int:
        """The size of the next batch unless another is asked for."""

    @property
    @abstractmethod
    def least_size(self) -> int:
        """The smallest batch that is ever tested."""

    def ask_anew(self, problem: Problem) -> None:
        """Go on with another budget: only what chooses knows of it."""
        self.past.problem = problem

    def check_due(self, batch: Batch, rewards: Statistics) -> None:
        """Refuse batches that were not issued for this moment: each is tested once, in order."""
        number, recorded = batch.note.get("batch"), self.past.recorded
        if number is None or "kind" not in batch.note:
            raise ProblemError(UNKNOWN)
        if number != recorded:
            raise ProblemError(
                f"this is batch {number} and batch {recorded} is due; each batch is recorded "
                "once, in the order of issue."
            )
        unknown = self.past.problem.noise.sigma is None
        if unknown and np.isnan(rewards.m2[batch.counts > 0]).any():
            raise RewardError(
                "sigma is unknown and these rewards are sums without their scatter; give each "
                "reward, or add_batch(count, total, squares)."
            )
        self.check(batch.note)
