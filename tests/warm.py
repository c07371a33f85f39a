"""Compile every kernel once, before several processes need them at once: `make test` does.

    python -m tests.warm

What is missing here is compiled by the test that needs it first.
"""

from typing import Any

import numpy as np

import finalist as fl
from finalist.design.greedy import greedy_allocation
from finalist.problem import as_problem
from finalist.problem.rules import RULES
from finalist.strategies import STRATEGIES, named, promise_of
from finalist.testing.runs import step

THETA = np.array([1.0, 0.4, 0.2])
WORDS: dict[str, dict[str, Any]] = {
    "confidence": {},
    "budget": {"budget": 24},
    "zone": {"epsilon": 0.3},
}


def warm(name: str) -> None:
    """Run a strategy as a simulation does, and as a study does."""
    arms = fl.Arms.unstructured(3)
    words = WORDS[promise_of(STRATEGIES[name])]
    problem = as_problem(arms, sigma=0.6, **words)
    fl.simulate(problem, THETA, name, runs=1, max_pulls=60, progress=False)
    step(named(name, arms, THETA), problem, THETA, 1, 30, least=1)


def main() -> None:
    """Compile what strategies and designs need."""
    for name in STRATEGIES:
        warm(name)
    for criterion in ("xy", "v"):
        greedy_allocation(fl.Arms.unstructured(3), criterion, 9)
    problem = as_problem(fl.Arms.unstructured(3), sigma=0.6, rules=RULES[1])  # without looks
    fl.simulate(problem, THETA, runs=1, progress=False)


if __name__ == "__main__":
    main()
