"""How often the contract catches widths that are too narrow, and what whole ones show.

    python -m tests.statistical.contract_power [--runs 2000]

Each strategy is told that sigma is a part of what it is, which makes its widths that part. Runs
have other seeds than those of `check_strategy`. From their error rate follows the probability that
as many of the runs of a trial are wrong as it takes to be told off, by the binomial distribution.
"""

import argparse
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.stats import binom

import finalist as fl
from finalist.problem import as_problem
from finalist.strategies import Run, Strategy
from finalist.testing.rules_of_errors import TIED, TRIALS, Trial, ensure_rare
from finalist.testing.runs import maker, play

STRATEGIES = ("uniform", "g", "xy-adaptive", "rage", "lingape", "gauntlet")
FIRST_SEED = 100_000


@dataclass(frozen=True)
class Narrow:
    """A strategy that believes in less noise than there is."""

    name: ClassVar[str] = "narrow"
    like: Strategy
    part: float

    def start(self, problem: fl.Problem, seed: int = 0) -> Run:
        """Begin with a problem that it takes for an easier one."""
        return self.like.start(problem.with_(noise=fl.Gaussian(self.part * problem.sigma)), seed)


def critical(trial: Trial) -> int:
    """Return the smallest number of errors that a strategy is told off for."""
    for errors in range(trial.runs + 1):
        try:
            ensure_rare(errors, trial.runs, trial.delta, "it is wrong")
        except AssertionError:
            return errors
    raise AssertionError("no number of errors is too many")


def wrong(name: str, trial: Trial, part: float, runs: int) -> int:
    """Return how many runs are wrong when widths are a part of what they should be."""
    problem, found = as_problem(trial.arms, sigma=1.0, delta=trial.delta), 0
    for seed in range(FIRST_SEED, FIRST_SEED + runs):
        theta = trial.parameter(seed)
        strategy = Narrow(maker(name)(trial.arms, theta), part)
        least = len(trial.arms)
        run = play(strategy, problem, theta, seed, trial.cap, least=least, own_seed=seed)
        means = trial.arms.means(theta)
        best = set(np.flatnonzero(means >= means.max() - TIED).tolist())
        left = run.verdict.winners if run.verdict.decided else run.verdict.survivors
        found += not best & set(left)
    return found


def main() -> None:
    """Print a row for each strategy, part and trial."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=2000)
    options.add_argument("--parts", type=float, nargs="+", default=[0.25, 0.5])
    options.add_argument("--strategies", nargs="+", default=list(STRATEGIES))
    options.add_argument("--trials", nargs="+", default=list(TRIALS))
    given = options.parse_args()
    print("strategy, part of the width, trial, wrong, runs, probability to be caught")
    for name in given.strategies:
        for part in given.parts:
            for words in given.trials:
                trial = TRIALS[words]
                errors = wrong(name, trial, part, given.runs)
                power = binom.sf(critical(trial) - 1, trial.runs, errors / given.runs)
                print(f"{name}, {part:g}, {words}, {errors}, {given.runs}, {power:.3f}", flush=True)


if __name__ == "__main__":
    main()
