"""Results: figures, frames, merging, and the exact bounds of an error probability."""

import dataclasses
import io
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import finalist as fl
from finalist.errors import SimulationError
from finalist.simulation import exact_interval, exact_lower_bound, exact_upper_bound
from tests.fakes import Rounds

ARMS = fl.Arms.unstructured(["007", "NA", "=1+1", "None"])
THETA = [0.2, 0.1, 0.0, 0.1]
FIELDS = [field.name for field in dataclasses.fields(fl.Simulation)]


def fields_of(result: fl.Simulation) -> dict[str, Any]:
    return {word: getattr(result, word) for word in FIELDS}


def made(samples, winner, correct, requested=None) -> fl.Simulation:
    n = len(samples)
    return fl.Simulation(
        arms=("a", "b"),
        name="some",
        strategy="Some()",
        delta=0.05,
        seed=0,
        requested=n if requested is None else requested,
        run=np.arange(n),
        winner=np.array(winner),
        correct=np.array(correct),
        pulls_per_arm=np.column_stack([samples, np.zeros(n, dtype=int)]),
        batches=np.ones(n, dtype=int),
        seconds=np.full(n, 0.5),
    )


def test_summary_by_hand():
    result = made([1, 2, 3, 4, 10], [0, 0, 1, -1, 0], [True, True, False, False, True])
    s = result.summary()
    assert (s.runs, s.undecided, s.errors, s.error_rate) == (5, 1, 1, 0.2)
    assert (s.mean, s.median, s.min, s.max) == (4.0, 3.0, 1, 10)
    assert s.standard_error == pytest.approx(np.sqrt(50 / 4 / 5))
    reference = stats.t.interval(0.95, 4, loc=4.0, scale=s.standard_error)
    assert s.interval == pytest.approx(reference)
    assert s.quantiles == pytest.approx((1.4, 7.6))
    assert s.mean_pulls_per_arm == (4.0, 0.0)
    assert (s.mean_batches, s.mean_seconds) == (1.0, 0.5)
    assert s.error_interval == result.error_bounds(0.95) == exact_interval(1, 5)
    assert result.error_bounds(0.5) != result.error_bounds(0.95)


def test_the_text_says_what_came_out():
    text = str(made([100, 300], [0, 1], [True, False], requested=5).summary())
    for part in ("2 of 5 (interrupted)", "200", "1 of 2", "1.26% to 98.74%", "allowed 5.00%"):
        assert part in text
    assert "every run ended with a winner" in text
    capped = str(made([100, 300], [0, -1], [True, False]).summary())
    assert "the mean is too low" in capped
    assert "interrupted" not in capped


def test_the_simple_regret_is_the_gap_of_the_winner():
    gaps = np.array([0.0, 0.3])
    result = dataclasses.replace(
        made([4, 4, 4, 4, 4], [0, 1, 1, -1, 0], [True, False, False, False, True]), gaps=gaps
    )
    np.testing.assert_array_equal(result.regret, [0.0, 0.3, 0.3, np.nan, 0.0])
    s = result.summary()
    assert s.mean_regret == pytest.approx(0.15)
    assert s.regret_error == pytest.approx(np.std([0.0, 0.3, 0.3, 0.0], ddof=1) / 2)
    assert s.max_regret == 0.3
    assert "regret, mean   0.15" in str(s)
    unknown = made([4, 4], [0, 1], [True, False])
    assert unknown.regret is None
    assert unknown.summary().mean_regret is None
    assert "regret" not in str(unknown.summary())
    none = dataclasses.replace(made([4], [-1], [False]), gaps=gaps)
    assert none.summary().mean_regret is None


