"""When a study looks at its assumptions, and what it says of one that has failed."""

import numpy as np
import pytest
from scipy import stats

import finalist as fl
from finalist.inference.pooling import BatchSums
from finalist.study import checks

BUDGET = {"strategy": "od-linbai", "budget": 200}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def measure(study, size, scale, rng):
    study.tell({pull.pull_id: scale * rng.standard_normal() for pull in study.ask(size)})


def noisy_at_last(tmp_path, rng):
    """Return a study of 20 batches as assumed, and a 21st that is far noisier."""
    study = fl.Study.create(tmp_path / "lab.db", "one", fl.Arms.unstructured(5), sigma=1.0, seed=1)
    for _ in range(20):
        measure(study, 10, 1.0, rng)
    assert study.status().certain
    measure(study, 10, 12.0, rng)
    return study


@pytest.mark.parametrize("cheap", [checks.CHEAP, 0])
def test_no_batch_goes_by_unseen(tmp_path, rng, monkeypatch, cheap):
    monkeypatch.setattr(checks, "CHEAP", cheap)
    study = noisy_at_last(tmp_path, rng)
    assert not study.status().certain
    assert study.status().risk is None
    assert not fl.Study.open(tmp_path / "lab.db", "one").status().certain


@pytest.mark.parametrize("cheap", [checks.CHEAP, 0])
def test_what_failed_when_a_study_was_stopped_has_failed_when_it_goes_on(
    tmp_path, rng, monkeypatch, cheap
):
    monkeypatch.setattr(checks, "CHEAP", cheap)
    study = noisy_at_last(tmp_path, rng)
    study.stop("lunch")
    seen = study.status().doubts
    assert seen
    study.resume()
    assert study.status().doubts == seen
    measure(study, 2000, 0.0, rng)  # so many that scatter so little hide it
    assert study.status().doubts == seen
    assert not fl.Study.open(tmp_path / "lab.db", "one").status().certain


def test_looks_are_seldom_only_where_they_are_dear():
    assert all(checks.is_look(k, checks.CHEAP) for k in range(1, 200))
    looks = [k for k in range(1, 200) if checks.is_look(k, checks.CHEAP + 1)]
    assert looks[:21] == [*range(1, 21), 22]
    assert len(looks) < 60


def test_coins_are_no_shift_between_batches(where):
    study = fl.Study.create(
        where, "one", fl.Arms.unstructured(["a", "b"]), sigma=1.0, noise="sub-gaussian", seed=7
    )
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
            measured.append(BatchSums(chosen, count, mean, np.zeros(5)))
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
        left = len(y) - 3 - 12
        expected = stats.f.sf((small - large) / 11 / (large / left), 11, left)
        assert checks.shift_p_value(arms, measured) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("words", [BUDGET, {"strategy": fl.LazyTS(threshold="heuristic")}])
def test_without_a_guarantee_too_a_failed_check_is_said_first(tmp_path, rng, words):
    study = fl.Study.create(
        tmp_path / "lab.db", "one", fl.Arms.unstructured(4), sigma=1.0, seed=1, **words
    )
    while study.ask(20):
        measure(study, 20, 5.0, rng)
        status = study.status()
        if status.pulls >= 40:
            assert status.doubts
            assert status.sentence.startswith("Nothing is certain, because the results scatter")
    assert study.status().verdict == "uncertain"
    assert "recommend" in study.status().sentence or "named" in study.status().sentence


def test_one_bend_is_said_once(tmp_path, rng):
    x = np.linspace(-1.0, 1.0, 5)
    grid = np.array([(a, b) for a in x for b in x])
    arms = fl.Arms(grid).with_intercept()
    truth = dict(zip(arms.names, -4.0 * ((grid - [0.3, -0.2]) ** 2).sum(axis=1), strict=True))
    study = fl.Study.create(tmp_path / "lab.db", "dome", arms, sigma=0.5, seed=1)
    for _ in range(4):
        study.tell({p.pull_id: truth[p.arm] + 0.5 * rng.standard_normal() for p in study.ask(12)})
    status = study.status()
    assert not status.certain
    said = [words for words in status.warnings if "bend" in words or "linear" in words]
    assert len(said) == 1
    assert "study.fork" in said[0]
    assert "lack of fit" not in status.sentence
