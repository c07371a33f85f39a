"""Studies with noise, cost and roles of each arm, shifts, bent means, or several winners."""

from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.errors import NotYetSupportedError, StudyError
from finalist.study import Study
from tests import instances

FEATURES = instances.unit_sphere(9, 3, 2)
NAMES = [f"a{i}" for i in range(9)]
ARMS = fl.Arms(FEATURES, NAMES)
THETA = np.array([3.0, 1.2, -0.6])
SIGMA = np.linspace(0.3, 1.2, 9)
COST = np.linspace(3.0, 0.5, 9)
SOME = np.arange(9) < 6
VARIANTS: dict[str, dict[str, Any]] = {
    "sigma per arm": {"sigma": SIGMA},
    "cost": {"sigma": 0.5, "cost": COST},
    "shifts": {"sigma": None, "batch_intercept": True},
    "bias": {"sigma": 0.5, "misspecification": 0.02},
    "top": {"sigma": 0.5, "top": 3},
    "all": {
        "sigma": SIGMA,
        "cost": COST,
        "batch_intercept": True,
        "misspecification": 0.01,
        "epsilon": 0.2,
    },
}


def measured(study, batch, rng, shift=0.0, noise=0.4):
    arms = study.arms
    means, size = arms.features @ THETA, np.broadcast_to(noise, len(arms))
    return {
        pull.pull_id: float(means[i] + shift + size[i] * rng.standard_normal())
        for pull in batch
        if (i := arms.index(pull.arm)) >= 0
    }


def go_on(study, rng, most=60, shifted=False, size=24, noise=0.4):
    for _ in range(most):
        batch = study.ask(size)
        if not batch:
            break
        shift = 10.0 * rng.standard_normal() if shifted else 0.0
        while batch:  # all of a batch under one shift, given out in parts or not
            study.tell(measured(study, batch, rng, shift, noise))
            number, batch = batch.batch, study.ask(size)
            if batch.batch != number:
                break
    return study.status(forecast=False)


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_is_decided_and_comes_back_as_it_was(where, variant):
    words = VARIANTS[variant]
    study = Study.create(where, "one", ARMS, seed=3, **words)
    noise = SIGMA if words["sigma"] is SIGMA else 0.4
    status = go_on(study, np.random.default_rng(1), shifted="batch_intercept" in words, noise=noise)
    good = FEATURES @ THETA
    best = {NAMES[i] for i in np.argsort(-good)[: words.get("top", 1)]}
    assert status.verdict == "winner"
    assert set(status.winners) == best
    assert status.winner == status.winners[0]
    assert status.risk == 0.05
    again = Study.open(where, "one", arms=ARMS, **words)
    assert again.status(forecast=False) == status
    with pytest.raises(StudyError, match="other settings: misspecification is"):
        Study.open(where, "one", misspecification=0.5)
    for name in status.winners:
        assert name in status.sentence


def test_the_assumptions_are_said(where):
    arms = fl.Arms(FEATURES, NAMES, measurable=SOME)
    study = Study.create(
        where, "one", arms, sigma=SIGMA, batch_intercept=True, misspecification=0.1, cost=COST
    )
    said = "; ".join(study.status().assumptions)
    for words in (
        "a size that is given for each candidate, 0.3 to 0.863",
        "within 0.1 of a function that is linear",
        "may share a constant of their own",
        "3 candidates cannot be measured",
    ):
        assert words in said


def test_measure_here_decide_there(where):
    arms = fl.Arms(FEATURES[SOME], NAMES[:6])
    others = fl.Arms(FEATURES[~SOME], NAMES[6:])
    study = Study.create(where, "one", arms, sigma=0.4, candidates=others, seed=1)
    batch = study.ask()
    assert {pull.arm for pull in batch} <= set(NAMES[:6])
    status = go_on(study, np.random.default_rng(2))
    good = FEATURES[~SOME] @ THETA
    assert status.winner == NAMES[6 + int(good.argmax())]
    rows = {arm.name: arm for arm in status.arms}
    assert (rows["a0"].measurable, rows["a0"].candidate) == (True, False)
    assert (rows["a8"].measurable, rows["a8"].candidate) == (False, True)
    assert rows["a0"].evidence is None
    assert rows["a8"].evidence is not None
    assert rows["a8"].pulls == 0
    again = Study.open(where, "one", arms=arms, candidates=others)
    assert again.status(forecast=False) == status
    with pytest.raises(StudyError, match="created with other arms"):
        Study.open(where, "one", arms=arms)


