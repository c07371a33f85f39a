"""What columns do, what the model leaves over, and what bends: as numbers, in every place."""

import itertools
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import finalist as fl
from finalist.cli.app import app
from finalist.inference.intervals import mixture, start_of
from finalist.inference.mixtures import Batches
from finalist.inference.pooling import BatchSums, Pooled
from finalist.inference.statistics import BatchResults
from finalist.simulation.binomial import exact_lower_bound
from finalist.study import Study
from finalist.study.effects import _directions

TABLE = pd.DataFrame(
    {
        "name": [f"{a}/{b}/{c}" for a, b, c in itertools.product((0, 5, 10), (1, 2), "xyz")],
        "heat": np.repeat([0.0, 5.0, 10.0], 6),
        "flow": np.tile(np.repeat([1.0, 2.0], 3), 3),
        "salt": list("xyz") * 6,
    }
)
#: Of a unit of heat, of a unit of flow, of salt y and z instead of x.
TRUE = {"heat": 0.5, "flow": -2.0, "salt: y": 1.0, "salt: z": -1.5}


def means_of(table):
    salt = np.select([table.salt == "y", table.salt == "z"], [1.0, -1.5])
    return 7.0 + 0.5 * table.heat + -2.0 * table.flow + salt


def measure(study, means, *, sigma=0.0, times=2, size=12, shift=0.0):
    rng = np.random.default_rng(1)
    for batch in range(times):
        if not (pulls := study.ask(size=size)):
            break
        study.tell({p.pull_id: means[p.arm] + shift * batch + sigma * rng.normal() for p in pulls})


@pytest.fixture
def linear(tmp_path):
    arms = fl.Arms.from_table(TABLE)
    with Study.create(tmp_path / "lab.db", "s", arms, sigma=0.5, seed=1, unit="g") as study:
        yield study


def truth(table=TABLE):
    return dict(zip(table.name, means_of(table), strict=True))


def test_effects_are_those_of_the_columns(linear):
    assert [one.slope for one in linear.status().effects] == [None] * 4  # nothing is measured
    measure(linear, truth())
    found = {one.name: one for one in linear.status(forecast=False).effects}
    assert {name: one.slope for name, one in found.items()} == pytest.approx(TRUE)
    assert found["heat"].change == pytest.approx(5.0)  # from 0 to 10
    assert [found[name].step for name in TRUE] == [
        "from 0 to 10",
        "from 1 to 2",
        "instead of x",
        "instead of x",
    ]
    for one in found.values():
        assert one.slope_low < one.slope < one.slope_high
        assert one.change_high - one.change_low == pytest.approx(
            (one.slope_high - one.slope_low) * (10.0 if one.name == "heat" else 1.0)
        )


def test_effects_are_in_frames_json_and_the_status_of_the_command_line(linear, tmp_path):
    measure(linear, truth())
    found = linear.status(forecast=False)
    frame = found.effects_frame()
    assert frame.name.tolist() == list(TRUE)
    assert frame.slope.tolist() == [one.slope for one in found.effects]
    assert json.loads(json.dumps(found.to_dict()))["effects"][0]["name"] == "heat"
    words = ["status", "s", "--db", str(tmp_path / "lab.db"), "--no-forecast"]
    said = CliRunner().invoke(app, words).output
    assert "Change (g)" in said
    assert "instead of x" in said
    kept = json.loads(CliRunner().invoke(app, [*words, "--format", "json"]).output)
    assert [one["slope"] for one in kept["effects"]] == frame.slope.tolist()


def test_a_column_that_others_add_up_to_has_no_effect_of_its_own(tmp_path):
    columns = np.array(list(itertools.product((0.0, 1.0, 2.0), repeat=2)))
    both = columns.sum(axis=1)
    other = np.array([3.0, 1, 4, 1, 5, 9, 2, 6, 5])
    arms = fl.Arms(np.column_stack([columns, both, other])).with_intercept()
    with Study.create(tmp_path / "lab.db", "s", arms, sigma=1.0, seed=1) as study:
        measure(study, dict(zip(arms.names, 2.0 * other, strict=True)))
        found = study.status(forecast=False).effects
    assert [one.name for one in found] == ["f4"]
    assert found[0].slope == pytest.approx(2.0)


def test_candidates_on_their_own_have_no_effects(tmp_path):
    with Study.create(tmp_path / "lab.db", "s", fl.Arms.unstructured(4), sigma=1.0) as study:
        assert study.status().effects == ()
        assert study.status().effects_frame().empty


