"""What a review found, and must not come back."""

from dataclasses import replace

import numpy as np
import pytest

import finalist as fl
from finalist.errors import ConflictError, RewardError, StudyError
from finalist.study import Study
from finalist.study.checks import shift_p_value
from finalist.study.state import Measured
from finalist.study.storage.database import Reader
from tests.study.lab import ARMS, Lab

LAB = Lab(theta=np.array([1.0, 0.3, 0.0]))


def create(where, name="one", arms=ARMS, strategy="gauntlet", **settings):
    return Study.create(where, name, arms, strategy, **{"sigma": 0.6, "seed": 7, **settings})


def test_settings_are_copies(where):
    study = create(where, metadata={"x": [1]})
    study.settings["noise"]["sigma"] = 1e-9
    study.metadata["x"].append(2)
    assert study.settings["noise"]["sigma"] == 0.6
    assert study.metadata == {"x": [1]}


@pytest.mark.parametrize("strategy", ["g", "xy", "uniform", "gauntlet", "xy-adaptive"])
def test_a_budget_does_not_change_the_size_of_a_batch(where, strategy):
    free = create(where, "free", strategy=strategy, sigma=0.05).ask()
    bound = create(where, "bound", strategy=strategy, sigma=0.05, budget=10**6).ask()
    assert [p.arm for p in bound] == [p.arm for p in free]
    assert len(create(where, "little", strategy=strategy, budget=2).ask()) <= 2


def test_giving_up_pulls_after_a_look_is_said_aloud(where):
    study = create(where)
    batch = study.ask(12)
    study.missing(batch[0].pull_id, "never arrived")
    study.tell(LAB.rewards(batch[1:]))
    assert study.status().warnings == ()
    batch = study.ask(12)
    study.tell(LAB.rewards(batch[:5]))
    for pull in batch[5:]:
        study.missing(pull.pull_id, "no time")
    assert any("7 pulls were given up" in words for words in study.status().warnings)


def test_as_many_pulls_as_dimensions_with_an_unknown_sigma(where):
    study = create(where, arms=fl.Arms.unstructured(3), sigma=None)
    study.tell({p.pull_id: float(p.pull_id) for p in study.ask(3)})
    status = study.status()
    assert status.forecast is None
    assert all(arm.low is None for arm in status.arms)


def test_equal_rewards_and_an_unknown_sigma_give_no_interval(where):
    study = create(where, arms=fl.Arms.unstructured(2), sigma=None)
    for _ in range(3):
        study.tell(dict.fromkeys([p.pull_id for p in study.ask(8)], 5.0))
    assert "+-" not in study.status(forecast=False).sentence


def test_coins_are_no_shift_between_batches(where):
    study = create(where, arms=fl.Arms.unstructured(["a", "b"]), sigma=1.0, noise="sub-gaussian")
    for value in (0.0, 1.0):
        study.tell(dict.fromkeys([p.pull_id for p in study.ask(2)], value))
    assert study.status(forecast=False).warnings == ()


def test_the_test_of_shifts_equals_one_with_a_column_for_each_batch():
    rng = np.random.default_rng(0)
    arms = fl.Arms(rng.standard_normal((9, 3)))
    for shift in (0.0, 0.8):
        measured = []
        for k in range(12):
            chosen = np.sort(rng.choice(9, 5, replace=False))
            count = rng.integers(1, 6, 5)
            mean = arms.features[chosen] @ [1.0, 0.5, -1.0] + shift * np.sin(k)
            mean = mean + rng.standard_normal(5) / np.sqrt(count)
            measured.append(Measured(0, chosen, count, mean))
        rows = np.concatenate([m.arms for m in measured])
        root = np.sqrt(np.concatenate([m.count for m in measured]))
        y = np.concatenate([m.mean for m in measured]) * root
        of = np.repeat(np.arange(12), 5)
        Z = arms.features[rows] * root[:, None]
        one = np.column_stack([Z, root])
        many = np.column_stack([Z, (of[:, None] == np.arange(12)) * root[:, None]])
        small, large = (
            float(np.sum((y - X @ np.linalg.lstsq(X, y, rcond=None)[0]) ** 2)) for X in (one, many)
        )
        from scipy.stats import f

        left = len(y) - 3 - 12
        expected = f.sf((small - large) / 11 / (large / left), 11, left)
        assert shift_p_value(arms, measured) == pytest.approx(expected, rel=1e-8)


