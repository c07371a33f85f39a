"""Rewards 0 and 1."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from finalist.errors import RewardError
from finalist.problem.features import Feature
from finalist.problem.noise.model import Kind
from finalist.shapes import Float


@dataclass(frozen=True)
class Bernoulli:
    """Rewards 0 and 1: sub-Gaussian with sigma = 1/2 (Hoeffding's lemma)."""

    sigma: ClassVar[float] = 0.5
    name: ClassVar[str] = "bernoulli"
    result: ClassVar[str] = "success or failure, 1 or 0"
    rewards: ClassVar[Kind] = "bernoulli"
    normal: ClassVar[bool] = False
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    needs: ClassVar[frozenset[Feature]] = frozenset({"bernoulli"})

    def refuse(self, rewards: Float[np.ndarray, " n"], whose: Callable[[int], str]) -> None:
        """Accept 0 and 1 alone."""
        bad = np.flatnonzero((rewards != 0.0) & (rewards != 1.0))
        if len(bad):
            raise RewardError(
                f"the result of {whose(int(bad[0]))} is {rewards[bad[0]]}; the noise is "
                "Bernoulli, so a result is 0 or 1."
            )

    def assumption(self, sizes: str) -> str:  # noqa: ARG002
        """Say what is assumed."""
        return "results are 0 or 1"
