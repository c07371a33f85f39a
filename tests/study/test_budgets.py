"""Studies with a fixed budget: a whole life, coming back in the middle, and what is said of it."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import finalist as fl
from finalist.errors import ConflictError, NotYetSupportedError, ProblemError, StudyError
from finalist.strategies import STRATEGIES, promise_of
from finalist.study import Study
from tests.study.lab import ARMS, Lab, finish

BUDGETED = [name for name, cls in STRATEGIES.items() if promise_of(cls) == "budget"]
EVERY = pytest.mark.parametrize("strategy", BUDGETED)
LAB = Lab()


def create(where, strategy="od-linbai", name="one", arms=ARMS, **settings):
    words = {"sigma": 0.6, "seed": 7, "budget": 60, **settings}
    return Study.create(where, name, arms, strategy, **words)


def guaranteed(status):
    """Return whether anything of it promises a probability of error."""
    text = f"{status}\n{json.dumps(status.to_dict())}"
    return "at most" in text or status.risk is not None


@pytest.fixture
def where(tmp_path):
    return tmp_path / "lab.db"


@EVERY
def test_a_whole_life(where, strategy):
    study = create(where, strategy)
    begin = study.status()
    assert (begin.verdict, begin.recommendation, begin.advice) == ("continue", None, None)
    assert begin.forecast is None
    assert not guaranteed(begin)
    finish(study, LAB, size=9)
    status = study.status()
    assert (status.verdict, status.winner, status.recommendation) == ("winner", "a", "a")
    assert (status.pulls, status.budget_left) == (60, 0)
    assert "recommended after 60 measurements, the whole budget" in status.sentence
    assert status.error_estimate is not None
    assert 0.0 < status.error_estimate < 0.05
    assert status.certainty is not None
    assert "not a guarantee" in str(status.advice)
    assert status.advice in str(status)
    assert not guaranteed(status)
    assert study.ask().state == "decided"


@EVERY
@pytest.mark.parametrize("size", [None, 7])
def test_it_comes_back_in_the_middle_of_a_phase(where, strategy, size):
    whole = create(where, strategy, "whole", budget=36)
    pieces = create(where, strategy, "pieces", budget=36)
    finish(whole, LAB, size=size)
    for _ in range(200):
        study = Study.open(where, "pieces")  # as after a crash: nothing is left in memory
        batch = study.ask(size)
        if not batch:
            break
        for pull in batch[:3]:  # some of a batch, then again from the start
            study.tell({pull.pull_id: LAB.measure(pull)})
        study.close()
    assert Study.open(where, "pieces").status().to_dict() | {"name": "whole"} == (
        whole.status().to_dict()
    )
    assert pieces.status().pulls == 36


@EVERY
def test_opening_solves_no_design(where, strategy, monkeypatch):
    study = create(where, strategy)
    for _ in range(5):
        study.tell(LAB.rewards(study.ask(8)))

    def refuse(*_, **__):
        raise AssertionError("opening solved a design")

    before = study.status()
    for solver in ("finalist.strategies.budget.eliminations", "finalist.strategies.budget.peace"):
        monkeypatch.setattr(f"{solver}.optimal_design", refuse)
    for cached in ("eliminations.survivor_design", "peace.difference_design"):
        monkeypatch.setattr(f"finalist.strategies.budget.{cached}", refuse)
    assert Study.open(where, "one").status().to_dict() == before.to_dict()


def test_the_error_estimate_is_that_of_the_normal_distribution(where):
    arms = fl.Arms.unstructured(["p", "q"])
    for sigma in (1.5, None):
        study = create(where, "g-budget", f"sigma {sigma}", arms, budget=24, sigma=sigma)
        rng = np.random.default_rng(3)
        means = {"p": 0.5, "q": 0.0}
        told = {p.pull_id: means[p.arm] + 1.5 * rng.standard_normal() for p in study.ask()}
        study.tell(told)
        frame, status = study.to_frame(), study.status()
        mean = frame.groupby("arm").reward.mean()
        gap = abs(mean["p"] - mean["q"])
        if sigma is not None:
            expected = stats.norm.cdf(-gap / (1.5 * math.sqrt(2 / 12)))
            assert status.certainty == 0.0
        else:
            variance = frame.groupby("arm").reward.var().mean()
            expected = stats.t.cdf(-gap / math.sqrt(variance * 2 / 12), df=22)
            assert status.certainty is None
        assert status.error_estimate == pytest.approx(expected, rel=1e-9)


def test_what_is_certain_is_said_with_its_confidence(where):
    study = create(where, "gse", budget=500)
    finish(study, LAB, size=500)
    status = study.status()
    assert status.certainty is not None
    assert 0.5 < status.certainty < 1.0
    sure = f"of at least {math.floor(1000 * status.certainty) / 10:g} % no candidate is better"
    assert f"{sure}; this bound holds whenever you look." in str(status.advice)
    good = create(where, "gse", "good enough", budget=500, epsilon=0.3)
    finish(good, LAB, size=500)
    assert "better by more than 0.3" in str(good.status().advice)
    assert good.status().certainty > status.certainty


def test_a_strategy_with_a_guarantee_that_is_cut_recommends_too(where):
    study = create(where, "gauntlet", budget=25, arms=fl.Arms.unstructured(["a", "b"]))
    finish(study, Lab(fl.Arms.unstructured(["a", "b"]), [0.3, 0.0]), size=10)
    status = study.status()
    assert (status.verdict, status.winner, status.recommendation) == ("undecided", None, "a")
    assert status.risk == 0.05
    assert "No candidate is ruled out" in status.sentence
    means = {arm.name: arm for arm in status.arms}
    gap = means["a"].estimate - means["b"].estimate
    sd = 0.6 * math.sqrt(1 / means["a"].pulls + 1 / means["b"].pulls)
    assert status.error_estimate == pytest.approx(stats.norm.cdf(-gap / sd), rel=1e-9)
    assert str(status.advice).startswith("Recommendation: a.")


def test_a_winner_with_a_guarantee_needs_no_advice(where):
    study = create(where, "gauntlet", budget=5000)
    finish(study, LAB)
    status = study.status()
    assert (status.winner, status.recommendation) == ("a", "a")
    assert (status.advice, status.error_estimate, status.certainty) == (None, None, None)


def test_stopping_recommends_the_best_that_is_left(where):
    study = create(where, "od-linbai")
    study.tell(LAB.rewards(study.ask()))
    status = study.stop("out of reagents")
    assert (status.verdict, status.winner, status.recommendation) == ("undecided", None, "a")
    assert status.sentence.startswith("Stopped (out of reagents). After")
    assert not guaranteed(status)
    study.resume()
    finish(study, LAB)
    assert study.status().winner == "a"


def test_lost_and_repeated_pulls_keep_the_budget(where):
    study = create(where, "gse")
    batch = study.ask(10)
    study.void(batch[0].pull_id, "spilled")
    study.missing(batch[1].pull_id, "lost")
    study.tell({batch[2].pull_id: 99.0})
    study.amend(batch[2].pull_id, LAB.measure(batch[2]), "a decimal point")
    finish(study, LAB, size=10)
    status = study.status()
    assert (status.verdict, status.pulls, status.budget_left) == ("winner", 59, 0)
    assert Study.open(where, "one").status().to_dict() == status.to_dict()
    fork = study.fork("two", until=2)
    finish(fork, LAB, size=10)
    assert fork.status().winner == status.winner


@pytest.mark.parametrize("strategy", ["g", "xy", "uniform", "gauntlet", "xy-adaptive"])
def test_a_budget_does_not_change_the_size_of_a_batch(where, strategy):
    free = create(where, strategy, "free", sigma=0.05, budget=None).ask()
    bound = create(where, strategy, "bound", sigma=0.05, budget=10**6).ask()
    assert [p.arm for p in bound] == [p.arm for p in free]
    assert len(create(where, strategy, "little", budget=2).ask()) <= 2


def test_a_forecast_knows_the_budget(where):
    study = create(where, "gauntlet", budget=30)
    for _ in range(2):
        study.tell(LAB.rewards(study.ask(12)))
    assert study.status().forecast.cap == 6


def test_what_such_a_strategy_cannot_do_is_refused(where):
    with pytest.raises(ProblemError, match="give budget="):
        create(where, "od-linbai", budget=None)
    with pytest.raises(ProblemError, match="budget is 3; strategy 'od-linbai' needs at least"):
        create(where, "od-linbai", budget=3)
    with pytest.raises(NotYetSupportedError):
        create(where, "gse", max_pulls_per_arm=9)
    study = create(where, "gse")
    with pytest.raises(StudyError, match="earlier measurements"):
        study.import_history([("a", 1.0)])
    with pytest.raises(StudyError, match="other candidates"):
        study.withdraw("b")
    with pytest.raises(StudyError, match="other candidates"):
        study.add(fl.Arms([[0.5, 0.5, 0.5]], ["e"]))
    study.tell(LAB.rewards(study.ask(5)))
    finish(study, LAB)
    with pytest.raises(ConflictError, match="recommendation"):
        study.stop("too late")


def test_opening_with_the_same_words(where):
    create(where, "gse").close()
    Study.open(where, "one", strategy="gse", sigma=0.6)
    Study.open(where, "one", budget=60)
    with pytest.raises(StudyError, match="budget is 60 and not 61"):
        Study.open(where, "one", budget=61)


def test_workers_share_a_phase(where):
    study = create(where, "od-linbai", budget=80)
    seen: set[int] = set()
    for turn in range(400):
        batch = study.ask(5, worker=f"w{turn % 3}")
        if batch.state == "decided":
            break
        assert not seen & {pull.pull_id for pull in batch}
        seen |= {pull.pull_id for pull in batch}
        study.tell(LAB.rewards(batch))
    assert len(seen) == 80
    assert study.status().winner == "a"


def test_a_certainty_needs_no_pulls_that_were_fixed_in_advance(where):
    arms = fl.Arms([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]], list("abcd"))
    means = dict(zip("abcd", arms.means([3.0, 0.1]), strict=True))
    for lost in (False, True):
        study = create(where, "gse", f"lost {lost}", arms, budget=400)
        batch = study.ask()
        for pull in batch:
            if lost and pull.arm != batch[0].arm:  # one arm is left, which does not span
                study.missing(pull.pull_id, "lost")
            else:
                study.tell({pull.pull_id: means[pull.arm]})
        study.tell({p.pull_id: means[p.arm] for p in study.ask()})
        status = study.status()
        assert status.verdict == "winner"
        assert status.error_estimate is not None
        assert status.certainty is not None
        assert all(arm.low is not None for arm in status.arms)


def test_nothing_is_estimated_of_arms_whose_rewards_are_lost(where):
    arms = fl.Arms.unstructured(list("abcd"))
    study = create(where, "gse", arms=arms, budget=16)
    batch = study.ask()  # 8 pulls, of which all of d are lost
    for pull in batch:
        if pull.arm == "d":
            study.missing(pull.pull_id, "lost")
    study.tell({p.pull_id: {"a": 1.0, "b": 0.5}.get(p.arm, 0.0) for p in batch if p.arm != "d"})
    study.tell({p.pull_id: 0.3 for p in study.ask()})
    status = study.status()
    assert status.winner in ("a", "b")
    assert (status.error_estimate, status.certainty) == (None, None)
    assert all(arm.low is None for arm in status.arms)
