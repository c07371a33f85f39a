"""The models of the noise by their names, and how a problem asks for one."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from finalist.errors import ProblemError
from finalist.problem.noise.bernoulli import Bernoulli
from finalist.problem.noise.gaussian import Gaussian
from finalist.problem.noise.subgaussian import SubGaussian
from finalist.problem.values import PerArm, Unset

Noise = Gaussian | SubGaussian | Bernoulli

#: A new model is a class in a file of its own and a line here.
NOISES: Mapping[str, Any] = {model.name: model for model in (Gaussian, SubGaussian, Bernoulli)}


def takes_sigma(name: str) -> bool:
    """Return whether a model is given its size; the others have one of their own.

    Examples
    --------
    >>> takes_sigma("gaussian"), takes_sigma("bernoulli")
    (True, False)
    """
    return "sigma" in [field.name for field in fields(NOISES[name])]


def as_noise(sigma: PerArm | Unset | None, noise: Noise | str | None) -> Noise:
    """Return the model that `sigma=` and `noise=` of a public function mean together."""
    if noise is None:
        noise = Gaussian.name
    if isinstance(noise, str) and noise not in NOISES:
        raise ProblemError(f"noise is {noise!r}; it is one of {', '.join(NOISES)}.")
    if isinstance(noise, str) and takes_sigma(noise):
        return noise_from(noise, sigma)  # refuses one that was left out
    if not isinstance(sigma, Unset):
        raise ProblemError(f"sigma={sigma!r} and noise={noise!r} are both given; give one.")
    return noise_from(noise, sigma) if isinstance(noise, str) else noise


def noise_from(name: str, sigma: Any) -> Noise:
    """Return the model that settings name, with the size that they keep for it."""
    model: Noise = NOISES[name](sigma) if takes_sigma(name) else NOISES[name]()
    return model
