"""What is asked: arms, noise, goal, delta, and the rules evidence is computed by."""

from finalist.problem.asked import as_problem, study_problem
from finalist.problem.features import FEATURES, Feature
from finalist.problem.goals import Best, EpsilonBest, Goal, TopM
from finalist.problem.mean import Identity, MeanModel
from finalist.problem.noise import Bernoulli, Gaussian, Noise, NoiseModel, SubGaussian
from finalist.problem.problem import Problem
from finalist.problem.values import UNSET, PerArm, Unset

__all__ = [
    "FEATURES",
    "UNSET",
    "Bernoulli",
    "Best",
    "EpsilonBest",
    "Feature",
    "Gaussian",
    "Goal",
    "Identity",
    "MeanModel",
    "Noise",
    "NoiseModel",
    "PerArm",
    "Problem",
    "SubGaussian",
    "TopM",
    "Unset",
    "as_problem",
    "study_problem",
]
