"""What a study says when it has no guarantee, and when it has no rewards to speak of."""

import json

import numpy as np
import pytest

import finalist as fl
from finalist.inference.least_squares import estimate
from finalist.inference.statistics import Statistics
from finalist.study import Study
from finalist.study.checks import better_by_all, found
from finalist.study.sentences import _rounded
from tests.study.lab import ARMS, Lab, finish

HEURISTIC = [
    fl.LinGapE(theta_norm=2.0, threshold="heuristic"),
    fl.LinGame(theta_norm=2.0, threshold="heuristic"),
    fl.LazyTS(threshold="heuristic"),
    fl.TrackAndStop(threshold="heuristic"),
]
UNPROVEN = pytest.mark.parametrize("strategy", HEURISTIC, ids=lambda strategy: strategy.name)
BUDGETED = pytest.mark.parametrize("strategy", ["od-linbai", "gse", "peace", "g-budget"])
LAB = Lab()
PLAIN = fl.Arms.unstructured(list("abc"))


@pytest.fixture
def where(tmp_path):
    return tmp_path / "lab.db"


def create(where, strategy, name="one", arms=ARMS, **settings):
    return Study.create(where, name, arms, strategy, **{"sigma": 0.6, "seed": 7, **settings})


def promises(status):
    text = f"{status}\n{json.dumps(status.to_dict())}"
    return "at most" in text or status.risk is not None


def lose(study, batch, arms):
    """Lose the pulls of some arms; return the others."""
    for pull in batch:
        if pull.arm in arms:
            study.missing(pull.pull_id, "lost")
    return [pull for pull in batch if pull.arm not in arms]


# ---- a threshold without a proof ---------------------------------------------------------


@UNPROVEN
def test_a_heuristic_threshold_guarantees_nothing(where, strategy):
    lab = Lab(PLAIN, np.array([4.0, 0.0, 0.0]))
    study = create(where, strategy, arms=PLAIN)
    begin = study.status(forecast=False)
    assert "no proof, so nothing is guaranteed" in begin.sentence
    assert begin.recommendation is None
    assert not promises(begin)
    finish(study, lab, size=8)
    status = study.status()
    assert (status.verdict, status.winner, status.recommendation) == ("winner", "a", "a")
    assert status.sentence == (
        f"a is named the best, after {status.pulls} measurements; this threshold has no "
        f"proof, so nothing "
        "is guaranteed."
    )
    assert status.error_estimate is not None
    assert str(status.advice).startswith("Recommendation: a. Another candidate is better")
    assert not promises(status)


def test_the_same_strategies_with_their_proof_have_their_guarantee(where):
    study = create(where, fl.LazyTS(), arms=PLAIN)
    finish(study, Lab(PLAIN, np.array([4.0, 0.0, 0.0])), size=8)
    status = study.status()
    assert (status.winner, status.risk, status.advice) == ("a", 0.05, None)
    assert "wrong with probability at most 0.05" in status.sentence


def test_a_heuristic_that_is_cut_or_stopped_says_why(where):
    cut = create(where, fl.LazyTS(threshold="heuristic"), "cut", PLAIN, budget=12)
    finish(cut, Lab(PLAIN, np.array([0.1, 0.0, 0.0])), size=6)
    status = cut.status()
    assert (status.verdict, status.winner) == ("undecided", None)
    assert status.recommendation is not None
    assert status.sentence.startswith(
        "The budget of 12 measurements is used up. The strategy names no"
    )
    assert not promises(status)
    stopped = create(where, fl.LazyTS(threshold="heuristic"), "stopped", PLAIN, epsilon=0.1)
    assert stopped.stop("enough").sentence.startswith("Stopped (enough) after 0 measurements. The")


# ---- a recommendation that all rewards speak against --------------------------------------


def disagreeing(where, name, seed):
    arms = fl.Arms([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.95, 0.3, 0]], list("abcd"))
    study = create(where, "od-linbai", name, arms, sigma=0.3, budget=60)
    finish(study, Lab(arms, np.array([1.0, 0.5, 0.0]), 0.3, seed))
    return study.status()


def test_it_is_said_which_arm_all_rewards_speak_for(where):
    found = [disagreeing(where, f"seed {seed}", seed) for seed in range(30)]
    against = [status for status in found if status.error_estimate > 0.5]
    assert 2 <= len(against) <= 15  # about a fifth
    for status in found:
        other = f"All results together speak for {status.leader}."
        loud = [words for words in status.warnings if "all results together speak for" in words]
        assert status.recommendation == status.winner
        if status in against:
            assert status.leader != status.winner
            assert other in status.advice
            assert [f"recommends {status.winner}, but" in words for words in loud] == [True]
            assert f"probability {_rounded(status.error_estimate)}" in loud[0]
        else:
            assert "All results" not in status.advice
            assert loud == []


def test_one_half_is_the_border():
    rewards = Statistics.empty(3)
    rewards.add_many([0, 1, 2], [1.0, 3.0, 2.0])
    fit = estimate(PLAIN, rewards)
    for objective, best in (("max", 1), ("min", 0)):
        problem = fl.Problem(PLAIN, objective=objective, noise=fl.Gaussian(1.0))  # type: ignore[arg-type]
        found = [better_by_all(problem, fit, 2, error) for error in (None, 0.1, 0.5, 0.51)]
        assert found == [None, None, None, best]


def test_many_equal_rivals_are_no_other_arm_to_take(where):
    arms = fl.Arms.unstructured(9)
    study = create(where, "g-budget", arms=arms, budget=27)
    finish(study, Lab(arms, np.zeros(9)))
    status = study.status()
    assert status.error_estimate > 0.5
    assert status.recommendation == status.leader
    assert "All results" not in status.advice
    assert status.warnings == ()


