"""Models of the noise: one class in one file each."""

from finalist.problem.noise.bernoulli import Bernoulli
from finalist.problem.noise.gaussian import Gaussian
from finalist.problem.noise.model import NoiseModel, missing_sigma
from finalist.problem.noise.models import NOISES, Noise, as_noise, noise_from, takes_sigma
from finalist.problem.noise.subgaussian import SubGaussian

__all__ = [
    "NOISES",
    "Bernoulli",
    "Gaussian",
    "Noise",
    "NoiseModel",
    "SubGaussian",
    "as_noise",
    "missing_sigma",
    "noise_from",
    "takes_sigma",
]
