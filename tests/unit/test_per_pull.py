"""How a compiled loop is played, and what every strategy that looks after each pull does."""

from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.errors import NotYetSupportedError, ProblemError
from finalist.problem import Gaussian, Problem, as_problem
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies.per_pull import base as per_pull
from finalist.strategies.per_pull.base import PerPullRun
from finalist.strategies.protocol import Playable, Strategy, Verdict
from tests.unit.per_pull import drawn

STRATEGIES: dict[str, Any] = {
    "fully-adaptive": fl.FullyAdaptive(theta_norm=1.0),
    "lingape, greedy": fl.LinGapE(theta_norm=1.0),
    "lingape, ratio": fl.LinGapE(theta_norm=1.0, selection="ratio"),
    "lingame": fl.LinGame(theta_norm=1.0),
    "lazy-ts": fl.LazyTS(),
    "track-and-stop": fl.TrackAndStop(),
}
EVERY_STRATEGY = pytest.mark.parametrize("name", STRATEGIES)


class Fake(PerPullRun):
    """A run that wins after some pulls; before every seventh it returns to Python once."""

    def __init__(self, wins_after: int) -> None:
        super().__init__(Problem(fl.Arms.unstructured(2), noise=Gaussian(1.0)), Progress())
        self.wins_after, self.asked = wins_after, False
        self.offered: list[int] = []
        self.refreshed: list[int] = []
        self.noise: list[float] = []

    @property
    def counts(self) -> np.ndarray:
        return np.array([self._pulls, 0])

    def _pull(self, rewards, truth, noise) -> int:  # noqa: ARG002
        np.testing.assert_array_equal(truth, [1.0, 2.0])
        self.offered.append(len(noise))
        for t in range(len(noise)):
            if self._pulls % 7 == 0 and not self.asked:
                self.asked = True
                return t
            self.asked = False
            self.noise.append(noise[t])
            self._state.progress[0] += 1
            if self._pulls >= self.wins_after:
                self._state.progress[1] = 0
                return t + 1
        return len(noise)

    def _refresh(self) -> None:
        self.refreshed.append(self._pulls)


class Progress:
    def __init__(self) -> None:
        self.progress = np.array([0, -1])


@pytest.fixture
def rewards():
    return DrawnRewards(np.array([1.0, 2.0]), 1.0, "gaussian", np.random.default_rng(0))


@pytest.fixture
def short(monkeypatch):
    for name, value in (("REFRESH", 20), ("SMALLEST_CHUNK", 8), ("CHUNK", 30)):
        monkeypatch.setattr(per_pull, name, value)


@pytest.mark.usefixtures("short")
def test_pulls_get_the_noise_in_its_order_whatever_returns_to_python(rewards):
    run = Fake(wins_after=101)
    pulls = run.play(rewards, 10**6)
    np.testing.assert_array_equal(pulls, [101, 0])
    np.testing.assert_array_equal(run.noise, np.random.default_rng(0).standard_normal(101))


@pytest.mark.usefixtures("short")
def test_the_state_is_refreshed_once_at_every_multiple(rewards):
    run = Fake(wins_after=150)  # 140 is a multiple of 7 as well
    run.play(rewards, 10**6)
    assert run.refreshed == [20, 40, 60, 80, 100, 120, 140]
    assert max(run.offered) <= 20


@pytest.mark.usefixtures("short")
def test_the_limit_is_kept_and_play_goes_on(rewards):
    run = Fake(wins_after=50)
    for limit, made in ((13, 13), (13, 0), (45, 32), (99, 5), (99, 0)):
        assert run.play(rewards, limit).sum() == made


def test_rewards_of_other_arms_are_refused():
    run = Fake(wins_after=5)
    rewards = DrawnRewards(np.zeros(3), 1.0, "gaussian", np.random.default_rng(0))
    with pytest.raises(ProblemError, match="3 arms, not of 2"):
        run.play(rewards, 10)
    assert run.verdict.pulls == 0


@EVERY_STRATEGY
def test_it_is_playable(name):
    assert isinstance(STRATEGIES[name], Strategy)
    assert isinstance(
        STRATEGIES[name].start(as_problem(fl.Arms.unstructured(3), sigma=1.0)), Playable
    )


@EVERY_STRATEGY
@pytest.mark.parametrize("features", [[[1.0, 2.0]], [[0.0, 0.0]]], ids=["one", "zero"])
def test_one_arm_needs_no_pull(name, features):
    run = STRATEGIES[name].start(as_problem(fl.Arms(features), sigma=1.0))
    assert (run.verdict.winner, run.verdict.pulls) == (0, 0)
    assert run.play(drawn(np.ones(1), 0), 100).sum() == 0
    with pytest.raises(ProblemError, match="decided"):
        run.next()


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name != "track-and-stop"])
def test_arms_that_differ_by_rounding_alone_are_not_told_apart(name):
    above = np.nextafter(1.0, 2.0)
    arms = fl.Arms([[1.0, 1.0], [1.0, above], [above, 1.0]])
    run = STRATEGIES[name].start(as_problem(arms, sigma=1e-6))
    run.play(drawn(np.ones(3), 0, 1e-6), 30_000)
    assert run.verdict == Verdict(None, (0, 1, 2), 30_000)


@EVERY_STRATEGY
def test_unknown_noise_and_rewards_of_other_arms_are_refused(name):
    with pytest.raises(NotYetSupportedError, match="unknown sigma"):
        STRATEGIES[name].start(Problem(fl.Arms.unstructured(2), noise=Gaussian(None)))
    run = STRATEGIES[name].start(as_problem(fl.Arms.unstructured(3), sigma=1.0))
    with pytest.raises(ProblemError, match="5 arms"):
        run.play(drawn(np.zeros(5), 0), 10)
    assert run.verdict.pulls == 0