@pytest.mark.parametrize("objective", ["max", "min"])
def test_gaps_are_those_to_the_best_candidate(objective):
    sign = 1.0 if objective == "max" else -1.0
    arms = fl.Arms(np.eye(4))
    words = {"candidates": fl.Arms(np.eye(4)[:3]), "objective": objective}
    means = sign * np.array([0.5, 0.2, 0.1, 1.5])  # the last one cannot win
    found = fl.simulate(
        arms, means, budget=40, runs=20, sigma=1.0, deviations=[0, sign, 0, 0], **words
    )
    assert found.gaps == pytest.approx([0.7, 0.0, 1.1, -0.3])
    np.testing.assert_array_equal(found.regret == 0.0, found.correct)
    assert fl.simulate(ARMS, THETA, runs=2, sigma=1.0, top=2).regret is None


def test_one_run_has_no_interval():
    s = made([5], [0], [True]).summary()
    assert np.isnan(s.standard_error)
    assert np.isnan(s.interval).all()
    assert "from one run" in str(s)


def test_no_runs_are_refused():
    with pytest.raises(SimulationError, match="no runs"):
        made(np.zeros(0, dtype=int), np.zeros(0, dtype=int), np.zeros(0, dtype=bool))


def check_same(one: fl.Simulation, other: fl.Simulation) -> None:
    for word in FIELDS:
        np.testing.assert_array_equal(getattr(one, word), getattr(other, word), strict=True)


def read(frame: pd.DataFrame, result: fl.Simulation) -> fl.Simulation:
    words = {word: getattr(result, word) for word in ("name", "strategy", "delta", "seed")}
    return fl.Simulation.from_frame(frame, requested=result.requested, gaps=result.gaps, **words)


@pytest.fixture
def result() -> fl.Simulation:
    decided = fl.simulate(ARMS, THETA, Rounds(), runs=20, sigma=1.0)
    capped = decided.winner.copy()
    capped[[3, 7]] = -1
    correct = decided.correct & (capped >= 0)
    words = {"winner": capped, "correct": correct, "certain": capped >= 0}
    return fl.Simulation(**{**fields_of(decided), **words})


def test_a_frame_has_a_row_per_run(result):
    frame = result.to_frame()
    columns = ["run", "winner", "decided", "correct", "pulls", "batches", "seconds", "regret"]
    assert list(frame.columns) == [*columns, *(f"pulls: {name}" for name in ARMS.names)]
    assert frame["winner"][3] is None
    assert set(frame["winner"].drop([3, 7])) == set(ARMS.names)
    assert frame["pulls"].tolist() == result.samples.tolist()


def test_frames_come_back_the_same(result):
    check_same(result, read(result.to_frame(), result))


def test_frames_come_back_the_same_through_csv(result):
    text = result.to_frame().to_csv(index=False)
    frame = pd.read_csv(io.StringIO(text), dtype={"winner": str}, keep_default_na=False)
    check_same(result, read(frame, result))


def test_frames_that_are_none_of_ours_are_refused(result):
    with pytest.raises(SimulationError, match="no column 'batches'"):
        read(result.to_frame().drop(columns="batches"), result)
    with pytest.raises(SimulationError, match="winner 'x' is not an arm"):
        read(result.to_frame().assign(winner="x"), result)


def test_a_winner_without_a_guarantee_has_none_in_a_frame():
    hasty = fl.simulate(ARMS, THETA, fl.TrackAndStop(threshold="heuristic"), runs=3, sigma=1.0)
    assert not hasty.certain.any()
    again = read(hasty.to_frame(), hasty)
    check_same(hasty, again)
    assert "without a proof" in str(again.summary())


def test_costs_come_back_where_they_are_told():
    dear = fl.simulate(ARMS, THETA, cost=[1.0, 2.0, 3.0, 4.0], runs=3, sigma=1.0)
    words = {word: getattr(dear, word) for word in ("name", "strategy", "delta", "seed")}
    words["gaps"] = dear.gaps
    check_same(dear, fl.Simulation.from_frame(dear.to_frame(), costs=dear.costs, **words))
    for costs, shown in ((None, "costs is None"), ([1.0, 2.0], r"costs is \[1.0, 2.0\]")):
        with pytest.raises(SimulationError, match=rf"{shown}; give the cost .* 4 arms"):
            fl.Simulation.from_frame(dear.to_frame(), costs=costs, **words)


