"""Models of the noise, and goals: the two words of a problem that are values of their own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from numbers import Real
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from finalist.errors import ProblemError

#: One number for all arms, or one per arm; stored as a float or a tuple of floats.
PerArm = float | Sequence[float] | np.ndarray


class Unset(Enum):
    """Tells an argument left out from one that is None."""

    UNSET = "unset"


UNSET = Unset.UNSET
if TYPE_CHECKING:
    Sigma = PerArm | None
    KnownSigma = PerArm
else:  # UNSET is refused
    Sigma = PerArm | Unset | None
    KnownSigma = PerArm | Unset


#: What sigma of sub-Gaussian noise is.
_BOUNDED = (
    "For values in [a, b] it is (b - a) / 2: their standard deviation may be far smaller, and is "
    "not enough. It has to be known."
)


def missing_sigma(
    sigma: str = "sigma",
    unknown: str = "None if it is unknown: the gauntlet then estimates Gaussian noise from the "
    "rewards; a plan or a complexity needs a guess",
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
    (from repeats of one arm; at most (b - a) / 2 for rewards in [a, b]), or as 'unknown'. Rewards
    0 and 1 have sigma 1/2.
    """
    if noise == "sub-gaussian":
        return ProblemError(
            f"sigma is not given. For sub-Gaussian noise give {sigma} as a number. {_BOUNDED}"
        )
    return ProblemError(
        "sigma is not given, and it is never assumed: one that is too small makes the answer "
        f"wrong more often than delta says. Give {sigma} as a number, the standard deviation of "
        "one measurement (from repeats of one arm; at most (b - a) / 2 for rewards in [a, b]), or "
        f"as {unknown}. Rewards 0 and 1 have sigma 1/2{binary}."
    )


@dataclass(frozen=True)
class Gaussian:
    """Normal noise; `sigma` is its standard deviation, one per arm if a sequence, None if unknown.

    It has to be given.

    Examples
    --------
    >>> Gaussian([1, 2.5])
    Gaussian(sigma=(1.0, 2.5))
    """

    sigma: Sigma = UNSET  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if isinstance(self.sigma, Unset):
            raise missing_sigma()
        if self.sigma is not None:
            store_positive(self, "sigma", self.sigma, "Use sigma=None if the noise is unknown.")


@dataclass(frozen=True)
class SubGaussian:
    """Noise with E exp(l e) <= exp(l^2 sigma^2 / 2); values in [a, b] have sigma = (b - a) / 2.

    Examples
    --------
    >>> SubGaussian(0.5)
    SubGaussian(sigma=0.5)
    """

    sigma: KnownSigma = UNSET  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if isinstance(self.sigma, Unset):
            raise missing_sigma(noise="sub-gaussian")
        store_positive(self, "sigma", self.sigma, _BOUNDED)


@dataclass(frozen=True)
class Bernoulli:
    """Rewards 0 and 1: sub-Gaussian with sigma = 1/2 (Hoeffding's lemma)."""

    sigma: ClassVar[float] = 0.5


Noise = Gaussian | SubGaussian | Bernoulli


@dataclass(frozen=True)
class Best:
    """Find the best arm."""


@dataclass(frozen=True)
class EpsilonBest:
    """Find an arm whose mean is less than `epsilon` away from the best one's."""

    epsilon: float

    def __post_init__(self) -> None:
        epsilon = checked_number(self.epsilon, "epsilon")
        if not (np.isfinite(epsilon) and epsilon > 0):
            raise ProblemError(f"epsilon is {epsilon}; it is positive and finite. 0 means Best().")
        object.__setattr__(self, "epsilon", epsilon)


@dataclass(frozen=True)
class TopM:
    """Find the `m` best arms."""

    m: int

    def __post_init__(self) -> None:
        if isinstance(self.m, bool) or not isinstance(self.m, (int, np.integer)) or self.m < 1:
            raise ProblemError(f"m is {self.m!r}; it is the number of arms to find, 1 or more.")
        object.__setattr__(self, "m", int(self.m))


Goal = Best | EpsilonBest | TopM


_NOISE_WITH_SIGMA: dict[str, Callable[..., Noise]] = {
    "gaussian": Gaussian,
    "sub-gaussian": SubGaussian,
}


def as_noise(sigma: PerArm | Unset | None, noise: Noise | str | None) -> Noise:
    """Return the model that `sigma=` and `noise=` of a public function mean together."""
    if noise is None:
        noise = "gaussian"
    if isinstance(noise, str) and noise in _NOISE_WITH_SIGMA:
        return _NOISE_WITH_SIGMA[noise](sigma)  # refuses one that was left out
    if isinstance(noise, str) and noise != "bernoulli":
        known = ", ".join([*_NOISE_WITH_SIGMA, "bernoulli"])
        raise ProblemError(f"noise is {noise!r}; it is one of {known}.")
    if not isinstance(sigma, Unset):
        raise ProblemError(f"sigma={sigma!r} and noise={noise!r} are both given; give one.")
    return Bernoulli() if isinstance(noise, str) else noise


def checked_number(value: object, what: str) -> float:
    """Return a number as a float; text and bools are refused."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ProblemError(f"{what} is {value!r}, which is no number.")
    return float(value)


def store_positive(owner: object, name: str, value: object, remedy: str) -> None:
    """Set a positive number, or one per arm as a tuple, on a frozen dataclass."""
    try:
        array = np.asarray(value)
    except ValueError:  # sequences of unequal length
        array = np.asarray(None)
    if array.dtype.kind not in "iuf" or array.ndim > 1:
        raise ProblemError(f"{name} is {value!r}; it is a number, or one per arm. {remedy}")
    bad = np.flatnonzero(~(np.isfinite(array) & (array > 0)))
    if len(bad):
        where = f" for arm {bad[0]}" if array.ndim else ""
        shown = np.ravel(array)[bad[0]]
        raise ProblemError(f"{name}{where} is {shown}; it is positive and finite. {remedy}")
    stored = tuple(map(float, array)) if array.ndim else float(array)
    object.__setattr__(owner, name, stored)
