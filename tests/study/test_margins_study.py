"""Margins of studies: what is good enough now, what a margin would change, forks with a margin."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.errors import StudyError
from finalist.inference.intervals import start_of
from finalist.inference.leads import ahead_at_least, behind_at_most
from finalist.planning import Forecast
from finalist.planning.forecasts import _remedy
from finalist.study import Study, forecasts, good_enough
from finalist.study.forecasts import MarginForecast, below
from finalist.study.pulls import asked_anew
from tests.study.lab import Lab, finish
from tests.study.test_models_study import history_of, measure

ARMS = fl.Arms.unstructured(["plain", "honey", "nut"])
#: The first two are nearly tied.
LAB = Lab(ARMS, np.array([2.0, 1.95, 0.0]), 1.0, 2)
SURE = "by 95 % intervals that hold for all candidates together and at all times"


@pytest.fixture
def where(tmp_path):
    return tmp_path / "lab.db"


def cakes(where, name="cakes", **words):
    return Study.create(where, name, ARMS, **({"sigma": 1.0, "seed": 3} | words))


def tell(study, batches, size=30, lab=LAB):
    for _ in range(batches):
        study.tell(lab.rewards(study.ask(size)))
    return study


# ---- forks with a margin -------------------------------------------------------------------


def test_a_fork_has_a_margin_fresh_evidence_and_all_results_as_history(where):
    old = cakes(where, delta=0.1, objective="min", unit="kg", metadata={"who": "me"})
    old.import_history([("plain", 1.0), ("nut", 2.0)])
    told = measure(old, times=2)
    new = old.fork("enough", epsilon=0.5)
    same = ("strategy", "noise", "delta", "objective", "unit", "metadata", "cost", "budget")
    assert all(new.settings[word] == old.settings[word] for word in same)
    assert (old.settings["epsilon"], new.settings["epsilon"]) == (0.0, 0.5)
    assert new.settings["seed"] != old.settings["seed"]
    assert new.arms == old.arms
    assert history_of(new) == sorted([("plain", 1.0), ("nut", 2.0), *told])
    status = Study.open(where, "enough").status(forecast=False)
    assert (status.pulls, status.verdict, status.epsilon) == (0, "continue", 0.5)
    said = status.assumptions[-1]
    assert said.startswith("this study has a margin of 0.5 and fresh evidence")
    assert said.endswith("0.1 + 0.1 = 0.2 in all")
    assert finish(new, LAB) > 0
    assert "within 0.5 of the best" in new.status().sentence


def test_forks_add_up_over_margins_models_and_batches(where):
    arms = fl.Arms([[1.0], [2.0], [4.0], [5.0]]).with_intercept()
    old = Study.create(where, "old", arms, sigma=1.0)
    measure(old)
    enough = old.fork("enough", epsilon=0.5)
    measure(enough)
    both = enough.fork("both", model="bending", epsilon=0.25)
    said = both.status(forecast=False).assumptions[-1]
    assert "this study has the model bending and a margin of 0.25 and fresh evidence" in said
    assert "0.1 + 0.05 = 0.15 in all" in said
    assert both.arms.recipe.name == "bending"
    again = enough.fork("again", 1)
    assert "fork of enough from before batch 1" in again.status(forecast=False).assumptions[-1]
    none = again.fork("none", epsilon=0)
    said = none.status(forecast=False).assumptions[-1]
    assert "this study has no margin and fresh evidence" in said
    assert "0.15 + 0.05 = 0.2 in all" in said  # old, enough and again
    assert none.settings["epsilon"] == 0.0


def test_what_a_fork_cannot_have_is_refused_and_leaves_nothing(where):
    old = tell(cakes(where), 1)
    for words, what in (
        ({"epsilon": -1.0}, "cannot go on with epsilon=-1.0: epsilon is -1"),
        ({"epsilon": math.nan}, "epsilon is nan"),
        ({"epsilon": "much"}, "epsilon is 'much'"),
        ({"epsilon": 0.0}, "has the margin 0 already"),
        ({"epsilon": 0.5, "until": 1}, "both are given"),
        ({}, "neither is given"),
    ):
        with pytest.raises(StudyError, match=what):
            old.fork("new", **words)
    several = tell(cakes(where, "several", top=2), 1)
    with pytest.raises(StudyError, match="the 2 best; a margin has a proof for one best only"):
        several.fork("new", epsilon=0.5)
    zone = cakes(where, "zone", strategy="kn", epsilon=0.5)
    with pytest.raises(StudyError, match=r"has the margin 0\.5 already"):
        zone.fork("new", epsilon=0.5)
    assert fl.studies(where) == ["cakes", "several", "zone"]


def test_what_a_fork_asks_anew():
    assert asked_anew(None, None) == ""
    assert asked_anew("bending", 0.0) == "the model bending and no margin"


# ---- what is good enough now ---------------------------------------------------------------


def words_of(study):
    state = study._log.now()
    fit = state.pooled.estimate()
    bets = study_bets(state)
    words = {"sign": 1, "sigma": state.problem.scale, "start": start_of(state.problem)}
    return fit, words | {"bets": bets}


def study_bets(state):
    from finalist.study.estimates import _bets

    return _bets(state)


def test_an_undecided_study_says_how_close_to_the_best_its_leader_is(where):
    study = tell(cakes(where, delta=0.1), 6)
    status = study.status(forecast=False)
    assert status.verdict == "continue"
    fit, words = words_of(study)
    front = ARMS.names.index(status.leader)
    assert status.within == behind_at_most(fit, front, **words, confidence=0.9)
    assert status.good_enough == (
        f"Known now: {status.leader} is within {good_enough.at_most(status.within)} of the best; "
        "this is wrong with probability at most 0.1, whenever you look. It comes from intervals, "
        "whose risk comes on top of that of the tests. If a difference of that size does not "
        "matter to you, stop and take it."
    )
    assert status.good_enough in str(status)
    assert (status.epsilon, status.within_reach) == (0.0, None)
    stopped = study.stop("season")
    assert stopped.within == status.within
    assert stopped.good_enough is not None
    assert "stop and take it" not in stopped.good_enough


def test_early_bounds_that_say_nothing_are_not_said(where):
    study = cakes(where)
    assert study.status(forecast=False).within is None
    tell(study, 1, size=6)
    status = study.status(forecast=False)
    assert status.within is not None
    assert status.within > 2.5
    assert status.good_enough is None


def test_an_unknown_sigma_is_said(where):
    status = tell(cakes(where, sigma=None), 8).status(forecast=False)
    assert "by a 95 % interval that takes sigma from the results" in status.good_enough
    assert "whenever" not in status.good_enough


@pytest.mark.parametrize(
    "words",
    [{"top": 2}, {"strategy": fl.LazyTS(threshold="heuristic")}, {"strategy": "gse", "budget": 99}],
)
def test_where_nothing_is_promised_nothing_is_said(where, words):
    status = tell(cakes(where, **words), 1).status(forecast=False)
    assert (status.within, status.within_reach, status.good_enough) == (None, None, None)


def test_arms_that_change_end_the_bounds(where):
    study = tell(cakes(where), 3)
    while study._log.now().run.until_end:
        tell(study, 1, size=1)
    study.withdraw("nut")
    tell(study, 1)
    assert study.status(forecast=False).within is None


def test_a_winner_within_a_margin_names_what_else_is_within_reach(where):
    lab = Lab(fl.Arms.unstructured(4), np.array([2.0, 1.9, 0.0, -4.0]), 1.0, 4)
    study = Study.create(where, "four", fl.Arms.unstructured(4), sigma=1.0, epsilon=0.5, seed=5)
    finish(study, lab, size=40)
    status = study.status()
    names = study.arms.names
    assert status.sentence.startswith(f"{status.winner} is within 0.5 of the best")
    assert status.within_reach is not None
    assert status.good_enough is not None
    fit, words = words_of(study)
    front = names.index(str(status.winner))
    least = ahead_at_least(fit, front, **words, confidence=0.95)
    others = [i for i in range(4) if i != front]
    assert set(status.within_reach) == {names[i] for i in others if not least[i] > 0.5}
    estimates = {arm.name: arm.estimate or 0.0 for arm in status.arms}
    order = [estimates[name] for name in status.within_reach]
    assert order == sorted(order, reverse=True)
    assert "x4" not in status.within_reach
    found = status.good_enough
    assert found.startswith(f"Perhaps good enough too: {status.within_reach[0]} (about")
    assert "not shown to be more than 0.5 worse. The other" in found
    assert found.endswith(f", {SURE}.")
    assert (status.within, status.margins, status.saving) == (None, (), None)
    assert json.loads(json.dumps(status.to_dict()))["within_reach"] == list(status.within_reach)


def test_everything_and_nothing_within_reach(where):
    lab = Lab(ARMS, np.array([9.0, 0.0, 0.0]), 1.0, 1)
    clear = cakes(where, "clear", epsilon=1.0)
    finish(clear, lab, size=60)
    status = clear.status()
    assert status.within_reach == ()
    assert status.good_enough == f"All others are shown to be more than 1 worse, {SURE}."
    tied = cakes(where, "tied", epsilon=3.0)
    finish(tied, Lab(ARMS, np.zeros(3), 1.0, 1))
    status = tied.status()
    assert len(status.within_reach) == 2
    assert status.good_enough.startswith("Perhaps good enough too: ")
    assert "intervals" not in status.good_enough


# ---- what a margin would change ------------------------------------------------------------


def test_margins_are_simulated_for_who_looks_at_them(where, monkeypatch):
    calls, simulate = [], vars(forecasts)["forecast"]

    def counted(run, problem, fit, done, **words):
        calls.append((done, problem.epsilon))
        return simulate(run, problem, fit, done, **words)

    monkeypatch.setattr(forecasts, "forecast", counted)
    found = tell(cakes(where), 3).status()
    assert found.forecast is not None
    assert calls == [(90, 0.0)]
    assert found.margins
    assert calls[1:] == [(0, one.epsilon) for one in found.margins]


def test_a_study_with_a_long_way_to_go_says_what_a_margin_would_change(where):
    study = tell(cakes(where), 8)
    status = study.status()
    assert status.forecast is not None
    assert status.forecast.median > status.pulls
    assert [one.epsilon for one in status.margins] == list(below(status.within, 2))
    first = status.margins[0]
    assert first.median is not None
    assert first.median <= 0.5 * status.forecast.median
    assert status.saving.startswith(f"With a margin of {first.epsilon:g} a new study would need ")
    assert "more here. This is a forecast" in status.saving
    assert status.saving in str(status)
    assert json.loads(json.dumps(status.to_dict()))["margins"][0] == vars(first)
    assert study.status(forecast=False).margins == ()


def test_a_study_that_ended_undecided_says_it_too(where):
    study = tell(cakes(where, budget=240), 8)
    status = study.status()
    assert status.verdict == "undecided"
    assert status.forecast is None
    assert study.snapshot().can_compare
    assert status.margins
    assert status.saving is not None
    assert "more here" not in status.saving
    assert all(one.cap <= 240 for one in status.margins)


def test_where_the_study_is_more_than_half_way_margins_are_not_simulated(where, monkeypatch):
    study = tell(cakes(where), 4)
    snapshot = study.snapshot()
    assert snapshot.standing is not None
    near = replace(snapshot, standing=replace(snapshot.standing, within=0.5))
    done = snapshot.told
    assert forecasts.compare(near, 1, done, Forecast(np.full(3, float(done)), 10_000)) == ()
    caps = []

    def simulated(_, __, epsilon, cap):
        caps.append(cap)
        return MarginForecast(epsilon, 1.0, 1.0, 1.0, cap)

    monkeypatch.setattr(forecasts, "_simulated", simulated)
    long = Forecast(np.full(3, 10.0 * done), 10_000)
    assert [one.epsilon for one in forecasts.compare(near, 1, done, long)] == [0.2, 0.1]
    endless = Forecast(np.full(3, math.inf), 10_000)
    nowhere = replace(snapshot, standing=None)
    forecasts.compare(nowhere, 1, done, endless)
    forecasts.compare(nowhere, 1, done, None)
    assert caps[::2] == [5 * done, 5000, max(5 * done, 5 * 20 * 3)]


@pytest.mark.parametrize("words", [{"epsilon": 0.5}, {"top": 2}, {"strategy": "uniform"}])
def test_a_study_that_cannot_have_another_margin_is_not_compared(where, words):
    study = tell(cakes(where, **words), 1)
    assert not study.snapshot().can_compare
    assert study.status().margins == ()


def test_margins_with_an_unknown_sigma_and_shifted_batches(where):
    words: Any
    for name, words in (("one", {"sigma": None}), ("two", {"batch_intercept": True})):
        study = tell(cakes(where, name, **words), 6)
        assert study.snapshot().can_compare
        for one in study.status().margins:
            assert one.median is None or one.median <= one.cap


def test_margins_are_numbers_that_people_name():
    assert below(1.0, 3) == (0.5, 0.2, 0.1)
    assert below(0.21, 2) == (0.2, 0.1)
    assert below(37.0, 2) == (20.0, 10.0)
    assert below(0.0, 2) == below(math.inf, 2) == below(math.nan, 2) == ()


def test_bounds_are_rounded_up():
    for value in np.random.default_rng(0).lognormal(0.0, 5.0, 200):
        shown = float(good_enough.at_most(value))
        assert value * (1.0 - 1e-8) <= shown <= value * 1.11


def test_only_margins_that_save_are_named():
    some = (MarginForecast(0.5, 10.0, 5.0, 20.0, 50), MarginForecast(0.2, None, None, None, 50))
    assert good_enough.saving(some[1:], None) is None
    assert good_enough.saving((), None) is None
    words = good_enough.saving(some, Forecast(np.full(3, math.inf), 100))
    assert words is not None
    assert words.startswith(
        "With a margin of 0.5 a new study would need about 10 measurements, instead of more than "
        "100 more here. "
    )


def test_reach_ends_where_an_arm_is_shown_to_be_behind_by_more_than_the_margin(where, monkeypatch):
    study = tell(cakes(where, epsilon=0.5), 1, size=12)

    def ahead(fit, arm, **_):
        least = np.array([0.2, 0.2, 0.2])
        least[arm], least[(arm + 1) % 3] = math.nan, 0.6
        return least

    monkeypatch.setattr("finalist.study.estimates.ahead_at_least", ahead)
    status = study.status(forecast=False)
    front = ARMS.names.index(status.leader or "")
    assert status.within_reach == (ARMS.names[(front + 2) % 3],)
    assert status.good_enough is None or "reach" not in status.good_enough  # it goes on
    stopped = study.stop("season")
    assert f"The other candidate is, {SURE}" in (stopped.good_enough or "")


def test_the_arm_that_may_be_good_enough_is_named_by_all_results_so_far(where):
    cakes_of_five = fl.Arms.unstructured(["plain", "honey", "nut", "lemon", "plum"])
    lab = Lab(cakes_of_five, np.array([7.0, 6.95, 6.0, 5.5, 5.0]), 1.0, 2)
    study = Study.create(where, "at work", cakes_of_five, sigma=1.0, epsilon=0.5, seed=3)
    tell(study, 3, size=12, lab=lab)
    run: Any = study._log.now().run
    claims, past = run._claims, run._past
    claimant = cakes_of_five.names[claims._claimant(claims._needed_by_each(past))]
    sentence = study.status(forecast=False).sentence
    assert sentence.startswith(f"{claimant} may be within 0.5 of the best after 36 measurements; ")


# ---- ties ----------------------------------------------------------------------------------

#: Two that nobody can tell apart.
TIED = Lab(ARMS, np.array([2.0, 2.0, 0.0]), 1.0, 4)
HELPS = "a margin (a difference that does not matter to you), or a budget"
ENDS = "A margin (a difference that does not matter to you) or a budget would end this soon"


@pytest.mark.usefixtures("few_draws")
def test_a_tie_is_told_with_what_helps_instead_of_a_number(where):
    tied = tell(cakes(where), 6, lab=TIED).status()
    assert tied.sentence.endswith(f"They may be nearly tied. {ENDS}.")
    assert tied.forecast is not None
    words = tied.forecast.words()
    assert words.startswith("The candidates in front are nearly tied: ")
    assert f"What helps is {HELPS}, after which" in words
    assert tied.to_dict()["forecast"]["remedy"] == words


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("words", [{"epsilon": 1.0}, {"budget": 900}, {"top": 2}], ids=str)
def test_where_there_is_an_end_nobody_is_told_of_ties(where, words):
    found = tell(cakes(where, **words), 6, lab=TIED).status()
    assert "nearly tied" not in found.sentence
    assert found.forecast is None or found.forecast.remedy is None


def test_a_tie_is_not_told_early_or_of_candidates_that_are_apart(where):
    assert "nearly tied" not in tell(cakes(where), 1, lab=TIED).status(forecast=False).sentence
    apart = Lab(ARMS, np.array([2.0, 1.4, 0.0]), 1.0, 2)
    found = tell(cakes(where, "apart"), 3, lab=apart).status(forecast=False)
    assert found.verdict == "continue"
    assert "nearly tied" not in found.sentence


def test_what_helps_where_no_end_is_in_sight():
    noise = fl.Gaussian(1.0)
    problem = fl.Problem(ARMS, noise=noise)
    rows = (
        (problem, "helps is a margin (a"),
        (fl.Problem(ARMS, noise=noise, goal=fl.EpsilonBest(0.1)), "helps is a wider margin (a"),
        (fl.Problem(ARMS, noise=noise, goal=fl.TopM(2)), "helps is a budget, after"),
    )
    for asked, words in rows:
        said = _remedy(asked, math.inf, 5000, 100, 100)
        assert said is not None
        assert words in said
        assert "about 50 times" in said
    assert _remedy(problem, 1000.0, 5000, 100, 100) is None  # ten times is worth waiting for
    assert _remedy(problem, math.inf, 500, 100, 100) is None  # cut early: nothing is known
    planned = fl.Problem(ARMS, noise=noise, budget=900)
    assert _remedy(planned, math.inf, 5000, 100, 100) is None