def test_new_arms_bring_their_noise_and_cost(where):
    start = fl.Arms(FEATURES[:7], NAMES[:7])
    study = Study.create(where, "one", start, sigma=SIGMA[:7], cost=COST[:7], seed=1)
    rng = np.random.default_rng(3)
    study.tell(measured(study, study.ask(), rng))
    more = fl.Arms(FEATURES[7:], NAMES[7:])
    for words, message in (
        ({}, "give one positive sigma for each of the 2 new candidates"),
        ({"sigma": [1.0, 1.0]}, "give one positive cost"),
        ({"sigma": [1.0, -1.0], "cost": 1.0}, "one positive sigma"),
    ):
        with pytest.raises(StudyError, match=message):
            study.add(more, **words)
    study.add(more, sigma=SIGMA[7:], cost=COST[7:])
    study.withdraw("a0")
    again = Study.open(where, "one")
    assert again._log.now().problem.noise.sigma == tuple(SIGMA[1:])
    assert again._log.now().problem.cost == tuple(COST[1:])
    assert go_on(again, rng).verdict == "winner"
    plain = Study.create(where, "two", start, sigma=1.0)
    with pytest.raises(StudyError, match="one sigma for all"):
        plain.add(more, sigma=2.0)


@pytest.mark.parametrize("sigma", [None, "large", [[1.0]], [1.0, 2.0], -1.0])
def test_a_new_arm_needs_one_positive_sigma(where, sigma):
    study = Study.create(where, "one", fl.Arms(FEATURES[:6], NAMES[:6]), sigma=SIGMA[:6], seed=1)
    with pytest.raises(StudyError, match="give one positive sigma for the new candidate"):
        study.add(fl.Arms(FEATURES[6:7], NAMES[6:7]), sigma=sigma)


def test_new_arms_have_their_roles(where):
    study = Study.create(where, "one", fl.Arms(FEATURES[:6], NAMES[:6]), sigma=0.4, seed=1)
    rng = np.random.default_rng(4)
    study.tell(measured(study, study.ask(), rng))
    study.add(fl.Arms(FEATURES[6:], NAMES[6:], measurable=[False, True, False]))
    again = Study.open(where, "one")
    assert again.arms.measurable.tolist() == [True] * 6 + [False, True, False]
    status = go_on(again, rng)
    assert status.verdict == "winner"
    pulls = {arm.name: arm.pulls for arm in status.arms}
    assert pulls["a6"] == pulls["a8"] == 0
    study = Study.open(where, "one")
    assert study.status(forecast=False) == status


def test_a_fork_keeps_what_was_asked(where):
    arms = fl.Arms(FEATURES, NAMES, measurable=SOME)
    study = Study.create(where, "one", arms, sigma=SIGMA, batch_intercept=True, seed=2)
    rng = np.random.default_rng(5)
    for _ in range(3):
        study.tell(measured(study, study.ask(), rng))
    fork = study.fork("two", until=2)
    assert fork.settings == study.settings
    assert fork.arms == study.arms


def test_a_shift_that_is_allowed_for_gives_no_warning(where):
    x = np.linspace(0.0, 1.0, 6)
    line = fl.Arms(np.column_stack([np.ones(6), x, x**2]), list("abcdef"))
    found = {}
    for allowed in (False, True):
        rng = np.random.default_rng(7)
        strategy = "gauntlet" if allowed else "uniform"
        words: dict[str, Any] = {"sigma": 0.4, "batch_intercept": allowed, "epsilon": 1e-3}
        study = Study.create(where, str(allowed), line, strategy, seed=1, **words)
        for _ in range(5):
            batch = study.ask(36)
            shift = 30.0 * rng.standard_normal()
            means = 0.02 * line.features @ np.ones(3)
            study.tell(
                {
                    p.pull_id: float(means[line.index(p.arm)] + shift + 0.4 * rng.standard_normal())
                    for p in batch
                }
            )
        found[allowed] = " ".join(study.status(forecast=False).warnings)
    assert "batch_intercept" in found[False]
    assert found[True] == ""


