"""Noise that is not wilder than normal noise of a known size."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from finalist.problem.features import Feature
from finalist.problem.noise.model import BOUNDED, Kind, missing_sigma, needs_of
from finalist.problem.values import UNSET, KnownSigma, Unset, store_positive


@dataclass(frozen=True)
class SubGaussian:
    """Noise with E exp(l e) <= exp(l^2 sigma^2 / 2); values in [a, b] have sigma = (b - a) / 2.

    Examples
    --------
    >>> SubGaussian(0.5)
    SubGaussian(sigma=0.5)
    """

    sigma: KnownSigma = UNSET  # type: ignore[assignment]
    name: ClassVar[str] = "sub-gaussian"
    rewards: ClassVar[Kind] = "bounded"
    normal: ClassVar[bool] = False
    range: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    def __post_init__(self) -> None:
        if isinstance(self.sigma, Unset):
            raise missing_sigma(noise="sub-gaussian")
        store_positive(self, "sigma", self.sigma, BOUNDED)

    @property
    def needs(self) -> frozenset[Feature]:
        """What a strategy has to support."""
        return needs_of(self.sigma) | {"sub-gaussian"}

    def refuse(self, rewards: Float[np.ndarray, " n"], whose: Callable[[int], str]) -> None:
        """Accept every finite reward."""

    def assumption(self, sizes: str) -> str:
        """Say what is assumed."""
        return f"the noise is sub-Gaussian {sizes}"
