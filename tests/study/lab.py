"""A laboratory for studies in tests: arms, true means, and whoever measures."""

import numpy as np

import finalist as fl
from finalist.simulation.rewards import DrawnRewards

ARMS = fl.Arms([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.8, 0.6, 0.0]], list("abcd"))
THETA = np.array([1.5, 0.1, 0.0])
#: So noisy that a study takes some hundred batches.
NOISY = 2.0


class Lab:
    """Measures pulls: the reward depends on the seed and the number of the pull alone."""

    def __init__(self, arms=ARMS, theta=THETA, sigma=0.6, seed=0):
        self.means = dict(zip(arms.names, arms.means(theta).tolist(), strict=True))
        self.sigma, self.seed = sigma, seed

    def noise(self, number):
        return float(np.random.default_rng([self.seed, number]).standard_normal())

    def measure(self, pull):
        return self.means[pull.arm] + self.sigma * self.noise(pull.pull_id)

    def draw(self, counts):
        means = np.array(list(self.means.values()))
        rng = np.random.default_rng(self.seed)
        return DrawnRewards(means, self.sigma, "gaussian", rng).batch(counts)

    def rewards(self, batch):
        return {pull.pull_id: self.measure(pull) for pull in batch}


def nearly_tied():
    """Two arms that stay in question: a study that does not end soon."""
    return Lab(theta=np.array([1.0, 1.0 / 3.0, 0.0]), sigma=NOISY)


def finish(study, lab, size=None, most=400):
    """Ask and tell until there is nothing left; return how many batches it took."""
    for count in range(most):
        batch = study.ask(size)
        if not batch:
            return count
        study.tell(lab.rewards(batch))
    raise AssertionError(f"not finished after {most} batches")