def part(result: fl.Simulation, chosen: np.ndarray) -> fl.Simulation:
    words = fields_of(result)
    for word in ("run", "winner", "correct", "pulls_per_arm", "batches", "seconds", "certain"):
        words[word] = words[word][chosen]
    return fl.Simulation(**{**words, "requested": len(chosen)})


def test_parts_merge_into_the_whole(result):
    order = np.random.default_rng(0).permutation(20)
    merged = part(result, order[:7]).merge(part(result, order[7:9]), part(result, order[9:]))
    check_same(result, merged)


def test_what_does_not_belong_together_is_not_merged(result):
    with pytest.raises(SimulationError, match="run 0 is in two"):
        result.merge(result)
    other = fl.Simulation(**{**fields_of(result), "delta": 0.01})
    with pytest.raises(SimulationError, match="different delta"):
        result.merge(other)
    first, rest = part(result, np.arange(10)), fields_of(part(result, np.arange(10, 20)))
    dear = fl.Simulation(**{**rest, "costs": np.array([1.0, 2.0, 3.0, 4.0])})
    for one, two in ((first, dear), (dear, first)):
        with pytest.raises(SimulationError, match="different costs"):
            one.merge(two)
    plain = fl.Simulation(**{**rest, "costs": np.ones(4)})
    assert first.merge(plain).cost.tolist() == result.samples.tolist()


@pytest.mark.parametrize("runs", [1, 7, 400])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_exact_intervals_are_those_of_scipy(runs, confidence):
    for errors in {0, 1, runs // 3, runs - 1, runs}:
        reference = stats.binomtest(errors, runs).proportion_ci(confidence, "exact")
        found = exact_interval(errors, runs, confidence)
        assert found == pytest.approx((reference.low, reference.high), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(("errors", "runs"), [(1, 5), (3, 100), (99, 100)])
def test_bounds_are_where_the_tails_reach_the_level(errors, runs):
    low, high = exact_lower_bound(errors, runs, 0.99), exact_upper_bound(errors, runs, 0.99)
    k = np.arange(runs + 1)
    at_low, at_high = stats.binom.pmf(k, runs, low), stats.binom.pmf(k, runs, high)
    assert at_low[errors:].sum() == pytest.approx(0.01, rel=1e-9)
    assert at_high[: errors + 1].sum() == pytest.approx(0.01, rel=1e-9)


def test_bounds_at_the_ends():
    assert exact_lower_bound(0, 10, 0.9) == 0.0
    assert exact_upper_bound(10, 10, 0.9) == 1.0


@pytest.mark.parametrize(
    ("errors", "runs", "confidence"), [(3, 2, 0.9), (-1, 2, 0.9), (0, 0, 0.9), (1, 2, 1.0)]
)
def test_impossible_counts_are_refused(errors, runs, confidence):
    with pytest.raises(SimulationError):
        exact_lower_bound(errors, runs, confidence)


def test_gaps_are_checked_and_must_agree(result):
    words = {word: getattr(result, word) for word in ("name", "strategy", "delta", "seed")}
    frame = result.to_frame()
    assert fl.Simulation.from_frame(frame, **words).regret is None
    with pytest.raises(SimulationError, match=r"gaps has shape \(2,\); give 4"):
        fl.Simulation.from_frame(frame, gaps=[0.0, 1.0], **words)
    others = [np.arange(4) / 7.0, None]
    for gaps in others:
        other = dataclasses.replace(result, run=result.run + 100, gaps=gaps)
        with pytest.raises(SimulationError, match="different gaps"):
            result.merge(other)
    other = dataclasses.replace(result, run=result.run + 100)
    np.testing.assert_array_equal(result.merge(other).gaps, result.gaps)
