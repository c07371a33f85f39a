"""CPU of planning a batch for the end of a budget, beside that of a batch without a budget."""

import time

import numpy as np

import finalist as fl
from finalist.problem import as_problem
from finalist.simulation.instances import random_theta, unit_sphere
from finalist.simulation.rewards import DrawnRewards
from finalist.simulation.task import drawn

#: Arms, dimension, and batches of a run of which the first warms up.
K, D, BATCHES = 10_000, 20, 6
#: Pulls of a batch, and those of the budget.
SIZE = 100
BUDGET = 20 * SIZE


def seconds(budget: int | None, seed: int) -> list[float]:
    """Return the CPU of choosing each batch of a run but the first."""
    instance = random_theta(unit_sphere(K, D, 7), seed)
    problem = as_problem(instance.arms, sigma=1.0, budget=budget)
    run = fl.Gauntlet().start(problem, seed=seed)
    means = instance.arms.means(instance.theta)
    rewards = DrawnRewards(means, 1.0, "gaussian", np.random.default_rng(seed))
    found = []
    for _ in range(BATCHES):
        begin = time.process_time()
        batch = run.next(SIZE)
        found.append(time.process_time() - begin)
        run.record(batch, drawn(rewards, batch))
    return found[1:]


def of_planning(seeds: int = 3) -> tuple[float, float]:
    """Return median CPU seconds with a budget and without, in turns."""
    with_budget: list[float] = []
    without: list[float] = []
    for seed in range(seeds):
        with_budget += seconds(BUDGET, seed)
        without += seconds(None, seed)
    return float(np.median(with_budget)), float(np.median(without))
