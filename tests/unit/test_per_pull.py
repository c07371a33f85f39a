import numpy as np
import pytest

from finalist.errors import ProblemError
from finalist.rewards import DrawnRewards
from finalist.strategies import per_pull
from finalist.strategies.per_pull import play_in_chunks, refresh_due
from finalist.strategies.protocol import Verdict


class Fake:
    """A run that wins after some pulls; before every seventh it returns to Python once."""

    def __init__(self, wins_after: int) -> None:
        self.pulls, self.wins_after, self.asked = 0, wins_after, False
        self.offered: list[int] = []
        self.refreshed: list[int] = []
        self.noise: list[float] = []

    @property
    def verdict(self) -> Verdict:
        return Verdict(0 if self.pulls >= self.wins_after else None, (0, 1), self.pulls)

    @property
    def counts(self) -> np.ndarray:
        return np.array([self.pulls, 0])

    def step(self, truth, noise) -> int:
        np.testing.assert_array_equal(truth, [1.0, 2.0])
        self.offered.append(len(noise))
        for t in range(len(noise)):
            if self.pulls % 7 == 0 and not self.asked:
                self.asked = True
                return t
            self.asked = False
            self.noise.append(noise[t])
            self.pulls += 1
            if self.verdict.decided:
                return t + 1
        return len(noise)

    def refresh(self) -> None:
        self.refreshed.append(self.pulls)


@pytest.fixture
def rewards():
    return DrawnRewards(np.array([1.0, 2.0]), 1.0, "gaussian", np.random.default_rng(0))


@pytest.fixture(autouse=True)
def short(monkeypatch):
    for name, value in (("REFRESH", 20), ("SMALLEST_CHUNK", 8), ("CHUNK", 30)):
        monkeypatch.setattr(per_pull, name, value)


def test_pulls_get_the_noise_in_its_order_whatever_returns_to_python(rewards):
    run = Fake(wins_after=101)
    pulls = play_in_chunks(run, rewards, 10**6, run.step, run.refresh)
    np.testing.assert_array_equal(pulls, [101, 0])
    np.testing.assert_array_equal(run.noise, np.random.default_rng(0).standard_normal(101))


def test_the_state_is_refreshed_once_at_every_multiple(rewards):
    run = Fake(wins_after=150)  # 140 is a multiple of 7 as well
    play_in_chunks(run, rewards, 10**6, run.step, run.refresh)
    assert run.refreshed == [20, 40, 60, 80, 100, 120, 140]
    assert refresh_due(140)
    assert not refresh_due(150)
    assert max(run.offered) <= 20


def test_the_limit_is_kept_and_play_goes_on(rewards):
    run = Fake(wins_after=50)
    for limit, made in ((13, 13), (13, 0), (45, 32), (99, 5), (99, 0)):
        assert play_in_chunks(run, rewards, limit, run.step, run.refresh).sum() == made


def test_rewards_of_other_arms_are_refused():
    run = Fake(wins_after=5)
    rewards = DrawnRewards(np.zeros(3), 1.0, "gaussian", np.random.default_rng(0))
    with pytest.raises(ProblemError, match="3 arms, not of 2"):
        play_in_chunks(run, rewards, 10, run.step, run.refresh)
    assert run.pulls == 0
