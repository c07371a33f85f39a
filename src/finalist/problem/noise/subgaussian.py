"""Noise that is not wilder than normal noise of a known size."""

from dataclasses import dataclass
from typing import ClassVar

from finalist.problem.features import Feature
from finalist.problem.noise.model import BOUNDED, Kind, Unbounded, missing_sigma, needs_of
from finalist.problem.values import UNSET, KnownSigma, Unset, store_positive


@dataclass(frozen=True)
class SubGaussian(Unbounded):
    """Noise with E exp(l e) <= exp(l^2 sigma^2 / 2); values in [a, b] have sigma = (b - a) / 2.

    Examples
    --------
    >>> SubGaussian(0.5)
    SubGaussian(sigma=0.5)
    """

    sigma: KnownSigma = UNSET  # type: ignore[assignment]
    name: ClassVar[str] = "sub-gaussian"
    result: ClassVar[str] = "a number with any noise that is not wilder than sigma"
    rewards: ClassVar[Kind] = "bounded"
    normal: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if isinstance(self.sigma, Unset):
            raise missing_sigma(noise="sub-gaussian")
        store_positive(self, "sigma", self.sigma, BOUNDED)

    @property
    def needs(self) -> frozenset[Feature]:
        """What a strategy has to support."""
        return needs_of(self.sigma) | {"sub-gaussian"}

    def assumption(self, sizes: str) -> str:
        """Say what is assumed."""
        return f"the noise is sub-Gaussian {sizes}"
