"""What a study says of the rest of its budget: now, at its end, and where nothing can be said."""

import json

import numpy as np
import pytest

import finalist as fl
from finalist.client.values import parse_status
from finalist.study import Study
from finalist.study.outlook import Outlook, behind, chances
from tests.study.lab import Lab
from tests.web.labs import person

SIX = fl.Arms.unstructured(list("abcdef"))
MEANS = np.array([1.0, 0.6, 0.5, 0.1, 0.0, -0.2])
LAB = Lab(SIX, MEANS, 1.0, 4)


def begun(where, batches=2, size=12, name="one", strategy="gauntlet", **words):
    given = {"sigma": 1.0, "budget": 60, "delta": 0.001, "seed": 5, **words}
    study = Study.create(where, name, SIX, strategy, **given)
    for _ in range(batches):
        if batch := study.ask(size=size):
            study.tell(LAB.rewards(batch))
    return study


@pytest.fixture
def where(tmp_path):
    return tmp_path / "lab.db"


def test_it_is_said_from_the_first_batch_to_the_end(where):
    with begun(where, 0) as study:
        assert study.status(forecast=False).outlook is None  # nothing is measured
        seen = []
        while batch := study.ask(size=12):
            study.tell(LAB.rewards(batch))
            status = study.status(forecast=False)
            seen.append(status.outlook)
            assert status.outlook.words in str(status)
            assert json.loads(json.dumps(status.to_dict()))["outlook"] == vars(status.outlook)
    assert [one.to_come for one in seen] == [48, 36, 24, 12, 0]
    for one in seen[:-1]:
        assert one.right < one.right_at_end < 1.0
        assert one.right < one.near
        assert one.right_at_end < one.near_at_end
        assert "If you chose now" in one.words
        assert "estimates from the results so far, not a guarantee" in one.words
    last = seen[-1]
    assert (last.right_at_end, last.near_at_end) == (None, None)
    assert last.right == 1.0 - status.error_estimate
    assert "By this estimate the recommendation is right" in last.words


def test_a_larger_budget_promises_more(where):
    later = []
    for budget in (36, 60, 600, 60_000):
        with begun(where, name=str(budget), budget=budget) as study:
            later.append(study.status(forecast=False).outlook)
    ends = [one.right_at_end for one in later]
    assert ends == sorted(ends)
    assert ends[-1] > 0.95
    assert ends[0] < 0.8


def test_a_difference_may_be_stated(where):
    with begun(where) as study:
        one, other = (study.status(forecast=False, within=d).outlook for d in (0.3, 0.6))
        assert (one.difference, other.difference) == (0.3, 0.6)
        assert one.near < other.near
        assert one.near_at_end < other.near_at_end
        assert one.right == other.right
        assert "within 0.3 of the best" in one.words


def test_an_end_that_is_sure_and_a_margin_need_no_outlook(where):
    with begun(where, 20, delta=0.3, budget=2000) as study:
        status = study.status(forecast=False)
        assert status.verdict == "winner"
        assert status.outlook is None
    with begun(where, name="near", epsilon=0.5) as study:
        near = study.status(forecast=False, within=0.5).outlook
        assert near.right == near.near  # within the margin is right


@pytest.mark.parametrize(
    "words",
    [
        {"sigma": None},
        {"sigma": [1.0, 0.5, 2.0, 1.0, 1.0, 1.0]},
        {"noise": "sub-gaussian"},
        {"objective": "min"},
        {"batch_intercept": True},
        {"max_pulls_per_arm": 9},
        {"strategy": "uniform"},
    ],
    ids=str,
)
def test_where_it_is_said(where, words):
    with begun(where, 3, **words) as study:
        found = study.status(forecast=False).outlook
        assert 0.0 < found.right < 1.0
        assert found.right <= found.near <= 1.0
        assert found.right < found.right_at_end + 0.05 < 1.05


def test_several_of_the_best_and_yes_no_results(where):
    with begun(where, 3, top=2) as study:
        found = study.status(forecast=False).outlook
        assert found.right < found.right_at_end
        assert ", " in found.words.split(" would")[0]
    binary = Lab(SIX, np.array([0.8, 0.6, 0.5, 0.4, 0.4, 0.2]), 1.0, 3)
    with Study.create(where, "yes", SIX, noise="bernoulli", budget=60, seed=1) as study:
        batch = study.ask(size=24)
        rng = np.random.default_rng(1)
        told = {p.pull_id: float(rng.random() < binary.means[p.arm]) for p in batch}
        study.tell(told)
        assert study.status(forecast=False).outlook is not None


def test_a_strategy_that_does_not_choose_by_all_results_says_nothing_of_the_end(where):
    with begun(where, 3, strategy="gse") as study:
        found = study.status(forecast=False).outlook
        assert found.right_at_end is None
        assert "At the end" not in found.words


def test_where_it_is_not_said(where):
    with begun(where, 2, name="none", budget=None) as study:
        assert study.status(forecast=False).outlook is None
    with begun(where, 3, name="off", misspecification=0.1) as study:
        assert study.status(forecast=False).outlook is None
    with begun(where, 5, name="doubtful", sigma=0.05, budget=600) as study:
        status = study.status(forecast=False)
        assert status.doubts
        assert status.outlook is None


def test_the_page_the_report_and_the_api_say_it(where):
    with begun(where) as study:
        here = study.status(forecast=False, within=0.3)
    with person(where) as somebody:
        page, report = (somebody.get(f"/studies/1{part}").text for part in ("", "/report.html"))
        assert "If you chose now" in page
        assert "If you chose now" in report
        for forecast in ("false", "true"):
            answer = somebody.get(f"/api/v1/studies/1/status?forecast={forecast}&within=0.3").json()
            assert parse_status(answer).outlook == here.outlook
        answer.pop("outlook")  # an older server
        assert parse_status(answer).outlook is None
        assert somebody.get("/api/v1/studies/1/status?within=-1").status_code == 422


def test_how_far_behind_a_choice_of_several_is():
    means = np.array([[3.0, 2.0, 1.0, 2.5]])
    assert behind(means, np.array([[0, 1]])) == pytest.approx([0.5])
    assert behind(means, np.array([[0, 3]])) == pytest.approx([0.0])


def test_round_differences():
    for worst, shown in ((0.013, 0.02), (0.9, 1.0), (4.0, 5.0), (60.0, 100.0)):
        outlook = Outlook((0,), 5, 0.0, np.full(50, worst), np.full(50, worst))
        assert chances(outlook, ["a"]).difference == shown
    nothing = Outlook((0,), 5, 0.0, np.zeros(50), np.zeros(50))
    found = chances(nothing, ["a"])
    assert found.difference is None
    assert "more than 99 %" in found.words


@pytest.mark.parametrize("budget", [1, 2, 5])
def test_a_budget_that_cannot_compare_all_arms_says_so_and_ends(where, budget):
    with begun(where, 9, budget=budget, size=2) as study:
        status = study.status(forecast=False)
        assert status.pulls == budget
        assert status.recommendation in SIX.names
        assert f"pays for {budget} measurement" in status.warnings[0]
        assert "takes at least 6" in status.warnings[0]
        assert "leaves out" in status.warnings[-1]
    with begun(where, 0, budget=6, name="six") as study:
        assert not study.status(forecast=False).warnings