def test_a_bent_model_that_is_allowed_for_gives_no_warning(where):
    grid = np.array([[1.0, x, z] for x in (-1.0, 0.0, 1.0) for z in (-1.0, 0.0, 1.0)])
    line = fl.Arms(grid)
    bend = dict(zip(line.names, 0.5 * grid[:, 1] * grid[:, 2], strict=True))
    found = {}
    for c in (0.0, 0.05, 1.0):
        rng = np.random.default_rng(8)
        study = Study.create(where, str(c), line, sigma=0.1, misspecification=c, seed=1)
        for _ in range(3):
            batch = study.ask(42)
            if not batch:
                break
            study.tell({p.pull_id: bend[p.arm] + 0.1 * rng.standard_normal() for p in batch})
        found[c] = " ".join(study.status(forecast=False).warnings)
    assert "the means bend" in found[0.0]
    assert "also if they are off by 0.05" in found[0.05]
    assert "not linear" not in found[1.0]
    assert "the guarantee does not hold" not in found[1.0]
    assert "this alone contradicts nothing" in found[1.0]


def test_intervals_allow_for_a_bent_model(where):
    x = np.linspace(-1.0, 1.0, 7)
    line = fl.Arms(np.column_stack([np.ones(7), x]), list("abcdefg"))
    means = 0.3 * np.where(np.arange(7) % 2 == 0, 1.0, -1.0)
    inside = {}
    for c in (0.0, 0.3):
        rng = np.random.default_rng(3)
        study = Study.create(where, str(c), line, sigma=0.1, misspecification=c, seed=1)
        for _ in range(3):
            batch = study.ask(42)
            study.tell(
                {
                    p.pull_id: float(means[line.index(p.arm)] + 0.1 * rng.standard_normal())
                    for p in batch
                }
            )
        arms = study.status(forecast=False).arms
        inside[c] = [
            arm.low is not None and arm.low <= mean <= arm.high
            for arm, mean in zip(arms, means, strict=True)
        ]
    assert all(inside[0.3])
    assert not all(inside[0.0])


def test_noise_that_is_larger_than_its_sigmas_is_said(where):
    study = Study.create(where, "one", ARMS, sigma=SIGMA / 5.0, seed=1)
    rng = np.random.default_rng(9)
    study.tell(measured(study, study.ask(60), rng))
    assert "more than their sigmas say" in " ".join(study.status(forecast=False).warnings)


def test_forecasts_and_charts_know_of_it(where):
    study = Study.create(where, "one", ARMS, sigma=SIGMA, batch_intercept=True, seed=1)
    rng = np.random.default_rng(10)
    for _ in range(3):
        study.tell(measured(study, study.ask(30), rng, shift=rng.standard_normal()))
    status = study.status()
    if status.verdict == "continue":
        assert status.forecast is not None
        assert status.forecast.low >= 0


def test_what_a_strategy_cannot_do_is_refused_at_once(where):
    for words in ({"cost": COST}, {"top": 2}, {"batch_intercept": True}):
        with pytest.raises(NotYetSupportedError):
            Study.create(where, "one", ARMS, "xy-adaptive", sigma=1.0, **words)


def test_arms_are_added_to_a_study_with_an_intercept_without_writing_it(tmp_path):
    arms = fl.Arms([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], names=["a", "b", "c"]).with_intercept()
    with fl.Study.create(tmp_path / "lab.db", "level", arms, sigma=1.0, seed=1) as study:
        study.add(fl.Arms([[0.5, 2.0]], names=["d"]))
        assert study.arms.features[study.arms.index("d")].tolist() == [0.5, 2.0, 1.0]
        with pytest.raises(StudyError, match="candidates to add have the features"):
            study.add(fl.Arms([[0.5]], names=["e"]))


def test_a_forecast_speaks_of_cost_where_pulls_cost_different_amounts(tmp_path):
    arms = fl.Arms(np.random.default_rng(2).standard_normal((6, 2)))
    means = dict(zip(arms.names, arms.means([0.3, 0.1]), strict=True))
    rng, cost = np.random.default_rng(0), np.arange(1.0, 7.0)
    with fl.Study.create(tmp_path / "lab.db", "c", arms, sigma=1.0, cost=cost, seed=1) as study:
        for _ in range(2):
            study.tell({p.pull_id: means[p.arm] + rng.normal() for p in study.ask()})
        found = study.status().forecast
    assert found is not None
    assert found.cost is not None
    ended = np.isfinite(found.pulls)
    assert (np.isfinite(found.cost) == ended).all()
    assert (found.cost[ended] >= found.pulls[ended]).all()  # the cheapest costs 1
    assert (found.cost[ended] < 6 * found.pulls[ended]).all()
    assert "They cost about" in found.words()
