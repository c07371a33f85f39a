"""The model of the mean is the only way from x'theta to what is measured and shown."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import finalist as fl
from finalist.errors import NotYetSupportedError, ProblemError, StudyError
from finalist.lab.blocks import identity
from finalist.planning import forecast
from finalist.problem import FEATURES, Feature, Gaussian, Identity, MeanModel, Problem
from finalist.simulation.task import make_task
from finalist.strategies import STRATEGIES, named
from finalist.study import Study

ARMS = fl.Arms([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], names=["a", "b", "c"])
THETA = np.array([-1.0, 1.0])
LOGISTIC = 1.0 / (1.0 + np.exp([1.0, 0.0, -1.0]))


@dataclass(frozen=True)
class Logistic:
    name: ClassVar[str] = "logistic"
    needs: ClassVar[frozenset[Feature]] = frozenset({"link"})

    def expected(self, eta):
        return 1.0 / (1.0 + np.exp(-eta))


@dataclass(frozen=True)
class Carefree(Logistic):
    """A link that strategies do not notice, as if their proofs were for it."""

    needs: ClassVar[frozenset[Feature]] = frozenset()


def problem(model, **words):
    return Problem(ARMS, noise=Gaussian(0.01), mean=model, **words)


def test_a_mean_is_linear_unless_told():
    assert Problem(ARMS, noise=Gaussian(1.0)).mean == Identity()
    assert problem(Identity()).means(THETA).tolist() == ARMS.means(THETA).tolist() == [-1, 0, 1]
    assert isinstance(Logistic(), MeanModel)
    with pytest.raises(ProblemError, match="mean is 'logistic'"):
        problem("logistic")


def test_no_strategy_takes_a_link_yet():
    assert problem(Logistic()).needs == {"link"}
    assert "link" in FEATURES
    for name in STRATEGIES:
        strategy = named(name, ARMS, THETA)
        with pytest.raises(NotYetSupportedError, match="'link'"):
            strategy.start(problem(Logistic(), budget=100))
    with pytest.raises(NotYetSupportedError, match="'link'"):
        fl.complexity(problem(Logistic()), THETA)


def test_rewards_are_drawn_around_the_expected_means():
    task = make_task(problem(Carefree()), THETA, "gauntlet", rewards=None, seed=1, max_pulls=1000)
    np.testing.assert_allclose(task.means, LOGISTIC)
    drawn = task.draw_with(np.random.default_rng(1)).batch(np.full(3, 1000))
    np.testing.assert_allclose(drawn.mean, LOGISTIC, atol=0.002)
    assert set(fl.simulate(problem(Carefree()), THETA, "gauntlet", runs=3).winner) == {2}


def test_stored_simulations_of_another_link_are_not_taken_for_these():
    def key(model):
        task = make_task(problem(model), THETA, "gauntlet", rewards=None, seed=1, max_pulls=1000)
        return identity(task)

    assert "mean" not in key(Identity())
    assert key(Carefree())["mean"] == "Carefree()"


def test_a_study_shows_expected_means(tmp_path, monkeypatch):
    known = {"identity": Identity, "logistic": Carefree}
    monkeypatch.setattr("finalist.study.settings.MEANS", known)
    shown = {}
    for model in (Identity(), Carefree()):
        study = Study.create(tmp_path / "s.db", type(model).__name__, problem(model), seed=1)
        batch = study.ask(30)
        study.tell({pull.pull_id: 0.3 * "abc".index(pull.arm) for pull in batch})
        study = Study.open(tmp_path / "s.db", type(model).__name__)
        shown[model] = study.status().arms
    for plain, linked in zip(shown[Identity()], shown[Carefree()], strict=True):
        for end in ("estimate", "low", "high"):
            linear, shown_as = getattr(plain, end), getattr(linked, end)
            assert shown_as == pytest.approx(Carefree().expected(linear))


def test_a_study_with_an_unknown_link_is_not_opened(tmp_path):
    Study.create(tmp_path / "s.db", "s", problem(Carefree()))
    with pytest.raises(StudyError, match="Upgrade finalist"):
        Study.open(tmp_path / "s.db", "s").status()


def test_a_forecast_draws_expected_means(monkeypatch):
    from finalist.inference.least_squares import estimate
    from finalist.inference.statistics import Statistics
    from finalist.simulation import rewards as simulated

    seen, drawn = [], simulated.DrawnRewards

    def draw(means, *rest):
        seen.append(means)
        return drawn(means, *rest)

    monkeypatch.setattr(simulated, "DrawnRewards", draw)
    asked = problem(Carefree())
    run, rewards = fl.Gauntlet().start(asked, seed=1), Statistics.empty(3)
    rewards.add_many(np.repeat([0, 1, 2], 10), np.repeat([-1.0, 0.0, 1.0], 10))
    forecast(run, asked, estimate(asked.arms, rewards), done=30, draws=2)
    np.testing.assert_allclose(seen, [LOGISTIC, LOGISTIC], atol=0.01)