@pytest.mark.parametrize("intercept", [True, False])
def test_shifts_of_batches_leave_effects_as_they_are(tmp_path, intercept):
    arms = fl.Arms.from_table(TABLE) if intercept else fl.Arms(TABLE[["heat", "flow"]].to_numpy())
    means = np.asarray(means_of(TABLE)) if intercept else arms.features @ [0.5, -2.0]
    words: dict[str, Any] = {"sigma": 0.5, "seed": 1, "batch_intercept": True}
    with Study.create(tmp_path / "lab.db", "s", arms, **words) as study:
        measure(study, dict(zip(arms.names, means, strict=True)), times=3, shift=100.0)
        found = study.status(forecast=False).effects
        residual = study.to_frame().residual
    assert [one.slope for one in found] == pytest.approx([*TRUE.values()][: len(found)])
    assert len(found) == (4 if intercept else 2)
    assert np.abs(residual).max() < 1e-9


def test_residuals_are_results_less_estimates(linear):
    measure(linear, truth(), sigma=0.5)
    linear.ask(size=3)
    frame, snapshot = linear.to_frame(), linear.snapshot()
    told = frame[frame.state == "told"]
    fitted = dict(zip(snapshot.arms.names, snapshot.means, strict=True))
    assert told.fitted.tolist() == pytest.approx([fitted[arm] for arm in told.arm])
    assert told.residual.tolist() == pytest.approx((told.reward - told.fitted).tolist())
    assert frame[frame.state == "open"].residual.isna().all()
    assert told.residual.abs().max() > 0.1


def test_while_an_assumption_fails_effects_have_no_intervals(tmp_path):
    arms = fl.Arms.from_table(TABLE)
    with Study.create(tmp_path / "lab.db", "s", arms, sigma=0.01, seed=1) as study:
        measure(study, truth(), sigma=3.0)
        found = study.status(forecast=False)
    assert found.doubts
    assert all(one.slope is not None and one.slope_low is None for one in found.effects)


# ---- the intervals -----------------------------------------------------------------------------


def ever_wrong(seed, known=True):
    """Run a gauntlet; tell whether an interval at any look misses, and one for a single look."""
    grid = np.array(list(itertools.product(np.linspace(-1.0, 1.0, 4), repeat=2)))
    arms = fl.Arms(grid).with_intercept()
    problem = fl.Problem(arms, noise=fl.Gaussian(1.0 if known else None), delta=1e-9)
    rng, run, theta = np.random.default_rng([5, seed]), fl.Gauntlet().start(problem, seed=seed), 0.4
    means = theta * grid[:, 0]
    pooled, batches, start = Pooled(problem), [], start_of(problem)
    moves, Y = _directions(arms, np.array([0, 1]))
    assert moves.tolist() == [0, 1]
    missed = naive = False
    for _ in range(12):
        batch = run.next(8)
        order = batch.order
        if order is None:
            order = rng.permutation(np.repeat(np.arange(len(means)), batch.counts))
        results = BatchResults.of(len(means), order, means[order] + rng.normal(size=len(order)))
        run.record(batch, results)
        pooled.add(results)
        batches.append(BatchSums.of(results))
        fit = pooled.estimate()
        sigma = 1.0 if known else None
        found = mixture(fit, Y, start, sigma, Batches(problem, batches), len(Y))
        off = np.abs(Y @ fit.phi - [theta, 0.0])
        if found is not None:
            missed |= bool((off > np.maximum(*found.reach(0.05))).any())
        if fit.information.rank == 3:
            naive |= bool((off > 1.96 * fit.widths(Y)).any())
    return missed, naive


def test_effects_are_where_their_intervals_say_at_all_times():
    runs = 150
    found = np.array([ever_wrong(seed) for seed in range(runs)])
    missed, naive = found.sum(axis=0).tolist()
    assert exact_lower_bound(missed, runs, 0.999) <= 0.05
    assert exact_lower_bound(naive, runs, 0.999) > 0.05  # a plain interval, looked at often


# ---- what bends ------------------------------------------------------------------------------


def dome(tmp_path, columns, means, **words):
    names = [", ".join(f"{c:g}" for c in row) for row in columns]
    table = pd.DataFrame(columns, columns=list("abcd")[: columns.shape[1]]).assign(name=names)
    arms = fl.Arms.from_table(table)
    study = Study.create(tmp_path / "lab.db", "dome", arms, **{"sigma": 0.5, "seed": 2} | words)
    measure(study, dict(zip(names, means, strict=True)), sigma=0.5, times=8, size=8)
    return study


