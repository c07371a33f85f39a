"""The verdict card: intervals that agree with the verdict, always."""

from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.inference.leads import leads
from finalist.study import Study
from finalist.study.estimates import CONFIDENCE, _bets, _start
from finalist.study.status import status as status_of
from finalist.web.pages.format import number
from finalist.web.pages.standing import checked, lead, span, standard_errors, standing
from tests.web.labs import person, text_of

#: Studies that are run to their end.
STUDIES = 40


def ended(where, seed):
    """A study of 3 to 10 candidates at its end, and the true means."""
    rng = np.random.default_rng(seed)
    K, featured = int(rng.integers(3, 11)), seed % 3 == 0
    X = rng.standard_normal((K, 3)) if featured else np.eye(K)
    theta = rng.normal(size=X.shape[1])
    arms = fl.Arms(X, [f"c{i}" for i in range(K)])
    words: dict[str, Any] = {"objective": "min"} if seed % 4 == 1 else {}
    words |= {"epsilon": 0.4} if seed % 5 == 2 else {}
    words |= {"sigma": None} if seed % 4 == 3 else {"sigma": 1.0}
    study = Study.create(where, f"s{seed}", arms, seed=seed, **words)
    means = dict(zip(arms.names, X @ theta, strict=True))
    for _ in range(400):
        if not (batch := study.ask(24)):
            break
        study.tell({p.pull_id: float(means[p.arm] + rng.standard_normal()) for p in batch})
    return study, means


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    place = tmp_path_factory.mktemp("verdicts") / "lab.db"
    return [ended(place, seed) for seed in range(STUDIES)]


def test_nothing_that_is_out_has_an_interval_that_speaks_against_the_verdict(studies):
    won = 0
    for study, _ in studies:
        snapshot = study.snapshot()
        found = standing(snapshot, status_of(snapshot))
        if not found.certain:
            continue
        won += 1
        least = -snapshot.problem.epsilon
        for row in found.differences:
            assert row.low is not None
            assert row.high is not None
            assert row.behind is not None
            assert row.low >= least, (snapshot.name, row)
            assert row.low <= row.behind <= row.high, (snapshot.name, row)
    assert won >= STUDIES // 2


def test_without_the_cut_tests_and_intervals_seem_to_disagree(studies):
    """The broken twin: the intervals as they come reach below 0 for candidates that are out."""
    wrong = 0
    for study, _ in studies:
        snapshot, state = study.snapshot(), study._log.now()
        if not snapshot.winners or snapshot.problem.epsilon > 0 or snapshot.doubts:
            continue
        words = {"sign": snapshot.problem.sign, "won": True}
        raw = leads(
            snapshot.fit, snapshot.winners[0], _start(state), CONFIDENCE, snapshot.problem.scale,
            _bets(state), **words,
        )  # fmt: skip
        assert snapshot.leads is not None
        wrong += int((raw.low < 0).sum())
        np.testing.assert_array_equal(snapshot.leads.high, raw.high)
        np.testing.assert_array_equal(snapshot.leads.low, np.maximum(raw.low, 0.0))
    assert wrong > 0


def test_the_true_leads_are_in_their_intervals(studies):
    """At least 90 % of studies (5 % besides delta of 5 %) have all true leads inside."""
    inside = []
    for study, means in studies:
        snapshot = study.snapshot()
        found = standing(snapshot, status_of(snapshot))
        if found.front is None or not found.differences:
            continue
        sign, top = snapshot.problem.sign, means[found.front.name]
        true = {row.name: sign * (top - means[row.name]) for row in found.differences}
        inside.append(
            all(row.low <= true[row.name] <= row.high for row in found.differences if row.low)
        )
    # With a probability of 0.9, fewer than 30 of 40 have a probability of 0.2 %.
    assert len(inside) >= STUDIES * 3 // 4
    assert sum(inside) >= 0.75 * len(inside)


def test_while_it_goes_on_only_what_is_possible_is_compared(tmp_path):
    arms = fl.Arms.unstructured([f"c{i}" for i in range(8)])
    rng = np.random.default_rng(1)
    with Study.create(tmp_path / "lab.db", "s", arms, sigma=1.0, seed=1) as study:
        for _ in range(200):
            batch = study.ask(16)
            study.tell({p.pull_id: float(p.arm[1]) / 2 + rng.standard_normal() for p in batch})
            snapshot = study.snapshot()
            if snapshot.end is None and len(snapshot.verdict.survivors) < 8:
                break
        status = status_of(snapshot)
        found = standing(snapshot, status)
        out = {row.name for row in found.rows if row.state == "out"}
        assert out
        assert not out & {row.name for row in found.differences}
        assert found.front is not None
        assert found.front.state == "ahead"
        assert found.front.name == status.leader
        assert all(row.batch is not None and row.rival for row in found.rows if row.name in out)
        words = lead(snapshot, found)
        assert words is not None
        assert found.second is not None
        assert found.second.name in status.survivors
        assert f"{found.front.name} leads {found.second.name}, the runner-up, by" in words
        assert "95 % interval" in words
        assert "whether results scatter as much as was given" in checked(snapshot)
    with person(tmp_path / "lab.db") as somebody:
        text = text_of(somebody.get("/studies/1"))
        assert words in text
        assert "Rests on" in text
        assert "What the verdict rests on" in text


def test_standard_errors_are_those_of_any_table_of_means(tmp_path):
    arms = fl.Arms.unstructured(["a", "b"])
    with Study.create(tmp_path / "lab.db", "s", arms, sigma=2.0, seed=1) as study:
        study.tell({p.pull_id: 1.0 for p in study.ask(12)})
        snapshot = study.snapshot()
        counts = snapshot.fit.statistics.count
        np.testing.assert_allclose(standard_errors(snapshot), 2.0 / np.sqrt(counts))
    with Study.create(tmp_path / "lab.db", "t", arms, sigma=None, seed=1) as study:
        rng = np.random.default_rng(1)
        study.tell({p.pull_id: rng.standard_normal() for p in study.ask(40)})
        snapshot = study.snapshot()
        s = np.sqrt(snapshot.fit.residual_variance)
        expected = s / np.sqrt(snapshot.fit.statistics.count)
        np.testing.assert_allclose(standard_errors(snapshot), expected)


def test_why_this_winner_is_on_the_page_and_in_the_report(tmp_path):
    study, _ = ended(tmp_path / "lab.db", 0)
    snapshot = study.snapshot()
    found = standing(snapshot, status_of(snapshot))
    assert found.certain
    assert found.front is not None
    out = next(row for row in found.rows if row.state == "out")
    study.close()
    with person(tmp_path / "lab.db") as somebody:
        for path in ("/studies/1", "/studies/1/report.html"):
            text = text_of(somebody.get(path))
            assert "Why this winner" in text
            assert f"{found.front.name} minus each other candidate" in text
            ends = f"{number(out.low, 3)} to {number(out.high, 3)}"
            assert f"{number(out.behind, 3)} {ends} after batch {out.batch}" in text
            assert f"mostly by {out.rival}" in text
            assert f"rules number {snapshot.problem.rules.number}" in text
            assert "Not checked" in text


def test_an_axis_has_zero_on_it():
    assert span([2.0, 3.0, None]) == (0.0, 3.0)
    assert span([-1.0]) == (-1.0, 0.0)