# ---- no rewards --------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["gauntlet", "gse", "od-linbai", "uniform"])
def test_nothing_is_recommended_before_the_first_reward(where, strategy):
    status = create(where, strategy, budget=60).stop("enough")
    assert (status.verdict, status.winner, status.recommendation) == ("undecided", None, None)
    assert (status.error_estimate, status.certainty, status.warnings) == (None, None, ())
    assert str(status.advice).startswith("No recommendation: ")
    assert status.advice in str(status)


@BUDGETED
def test_nothing_is_recommended_if_every_reward_is_lost(where, strategy):
    study = create(where, strategy, budget=30)
    while batch := study.ask():
        lose(study, batch, "abcd")
    status = study.status()
    assert (status.verdict, status.winner, status.recommendation) == ("undecided", None, None)
    assert status.sentence == (
        "After 0 results of 30 measurements, the whole budget, no candidate that is left "
        "can be estimated."
    )
    assert study.ask().state == "decided"
    assert Study.open(where, "one").status().to_dict() == status.to_dict()


def test_a_winner_without_a_reward_is_none(where):
    study = create(where, "gse", arms=PLAIN, budget=24)
    kept = lose(study, study.ask(), "ab")
    study.tell(dict.fromkeys([pull.pull_id for pull in kept], 1.0))
    lose(study, study.ask(), "abc")  # ranked by number: a comes first
    status = study.status()
    assert (status.winner, status.recommendation, status.leader) == (None, None, "c")
    assert "results of 24 measurements" in status.sentence


def test_arms_that_lost_their_rewards_are_named(where):
    study = create(where, "od-linbai", arms=PLAIN, budget=30)
    means = {"a": 9.0, "b": 1.0, "c": 0.0}
    while batch := study.ask():
        kept = lose(study, batch, "a")
        study.tell({p.pull_id: means[p.arm] + 0.6 * LAB.noise(p.pull_id) for p in kept})
    status = study.status()
    assert (status.recommendation, status.error_estimate) == ("b", None)
    assert [words for words in status.warnings if "leaves out a:" in words]
    assert not [words for words in status.warnings if "a, b" in words]


def test_a_single_arm_needs_no_reward(where):
    arms = fl.Arms([[1.0]], ["only"])
    status = create(where, "g-budget", arms=arms, budget=3).status()
    assert (status.winner, status.recommendation, status.warnings) == ("only", "only", ())
    assert status.sentence == "only is the only candidate."


# ---- words of a study without a guarantee -------------------------------------------------


@pytest.mark.parametrize(
    ("sigma", "words"), [(0.01, "certainty and the intervals are left out"), (60.0, "too cautious")]
)
def test_warnings_do_not_speak_of_a_guarantee_that_is_none(where, sigma, words):
    for strategy, promised in (("od-linbai", False), ("uniform", True)):
        study = create(where, strategy, strategy, sigma=sigma, budget=60)
        batch = study.ask(30)
        study.tell(LAB.rewards(batch[:29]))
        lose(study, batch[29:], "abcd")  # after a look
        said = " ".join(study.status(forecast=False).warnings)
        assert "given up as missing" in said
        assert ("guarantee" in said) == promised
        assert (words in said) != promised


def test_a_wrong_model_without_a_guarantee():
    arms = fl.Arms([[1.0, x] for x in (-1.0, 0.0, 1.0)])
    rewards = Statistics.empty(3)
    values = [x * x + 0.1 * LAB.noise(i) for i in range(20) for x in (-1, 0, 1)]
    rewards.add_many([0, 1, 2] * 20, values)
    problem, fit = fl.Problem(arms, noise=fl.Gaussian(None)), estimate(arms, rewards)
    for promised in (True, False):
        (check,) = found(problem, fit, [], 0)
        said = check.words(promised)
        assert "not linear" in said
        assert ("guarantee" in said) == promised


def test_shifted_batches_without_a_guarantee(where):
    study = create(where, "gse", "shifted", fl.Arms.unstructured(6), sigma=None, budget=180)
    for turn in range(6):
        batch = study.ask(15)
        study.tell({p.pull_id: 50.0 * turn + LAB.noise(p.pull_id) for p in batch})
    said = " ".join(study.status(forecast=False).warnings)
    assert "shifted against each other" in said
    assert "guarantee" not in said


def test_pulls_without_a_reward_are_told_apart_from_rewards(where):
    study = create(where, "gse", budget=60)
    while batch := study.ask(10):
        lose(study, batch[:2], "abcd")
        study.tell(LAB.rewards(batch[2:]))
        going = study.status(forecast=False)
        if going.verdict == "continue":
            lost = going.batches * 10 - going.pulls
            assert f"After {10 * going.batches} of 60 measurements, {lost} of them without" in (
                going.sentence
            )
    status = study.status()
    assert f"after {status.pulls} results of 60 measurements, the whole budget" in status.sentence


def test_the_end_is_not_called_a_winner(where):
    study = create(where, "gse", budget=30)
    finish(study, LAB)
    assert study.ask().reason == "The strategy is done; nothing is left to measure."


def test_a_fork_says_that_errors_add_up(where):
    study = create(where, "gauntlet")
    for _ in range(3):
        study.tell(LAB.rewards(study.ask(20)))
    fork = study.fork("two", until=3)
    said = [words for words in fork.status(forecast=False).assumptions if "fork of one" in words]
    assert len(said) == 1
    assert "from before batch 3" in said[0]
    assert "add up" in said[0]
    assert not [words for words in study.status().assumptions if "fork" in words]
    budgeted = create(where, "gse", "three", budget=60)
    budgeted.tell(LAB.rewards(budgeted.ask(10)))
    assert "fork of" not in str(budgeted.fork("four", until=1).status().assumptions)
