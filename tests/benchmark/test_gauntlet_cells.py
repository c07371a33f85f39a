"""What the gauntlet's benchmark measures: its instances, its errors, and what it keeps."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.gauntlet import cells, cpu, picture
from benchmarks.gauntlet.cells import Cell, CodeStore, geometric_mean, measure
from benchmarks.gauntlet.families import (
    ALONE,
    BOUNDS,
    DELTAS,
    FAMILIES,
    SEEDS,
    SETS,
    drawn,
    families,
    family,
    lower_bound,
    those_alone,
)
from benchmarks.gauntlet.report import Pair, _hold_to_first, report_families
from benchmarks.harness import Report

import finalist as fl
from finalist.charts.theme import to_svg
from finalist.inference.bounds import lower_bound_pulls
from finalist.problem.rules import NEWEST, rules_of

SMALL = family("unstructured, 6", "tuning", 5, 0.05, seeds=2)


@pytest.mark.parametrize("name", FAMILIES)
def test_instances_have_the_bound_they_are_named_by(name):
    for size in BOUNDS:
        for instance, _ in family(name, "held-out", size, DELTAS[1], seeds=3).numbered:
            assert lower_bound(instance, DELTAS[0]) == pytest.approx(size, rel=1e-9)


def test_no_instance_is_in_both_sets_and_no_two_share_their_noise():
    drawn_of = {w: [drawn(n, w, k) for n in FAMILIES for k in range(SEEDS)] for w in SETS}
    alone_of = {w: [s.numbered[0] for s in those_alone([w], DELTAS[:1])] for w in SETS}
    both = [n for w in SETS for n in (*drawn_of[w], *alone_of[w])]
    assert len(both) == 2 * SEEDS * len(FAMILIES) + sum(map(len, ALONE.values()))
    assert len({n.seed for n in both}) == len(both)
    contents = {(n.instance.features.tobytes(), n.instance.theta.tobytes()) for n in both}
    assert len(contents) == len(both)


def test_cells_are_chosen_by_set_bound_delta_and_name():
    found = list(families(["tuning"], [20], [0.05], "sphere"))
    assert [s.title for s in found] == ["tuning, sphere, 20 x 5, bound 20, delta 0.05"]
    assert len(list(families(SETS, BOUNDS, DELTAS))) == 2 * 2 * 5 * 5
    assert len(list(those_alone(SETS, DELTAS))) == 2 * (10 + 8)


def test_errors_are_those_of_the_runs():
    cell = measure(SMALL, runs=20)
    one, two = (result.samples / cell.bound for result in cell.results)
    assert cell.bound == pytest.approx(5.0)
    assert cell.mean == pytest.approx((one.mean() + two.mean()) / 2)
    expected = np.sqrt(one.var(ddof=1) / 20 + two.var(ddof=1) / 20) / 2
    assert cell.error == pytest.approx(expected)
    assert cell.pulls_over_rank == pytest.approx(cell.every("samples").mean() / 6)
    assert (cell.runs, cell.undecided) == (40, 0)


def test_a_run_is_stopped_at_the_cap_and_counted():
    cell = measure(SMALL, runs=3, cap=0.9)
    assert (cell.undecided, cell.outcome) == (6, "0 of 6, 6 undecided")
    assert cell.every("samples").max() < 5  # the pilot alone would be more
    assert cell.mean == 0.9


class Given(Cell):
    """A cell with a given mean and standard error."""

    def __init__(self, mean, error):
        sides = np.array([mean - error, mean + error])  # var(ddof=1) / 2 is error squared
        object.__setattr__(self, "ratios", (sides,))


def test_the_error_of_a_geometric_mean():
    mean, error = geometric_mean([Given(2.0, 0.1), Given(8.0, 0.3)])
    assert mean == pytest.approx(4.0)
    # log G = (log a + log b) / 2, so the error of G is G/2 sqrt((s/a)^2 + (t/b)^2).
    assert error == pytest.approx(2.0 * np.hypot(0.05, 0.3 / 8))


@pytest.mark.parametrize(
    ("newest", "first", "worse"),
    [
        (Given(2.3, 0.3), Given(1.3, 0.4), 2.0),
        (Given(1.3, 0.3), Given(2.3, 0.4), -2.0),
        (Given(2.0, 0.0), Given(1.0, 0.0), np.inf),
        (Given(1.0, 0.0), Given(1.0, 0.0), 0.0),
        (Given(1.0, 0.0), None, -np.inf),
    ],
)
def test_how_much_worse_an_instance_is(newest, first, worse):
    assert Pair(newest, first).worse == pytest.approx([worse])
    assert Pair(newest, first).worse_in_mean == pytest.approx(worse)


def test_new_code_computes_only_the_newest_rules_again(tmp_path, monkeypatch):
    rows = []
    with CodeStore(tmp_path / "cells.sqlite") as store:
        for code in ("one", "one", "two"):
            monkeypatch.setattr(cells, "code_digest", lambda code=code: code)
            for rules in (rules_of(1), NEWEST):
                kept = measure(SMALL, rules, runs=2, store=store)
                rows.append(len(store))
        plain = measure(SMALL, NEWEST, runs=2)
    assert rows == [2, 4, 4, 4, 4, 6]  # two instances each
    assert (kept.every("samples") == plain.every("samples")).all()


def test_rules_that_are_tried_are_not_stored(tmp_path):
    tried = replace(rules_of(1), number=NEWEST.number)
    assert measure(SMALL, tried, runs=2).runs == 4
    with CodeStore(tmp_path / "cells.sqlite") as store, pytest.raises(ValueError, match="no store"):
        measure(SMALL, tried, runs=2, store=store)


def test_the_digest_sees_code_and_not_what_is_said_about_it(tmp_path, monkeypatch):
    folder = tmp_path / "package"
    (folder / "part").mkdir(parents=True)
    monkeypatch.setattr(fl, "__file__", str(folder / "__init__.py"))
    monkeypatch.setattr(cells, "CODE", ("part",))
    digests = []
    for text in ("'''A.'''\nx = 1", "'''B.'''\nx = 1  # one", "x = 2", 'def f():\n    "C."'):
        (folder / "part" / "module.py").write_text(text)
        digests.append(cells.code_digest.__wrapped__())
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_lower_bounds_are_proportional_between_deltas():
    instance = SMALL.numbered[0].instance
    ratio = lower_bound(instance, 0.001) / lower_bound(instance, 0.05)
    assert ratio == pytest.approx(lower_bound_pulls(1.0, 0.001) / lower_bound_pulls(1.0, 0.05))


def test_cpu_is_measured_in_turns():
    seconds = cpu.of_runs([SMALL], turns=2)
    assert [len(part) for part in seconds] == [4, 4]
    assert min(*seconds.newest, *seconds.first) > 0.0
    for questions in (cpu.of_margins, cpu.of_budgets):
        assert [len(part) for part in questions(3, turns=1)] == [6, 6]
    assert len(cpu.of_unknown_sigma([SMALL], turns=1).newest) == len(SMALL.numbered)
    decisions = cpu.of_decisions(30, 3, seeds=2, batches=2)
    assert [len(part) for part in decisions] == [4, 4]
    assert min(*decisions.newest, *decisions.first) > 0.0
    assert [len(part) for part in cpu.of_large_runs(30, 3, seeds=1)] == [1, 1]


def test_the_report_holds_cells_to_what_is_promised():
    specs = list(families(["held-out"], [5], [0.05]))
    specs = [spec._replace(numbered=spec.numbered[:1]) for spec in specs]
    pairs = [Pair(*(measure(s, rules, runs=2) for rules in (NEWEST, rules_of(1)))) for s in specs]
    found = Report("test")
    report_families(found, "held-out", pairs)
    mean, error = geometric_mean([pair.newest for pair in pairs])
    first = found.targets[0]
    assert (first.promised, first.met) == ("at most 3.5", mean <= 3.5)
    assert first.measured == f"{mean:.3f} +- {error:.3f}"
    assert [len(table.rows) for table in found.tables] == [1, len(FAMILIES)]
    part = Report("a part has no geometric mean over all families")
    report_families(part, "held-out", pairs[:2])
    assert [target.name.split(": ")[1] for target in part.targets] == [
        "errors",
        "decided",
        "no cell worse than 0.1.0",
    ]


@pytest.mark.parametrize(("worse", "met"), [([0.9, -3.0], True), ([0.9, 1.1], False)])
def test_nothing_may_be_worse_by_more_than_its_error(worse, met):
    found = Report("test")
    _hold_to_first(found, "name", np.array(worse))
    assert [target.met for target in found.targets] == [met]


def test_the_field_is_told_what_helps_it():
    instance = family("sphere, 20 x 5", "tuning", 5, 0.05).numbered[0].instance
    means = instance.arms.means(instance.theta)
    assert picture.rage(instance).first_gap == pytest.approx((means.max() - means.min()) / 2)
    found = picture.lingape(instance)
    largest = (instance.arms.coordinates**2).sum(axis=1).max()
    assert np.sqrt(found.ridge * largest) * found.theta_norm == pytest.approx(1.0)


def test_the_picture_shows_every_strategy_and_the_floor(tmp_path, monkeypatch):
    monkeypatch.setattr(picture, "BOUNDS", (5, 20))
    monkeypatch.setattr(picture, "families", lambda *_: [SMALL])
    with CodeStore(tmp_path / "cells.sqlite") as store:
        found = picture.collected(store, runs=2, runs_field=2, jobs=1)
        rows = len(store)
        picture.collected(store, runs=2, runs_field=2, jobs=1)
        assert len(store) == rows  # read, not computed again
    svg = to_svg(picture.chart(found))
    for label in (*(entry.label for entry in picture.ENTRIES), "no rule needs fewer"):
        assert label in svg
    assert [row[0] for row in picture.table(found).rows] == [e.label for e in picture.ENTRIES]
