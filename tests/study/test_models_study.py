"""Studies of every model: arms that are added later, forks with another model and their history."""

import threading
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.arms.models import MODELS
from finalist.errors import ArmsError, FinalistError, NameTakenError, StudyError
from finalist.study import Study
from finalist.study.storage.writer import Writer
from tests.unit.test_models import TABLE, arms_of

ROW: dict[str, Any] = {
    "id": ("new",),
    "dose": np.array([9.0]),
    "Tone": ("stern",),
    "oven": ("Y",),
    "heat": np.array([15.0]),
}


def more(**cells):
    """One more candidate, read from a table of its own."""
    return arms_of("separate", table=ROW | cells)


def measure(study, size=None, times=1):
    """Tell rewards that are the numbers of pulls; return names with rewards."""
    found = []
    for _ in range(times):
        batch = study.ask(size)
        study.tell({pull.pull_id: float(pull.pull_id) for pull in batch})
        found += [(pull.arm, float(pull.pull_id)) for pull in batch]
    return found


def history_of(study):
    """What a study has as history, as names and rewards."""
    names = study.arms.names
    bodies = [event for event in study.history() if event["kind"] == "history"]
    return sorted(
        (names[a], r) for b in bodies for a, r in zip(b["arms"], b["rewards"], strict=True)
    )


def straight(where, **words):
    return Study.create(where, "old", arms_of("straight"), **({"sigma": 1.0} | words))


# --- arms that are added --------------------------------------------------------------------


@pytest.mark.parametrize("model", ["straight", "bending", "surface"])
def test_arms_are_added_by_the_columns_of_the_table(where, model):
    study = Study.create(where, "s", arms_of(model), sigma=1.0)
    study.add(more())
    measure(study)
    found = Study.open(where, "s").arms
    assert found == study.arms
    assert found.recipe == arms_of(model).recipe
    own = dict(zip(found.feature_names, found.features[found.index("new")], strict=True))
    assert (own["dose"], own["Tone: stern"], own["oven"], own["intercept"]) == (9, 1, 1, 1)
    if model != "straight":
        assert own["dose^2"] == 6.5**2
    if model == "surface":
        assert own["dose * heat"] == 0.0
        assert own["dose * oven"] == 6.5
    assert {c: list(v)[-1] for c, v in found.table.items()} == {c: v[0] for c, v in ROW.items()}
    fork = study.fork("again", 1)
    assert fork.arms == found
    assert fork.arms.recipe == found.recipe
    assert dict(fork.arms.table)["Tone"] == found.table["Tone"]


def test_an_unknown_level_is_not_added(where):
    study = Study.create(where, "s", arms_of("bending"), sigma=1.0)
    with pytest.raises(ArmsError, match="column 'Tone': 'rude' is not a level"):
        study.add(more(Tone=("rude",)))
    with pytest.raises(ArmsError, match="column 'oven': 'maybe' is neither yes nor no"):
        study.add(more(oven=("maybe",)))
    assert study.arms == arms_of("bending")


def test_columns_that_the_study_does_not_have_are_refused(where):
    bent = fl.Arms([[1.0, 2.0], [2.0, 2.5], [4.0, 3.0]]).with_model("bending")
    study = Study.create(where, "s", bent, sigma=1.0)
    with pytest.raises(StudyError, match="candidates to add have the features f1, f2, f3"):
        study.add(fl.Arms([[1.0, 2.0, 3.0]], names=["n"]))
    with pytest.raises(StudyError, match="candidates to add have the features f1;"):
        study.add(fl.Arms([[1.0]], names=["n"]))
    study.add(fl.Arms([[3.0, 2.0]], names=["n"]))
    assert study.arms.features[-1].tolist() == [3, 2, 9, 4]


def test_separate_arms_take_no_more(where):
    study = Study.create(where, "s", arms_of("separate"), sigma=1.0)
    with pytest.raises(StudyError, match=r"separate.*none can be added"):
        study.add(more())