def test_intervals_with_an_unknown_sigma_cover(tmp_path):
    missed = 0
    for seed in range(60):
        lab = Lab(fl.Arms.unstructured(2), np.array([1.0, 0.0]), 1.0, seed)
        study = create(tmp_path / "lab.db", f"s{seed}", fl.Arms.unstructured(2), sigma=None)
        for _ in range(6):
            if not (batch := study.ask(3)):
                break
            study.tell(lab.rewards(batch))
            for arm in study.status(forecast=False).arms:
                if arm.low is not None and not arm.low <= lab.means[arm.name] <= arm.high:
                    missed += 1
                    break
        study.close()
    assert missed <= 6  # 5 % of 60 is 3; an estimated sigma taken as it is misses 8 and more


def test_lost_pulls_use_up_an_arm(where):
    study = create(where, arms=fl.Arms.unstructured(["a", "b"]), max_pulls_per_arm=3)
    while batch := study.ask():
        for pull in batch:
            study.missing(pull.pull_id, "lost")
    assert batch.state == "exhausted"
    assert len(study.to_frame()) == 6


def test_a_fork_has_a_life_of_its_own(where):
    study = create(where)
    study.tell(LAB.rewards(study.ask(12)))
    with study.fork("f", until=1) as fork:
        fork.ask()
    assert study.status().batches == 1
    study.withdraw("c")
    again = study.fork("g", until=1)
    again.tell(LAB.rewards(again.ask()))
    again.withdraw("b")
    assert again.arms.names == ("a", "c", "d")
    with pytest.raises(StudyError):
        study.fork("h", until=True)


def test_notes_of_rewards_are_forked_too(where):
    study = create(where)
    frame = study.ask(12).to_frame().assign(reward=0.5, weather="wet")
    study.tell(frame)
    study.ask(12)
    assert "wet" in study.fork("f", until=2).to_frame().note[0]


def test_one_table_of_earlier_measurements(where):
    study = create(where)
    study.import_history([("a", 1.0)])
    with pytest.raises(ConflictError, match="one table"):
        study.import_history([("b", 1.0)])
    coin = Study.create(where, "coin", ARMS, noise="bernoulli")
    with pytest.raises(RewardError, match="row 2"):
        coin.import_history([("a", 1.0), ("b", 7.3)])


def test_integers_of_numpy_are_integers(where):
    study = create(where)
    batch = study.ask(np.int64(8))
    study.void(np.int64(1), "lost")
    study.missing(np.int64(2), "lost")
    study.tell({np.int64(3): 1.0})
    study.amend(np.int64(3), 2.0, "wrong")
    study.tell(LAB.rewards(study.ask()))
    assert len(study.fork("f", until=np.int64(1)).ask()) == len(batch)


def test_a_forecast_knows_the_budget(where):
    study = create(where, budget=30)
    for _ in range(2):
        study.tell(LAB.rewards(study.ask(12)))
    assert study.status().forecast.cap == 6


def test_the_order_of_a_repeated_call_does_not_matter(where):
    study = create(where)
    rewards = LAB.rewards(study.ask(4))
    assert study.tell(rewards, client_id="x") == 4
    assert study.tell(dict(reversed(rewards.items())), client_id="x") == 0


def test_opening_with_the_sigma_of_another_noise(where):
    create(where, sigma=2.0, noise="sub-gaussian")
    Study.open(where, "one", sigma=2.0)
    with pytest.raises(StudyError, match="other settings"):
        Study.open(where, "one", sigma=1.0)


