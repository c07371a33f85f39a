"""Normal noise."""

from dataclasses import dataclass
from typing import ClassVar

from finalist.problem.features import Feature
from finalist.problem.noise.model import Kind, Unbounded, missing_sigma, needs_of
from finalist.problem.values import UNSET, Sigma, Unset, store_positive


@dataclass(frozen=True)
class Gaussian(Unbounded):
    """Normal noise; `sigma` is its standard deviation, one per arm if a sequence, None if unknown.

    It has to be given.

    Examples
    --------
    >>> Gaussian([1, 2.5])
    Gaussian(sigma=(1.0, 2.5))
    """

    sigma: Sigma = UNSET  # type: ignore[assignment]
    name: ClassVar[str] = "gaussian"
    result: ClassVar[str] = "a number with bell-shaped noise"
    rewards: ClassVar[Kind] = "gaussian"
    normal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.sigma, Unset):
            raise missing_sigma()
        if self.sigma is not None:
            store_positive(self, "sigma", self.sigma, "Use sigma=None if the noise is unknown.")

    @property
    def needs(self) -> frozenset[Feature]:
        """What a strategy has to support."""
        return needs_of(self.sigma)

    def assumption(self, sizes: str) -> str:
        """Say what is assumed."""
        known = "of one unknown size in a batch" if self.sigma is None else sizes
        return f"the noise is Gaussian, {known}"