# --- another model --------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_a_fork_has_the_settings_and_all_results_as_history(where, model):
    words = {"delta": 0.1, "objective": "min", "unit": "kg", "metadata": {"who": "me"}}
    old = straight(where, seed=1, **words)
    old.import_history([("a", 1.0), ("b", 2.0)])
    told = measure(old, times=2)
    batch = old.ask()
    first = next(iter(batch))
    old.tell({first.pull_id: 5.0})  # of a batch that is still open
    new = old.fork("new", model=model)
    assert new.arms == arms_of(model)
    same = ("strategy", "noise", "delta", "objective", "unit", "metadata", "cost", "budget")
    assert all(new.settings[word] == old.settings[word] for word in same)
    assert new.settings["seed"] != old.settings["seed"]
    assert history_of(new) == sorted([("a", 1.0), ("b", 2.0), *told, (first.arm, 5.0)])
    status = Study.open(where, "new").status()
    assert status.pulls == 0
    assert status.verdict == "continue"
    assert any("0.1 + 0.1 = 0.2 in all" in words for words in status.assumptions)
    assert old.status().pulls == len(told) + 1
    measure(new)


def test_probabilities_of_error_add_up_over_all_forks(where):
    old = straight(where, delta=0.05)
    measure(old)
    old.withdraw("a")  # 0.05 + 0.025
    new = old.fork("new", model="bending")
    newer = new.fork("newer", model="surface")
    assert any("0.125 + 0.05 = 0.175 in all" in words for words in newer.status().assumptions)
    measure(new)
    again = new.fork("again", 1)
    assert any("fork of new from before batch 1" in words for words in again.status().assumptions)
    last = again.fork("last", model="separate")  # old, new and again
    assert any("0.175 + 0.05 = 0.225 in all" in words for words in last.status().assumptions)


def test_results_of_withdrawn_arms_are_left_out(where):
    old = straight(where)
    told = measure(old)
    old.withdraw("a")
    old.add(more())
    told += measure(old)
    new = old.fork("new", model="bending")
    assert "a" not in new.arms
    assert history_of(new) == sorted((name, r) for name, r in told if name != "a")


def test_a_study_without_results_has_no_history(where):
    new = straight(where).fork("new", model="bending")
    assert [event["kind"] for event in new.history()] == ["created"]
    assert new.status().pulls == 0


def test_noise_and_cost_of_each_arm_stay(where):
    sigma, cost = [1.0, 2.0, 3.0, 4.0, 5.0], [5.0, 4.0, 3.0, 2.0, 1.0]
    old = straight(where, sigma=sigma, cost=cost)
    measure(old)
    for model in MODELS:
        new = old.fork(model, model=model)
        assert new.settings["noise"]["sigma"] == sigma
        assert new.settings["cost"] == cost
        measure(new)


def test_rows_that_become_one_arm_must_agree(where):
    apart = fl.Arms([[1.0], [2.0], [1.0]], names=["a", "b", "c"]).with_model("separate")
    cost = [float(ord(name)) for name in apart.names]
    old = Study.create(where, "old", apart, sigma=1.0, cost=cost)
    with pytest.raises(StudyError, match=r"'a' and 'c' have the same columns.* their cost differs"):
        old.fork("new", model="straight")
    assert fl.studies(where) == ["old"]


def test_shifts_between_batches_do_not_reach_the_history(tmp_path):
    """Batches shifted by a thousand: the history has the differences of arms, and no shift."""
    old = straight(tmp_path / "lab.db", batch_intercept=True)
    effect = dict(zip("abcde", (0.0, 1.0, 2.0, 3.0, 4.0), strict=True))
    for number in range(3):
        batch = old.ask()
        old.tell({pull.pull_id: effect[pull.arm] + 1000.0 * number for pull in batch})
    new = old.fork("new", model="bending")
    assert new.settings["batch_intercept"] is True
    found = history_of(new)
    assert len(found) == old.status().pulls
    level = found[0][1] - effect[found[0][0]]
    assert [r for _, r in found] == pytest.approx([effect[name] + level for name, _ in found])
    measure(new)


