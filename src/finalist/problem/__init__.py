"""What is asked: arms, noise, goal, delta, and the rules evidence is computed by."""

from finalist.problem.problem import FEATURES, Feature, Problem, as_problem

__all__ = ["FEATURES", "Feature", "Problem", "as_problem"]
