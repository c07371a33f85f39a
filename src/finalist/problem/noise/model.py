"""What a model of the noise has to say of itself."""

from collections.abc import Callable
from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from finalist.errors import ProblemError
from finalist.problem.features import Feature
from finalist.problem.values import PerArm
from finalist.shapes import Float

#: How rewards are drawn in a simulation.
Kind = Literal["gaussian", "bounded", "bernoulli"]


@runtime_checkable
class NoiseModel(Protocol):
    """A model of the noise: one class in one file, and a line in `NOISES`.

    Attributes
    ----------
    name : str
        As settings call it.
    result : str
        What a result is, for people who choose a model.
    rewards : str
        The kind of rewards that a simulation draws.
    normal : bool
        Whether scores are normal, or Student's if sigma is unknown: only then is the size of a
        bet capped, is too little noise suspicious, and is the lower bound known.
    range : (float, float)
        Between which values a mean lies.
    """

    name: ClassVar[str]
    result: ClassVar[str]
    rewards: ClassVar[Kind]
    normal: ClassVar[bool]
    range: ClassVar[tuple[float, float]]

    @property
    def sigma(self) -> PerArm | None:
        """Its size, of all arms or of each; None if unknown."""
        ...

    @property
    def needs(self) -> frozenset[Feature]:
        """What a strategy has to support."""
        ...

    def refuse(self, rewards: Float[np.ndarray, " n"], whose: Callable[[int], str]) -> None:
        """Raise `RewardError` at the first reward that cannot be; `whose` names the i-th."""
        ...

    def assumption(self, sizes: str) -> str:
        """Say what is assumed; `sizes` describes a known sigma: "of size 2"."""
        ...


class Unbounded:
    """Noise that allows every finite reward."""

    range: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    def refuse(self, rewards: Float[np.ndarray, " n"], whose: Callable[[int], str]) -> None:
        """Accept every finite reward."""


def needs_of(sigma: PerArm | None) -> frozenset[Feature]:
    """Return what a size of the noise asks of a strategy."""
    if sigma is None:
        return frozenset({"unknown sigma"})
    return frozenset({"sigma per arm"}) if isinstance(sigma, tuple) else frozenset()


#: What sigma of sub-Gaussian noise is.
BOUNDED = (
    "For values in [a, b] it is (b - a) / 2: their standard deviation may be far smaller, and is "
    "not enough. It has to be known."
)


def missing_sigma(
    sigma: str = "sigma",
    unknown: str = "None if it is unknown: then Gaussian noise is estimated from the "
    "results; a plan or a complexity needs a guess",
    binary: str = ": noise='bernoulli' needs no other",
    noise: str = "gaussian",
) -> ProblemError:
    """Return the error for a sigma that was left out.

    Parameters
    ----------
    sigma, unknown, binary : str
        How its name, an unknown one, and rewards 0 and 1 are said where it is asked for.
    noise : str
        The model; the standard deviation is not enough for sub-Gaussian noise.

    Examples
    --------
    >>> print(missing_sigma("--sigma", "'unknown'", ""))
    sigma is not given, and it is never assumed: one that is too small makes the answer wrong more
    often than delta says. Give --sigma as a number, the standard deviation of one measurement
    (from repeats of one candidate; at most (b - a) / 2 for results in [a, b]), or as 'unknown'.
    Results 0 and 1 have sigma 1/2.
    """
    if noise == "sub-gaussian":
        return ProblemError(
            f"sigma is not given. For sub-Gaussian noise give {sigma} as a number. {BOUNDED}"
        )
    return ProblemError(
        "sigma is not given, and it is never assumed: one that is too small makes the answer "
        f"wrong more often than delta says. Give {sigma} as a number, the standard deviation of "
        "one measurement (from repeats of one candidate; at most (b - a) / 2 for results in "
        "[a, b]), or "
        f"as {unknown}. Results 0 and 1 have sigma 1/2{binary}."
    )