def test_rows_that_differ_beyond_the_model_are_not_merged(tmp_path):
    apart = fl.Arms([[1.0], [2.0], [1.0]], names=["a", "b", "c"]).with_model("separate")
    old = Study.create(tmp_path / "lab.db", "old", apart, sigma=1.0, misspecification=0.1)
    with pytest.raises(StudyError, match="a and c have the same features"):
        old.fork("new", model="straight")


def test_a_study_of_zeros_and_ones_stays_one(tmp_path):
    old = Study.create(tmp_path / "lab.db", "old", arms_of("straight"), noise="bernoulli")
    batch = old.ask()
    old.tell({pull.pull_id: float(pull.pull_id % 2) for pull in batch})
    new = old.fork("new", model="bending")
    assert {r for _, r in history_of(new)} == {0.0, 1.0}
    with pytest.raises(FinalistError, match="0 or 1"):
        new.tell({next(iter(new.ask())).pull_id: 0.5})


def test_studies_of_arrays_can_bend_and_studies_without_a_table_cannot(where):
    old = Study.create(where, "old", fl.Arms([[1.0, 1.0], [2.0, 1.0], [4.0, 1.0]]), sigma=1.0)
    measure(old)
    assert old.fork("new", model="bending").arms.feature_names == ("f1", "f1^2", "intercept")
    plain = Study.create(where, "plain", fl.Arms.unstructured(3), sigma=1.0)
    with pytest.raises(StudyError, match="no columns of which the model 'bending'"):
        plain.fork("other", model="bending")
    with pytest.raises(StudyError, match="no model 'cubic'; use straight"):
        plain.fork("other", model="cubic")


def test_until_and_model_exclude_each_other(where):
    old = straight(where)
    measure(old)
    with pytest.raises(StudyError, match="both are given"):
        old.fork("new", 1, model="bending")
    with pytest.raises(StudyError, match="neither is given"):
        old.fork("new")
    with pytest.raises(NameTakenError):
        old.fork("old", model="bending")
    assert fl.studies(where) == ["old"]


def test_a_strategy_without_a_use_for_history_says_so(where):
    old = Study.create(where, "old", arms_of("straight"), "uniform", sigma=1.0)
    assert old.fork("empty", model="bending").arms.recipe.name == "bending"
    measure(old)
    with pytest.raises(StudyError, match="cannot use earlier measurements"):
        old.fork("new", model="bending")
    assert fl.studies(where) == ["empty", "old"]


@pytest.mark.parametrize("kind", ["created", "history"])
def test_a_crash_on_the_way_leaves_no_study(where, monkeypatch, kind):
    old = straight(where)
    measure(old)
    write = Writer.append

    def append(self, study, number, this, body, **words):
        event = write(self, study, number, this, body, **words)
        if this == kind:
            raise KeyboardInterrupt
        return event

    monkeypatch.setattr(Writer, "append", append)
    with pytest.raises(KeyboardInterrupt):
        old.fork("new", model="bending")
    monkeypatch.undo()
    assert fl.studies(where) == ["old"]
    new = old.fork("new", model="bending")
    assert len(history_of(new)) == old.status().pulls


def test_who_tells_meanwhile_tells_before_or_after(where):
    """A fork has all results of a call that told them, or none."""
    old = straight(where)
    measure(old)
    told = old.status().pulls
    batch = old.ask(size=20)
    results = {pull.pull_id: 1.0 for pull in batch}
    other = Study.open(where, "old")
    ready = threading.Barrier(2)

    def tell():
        ready.wait()
        other.tell(results)

    thread = threading.Thread(target=tell)
    thread.start()
    ready.wait()
    new = old.fork("new", model="bending")
    thread.join()
    assert len(history_of(new)) in (told, told + len(results))
    assert len(history_of(old.fork("newer", model="bending"))) == told + len(results)


def test_the_table_survives(where):
    old = straight(where)
    measure(old)
    new = Study.open(where, old.fork("new", model="separate").name)
    assert {c: list(v) for c, v in new.arms.table.items()} == {c: list(v) for c, v in TABLE.items()}
    assert new.fork("back", model="surface").arms == arms_of("surface")