def test_a_batch_that_was_looked_at_stays_so_when_its_reward_is_amended(where):
    study = create(where)
    first, second, *_ = study.ask(12)
    study.tell({first.pull_id: 1.0})
    study.missing(second.pull_id, "lost")
    study.amend(first.pull_id, 1.5, "a typing error")
    assert any("1 pull was given up" in words for words in study.status().warnings)
    assert Study.open(where, "one").status().warnings == study.status().warnings


def test_candidates_are_compared_together_with_the_arms(where):
    arms = fl.Arms(
        [[1.0, 0.0], [0.0, 1.0], [1.0, 2.0]], list("abc"), measurable=[True, True, False]
    )
    others = fl.Arms([[1.0, 1.0], [2.0, 1.0]], list("pq"))
    words = {"sigma": [1.0, 2.0, 3.0], "cost": [1.0, 2.0, 3.0]}
    create(where, arms=arms, candidates=others, **words)
    Study.open(where, "one", arms=arms, candidates=others, **words)  # one of each given arm
    with pytest.raises(StudyError, match="other settings"):
        Study.open(where, "one", arms=arms, candidates=others, cost=[1.0, 2.0, 4.0])
    with pytest.raises(StudyError, match="candidates are compared together with the arms"):
        Study.open(where, "one", candidates=others)
    with pytest.raises(StudyError, match="candidates is of type str; use Arms"):
        Study.open(where, "one", arms=arms, candidates="pq")


def test_a_study_of_the_first_version_is_opened_with_the_words_of_now(where, monkeypatch):
    study = create(where)
    kept = study.settings
    later = ("top", "cost", "batch_intercept", "misspecification", "measurable", "candidate")
    early = replace(study._log.row, settings={k: v for k, v in kept.items() if k not in later})
    monkeypatch.setattr(Reader, "study", lambda *_: early)
    Study.open(where, "one", top=1, cost=1.0, batch_intercept=False, misspecification=0.0)
    with pytest.raises(StudyError, match="top is 1 and not 2"):
        Study.open(where, "one", top=2)


def test_whole_numbers_of_numpy_are_whole_numbers(where):
    study = create(where, seed=np.int64(3), budget=np.int32(30))
    assert (study.settings["seed"], study.settings["budget"]) == (3, 30)
    with pytest.raises(StudyError, match=r"below 2\*\*63"):
        create(where, "two", seed=2**63)


def test_messages_name_numbers_as_people_write_them(where):
    study = create(where)
    pull = study.ask(12)[0].pull_id
    study.tell({pull: 0.5})
    with pytest.raises(ConflictError, match=f"pull {pull} has the reward 0.5 and not 0.75;"):
        study.tell({pull: 0.75})
    with pytest.raises(StudyError, match="there is no pull 99 in this study"):
        study.void(np.int64(99), "lost")


def test_earlier_measurements_are_named_by_their_rows(where):
    study = create(where)
    with pytest.raises(RewardError, match="the reward in row 2 is nan, which is not a finite"):
        study.import_history([("a", 1.0), ("b", float("nan"))])
    study.import_history([("a", 1.0)])
    with pytest.raises(ConflictError, match="1 earlier measurement is in already"):
        study.import_history([("a", 1.0)])


def test_evidence_of_nothing_has_whole_numbers_of_pulls(where):
    pulls, evidence = create(where).evidence()
    assert (pulls.dtype, pulls.shape, evidence.shape) == (np.int64, (0,), (0, 4))


@pytest.mark.parametrize("sigma", [None, "large", [[1.0]], [1.0, 2.0], -1.0])
def test_a_new_arm_needs_one_positive_sigma(where, sigma):
    study = create(where, sigma=[0.5, 0.6, 0.7, 0.8])
    with pytest.raises(StudyError, match="give one positive sigma for the new arm"):
        study.add(fl.Arms([[1.0, 1.0, 1.0]], ["e"]), sigma=sigma)