def test_the_picture_of_one_column_has_the_measured_means(tmp_path):
    x = np.linspace(10.0, 30.0, 9)[:, None]
    with dome(tmp_path, x, -0.1 * (x[:, 0] - 22.0) ** 2) as study:
        found, frame = study.snapshot(), study.to_frame()
    (curve,) = found.bent.curves
    assert (curve.column, curve.other) == ("a", "")
    means = frame[frame.state == "told"].groupby(frame.arm.astype(float)).reward.mean()
    assert dict(zip(curve.at, curve.mean, strict=True)) == pytest.approx(means.to_dict())
    assert curve.pulls.sum() == found.told
    assert curve.x[[0, -1]].tolist() == [10.0, 30.0]
    top = curve.x[curve.bent.argmax()]
    assert 18.0 < top < 26.0  # in truth 22
    assert np.abs(np.diff(curve.straight, n=2)).max() < 1e-9
    line = np.interp(x[:, 0], curve.x, curve.straight)
    assert line == pytest.approx(found.means)


@pytest.mark.parametrize("top", [1, 2])
def test_after_a_budget_who_is_best_by_bends_is_recommended_where_the_model_fails(tmp_path, top):
    x = np.linspace(-1.0, 1.0, 9)
    means = -4.0 * x**2  # no straight line is ahead
    with dome(tmp_path, x[:, None], means, budget=64, top=top) as study:
        found, snapshot = study.status(), study.snapshot()
    assert any(check.kind == "bend" and check.fails for check in snapshot.checks)
    assert found.verdict == "undecided"
    best = np.argsort(-snapshot.bent.means)[:top]
    assert found.recommendation == snapshot.arms.names[best[0]]
    assert means[best].min() > -1.0  # straight lines named an end
    assert found.advice is not None
    assert "by a model that bends" in found.advice
    for name in np.array(snapshot.arms.names)[best]:
        assert name in found.advice


def test_columns_that_bend_together_are_drawn_at_both_ends(tmp_path):
    grid = np.array(list(itertools.product(np.linspace(0.0, 4.0, 5), [1.0, 3.0])))
    with dome(tmp_path, grid, 2.0 * (grid[:, 0] - 2.0) * (grid[:, 1] - 2.0)) as study:
        found = study.snapshot()
    low, high = found.bent.curves[:2]
    assert [one.other for one in (low, high)] == ["b = 1", "b = 3"]
    assert low.bent[0] > low.bent[-1]
    assert high.bent[0] < high.bent[-1]
    check = next(one for one in found.checks if one.kind == "bend")
    assert check.model == "surface"


def test_nothing_is_drawn_while_the_model_fits(linear):
    measure(linear, truth(), sigma=0.5)
    assert linear.snapshot().bent.curves == ()


@pytest.mark.parametrize(
    ("sigma", "what"), [(0.5, "Or sigma is larger than stated"), (None, "Noise that is larger")]
)
def test_a_warning_says_what_else_looks_like_a_bend(tmp_path, sigma, what):
    grid = np.array(list(itertools.product(np.linspace(-1.0, 1.0, 5), repeat=2)))
    with dome(tmp_path, grid, -3.0 * (grid**2).sum(axis=1) + grid[:, 0], sigma=sigma) as study:
        (words,) = [w for w in study.status(forecast=False).warnings if "bend, and" in w]
    assert what in words


def test_who_is_out_without_a_measurement_is_said(tmp_path):
    grid = np.array(list(itertools.product(np.linspace(0.0, 4.0, 5), repeat=2)))
    with dome(tmp_path, grid, grid @ [1.0, 2.0]) as study:
        found = study.status(forecast=False)
    never = [arm.name for arm in found.arms if not arm.survives and not arm.pulls]
    assert never
    assert f"{len(never)} candidates are ruled out b" in found.sentence


def test_means_that_may_be_off_the_model_are_no_alarm(tmp_path):
    grid = np.array(list(itertools.product(np.linspace(-1.0, 1.0, 5), repeat=2)))
    means = -3.0 * (grid**2).sum(axis=1) + grid[:, 0]
    with dome(tmp_path, grid, means, misspecification=3.0) as study:
        found, snapshot = study.status(forecast=False), study.snapshot()
    (words,) = [w for w in found.warnings if "seem to bend" in w]
    assert "allowed to be off it by 3" in words
    assert "model='bending'" in words
    assert not any("bend" in doubt for doubt in found.doubts)
    assert snapshot.bent.curves
