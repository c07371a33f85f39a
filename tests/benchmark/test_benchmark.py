"""The benchmark: what is measured, kept, refused and reported."""

import csv
import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from benchmarks.gauntlet import TUNED

import finalist as fl
from finalist import data
from finalist.errors import ProblemError
from finalist.inference.bounds import lower_bound_pulls
from finalist.lab import store
from finalist.lab.benchmark import SUITES, make_report, run, write
from finalist.lab.benchmark.engine import CellResult
from finalist.lab.benchmark.plan import MAX_ARMS, TUNED_ON, Cell, Plan, suite
from finalist.lab.benchmark.report import markdown
from finalist.lab.benchmark.specs import Spec, confident, marks, parse_spec, parse_specs
from finalist.lab.benchmark.tables import (
    cells_table,
    detail_table,
    halves,
    missing_table,
    overview,
    ratio_table,
    strategies,
)
from finalist.simulation import Simulation, instances
from finalist.simulation.binomial import exact_interval
from finalist.simulation.task import Task
from finalist.strategies import STRATEGIES, XYAdaptive
from tests.benchmark.common import blocks, check_same, small_plan, tiny
from tests.fakes import Rounds

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tiny_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUITES, "quick", tiny)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the number of every run that is simulated."""
    numbers: list[int] = []
    simulate = Task.run

    def noted(task: Task, index: int) -> Any:
        numbers.append(index)
        return simulate(task, index)

    monkeypatch.setattr(Task, "run", noted)
    return numbers


# --- instances --------------------------------------------------------------------------------


def test_the_standard_suite_has_what_it_says() -> None:
    found = suite("standard")
    names = [instance.name for instance in found]
    assert len(set(names)) == len(names) == 16
    for word in ("paper", "sphere", "Gaussian", "unstructured", "cube", "plane", "factorial"):
        assert any(word in name for name in names)
    assert set(data.names()) <= set(names)
    for instance in found:  # a single best arm, and a bound that can be reached
        bound = fl.complexity(
            instance.arms, instance.theta, instance.sigma, objective=instance.objective
        ).lower_bound
        assert 50 < bound < 60_000, instance.name
    with pytest.raises(ProblemError, match="suite is 'no'; it is one of standard, quick"):
        suite("no")


@pytest.mark.parametrize("name", data.names())
def test_tables_have_the_means_and_the_noise_of_their_fit(name: str) -> None:
    instance, measured = instances.table(name), data.load(name)
    rows = np.repeat(np.arange(len(measured.arms)), [len(y) for y in measured.rewards])
    X, y = measured.arms.features[rows], np.concatenate(measured.rewards)
    theta, _, rank, _ = np.linalg.lstsq(X, y, rcond=None)
    left = y - X @ theta
    np.testing.assert_allclose(instance.arms.means(instance.theta), measured.arms.features @ theta)
    assert math.isclose(instance.sigma, math.sqrt(left @ left / (len(y) - rank)))
    assert instance.objective == measured.objective


# --- strategies with settings -----------------------------------------------------------------


def test_settings_are_read_and_used() -> None:
    spec = parse_spec("xy-adaptive:alpha=0.1:bound=soare")
    assert spec.label == "xy-adaptive:alpha=0.1:bound=soare"
    assert spec.strategy(tiny()[0]) == XYAdaptive(alpha=0.1, bound="soare")
    assert parse_specs(["g,", ",,uniform , "]) == (Spec("g"), Spec("uniform"))
    with pytest.raises(ProblemError, match="strategy is ','; write names with commas"):
        parse_specs([","])
    assert parse_specs(["g,uniform", "g"]) == (Spec("g"), Spec("uniform"))
    assert [spec.name for spec in parse_specs([])] == confident()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nothing", "strategy is 'nothing'; it is one of gauntlet"),
        ("g:bound", "'bound' is not a setting"),
        ("g:a-b=1", "'a-b=1' is not a setting"),
        ("g:bound=soare:bound=sharp", "appears twice"),
        ("xy-adaptive:alpha=[1]", r"'\[1\]' is not a number"),
        ("", "strategy is ''"),
    ],
)
def test_settings_that_cannot_be_read_are_refused(text: str, words: str) -> None:
    with pytest.raises(ProblemError, match=words):
        parse_spec(text)


def test_settings_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ProblemError, match="g has no setting 'beta'; it has bound"):
        small_plan(strategies=("g:beta=1",)).cells()
    with pytest.raises(ProblemError, match="alpha is 7"):
        small_plan(strategies=("xy-adaptive:alpha=7",)).cells()


@dataclass(frozen=True)
class Hopeful(Rounds):
    """Without a proof, and told theta."""

    name: ClassVar[str] = "hopeful"
    theta: Any = None

    @property
    def proven(self) -> bool:
        return False

    @classmethod
    def knowing(cls, arms: Any, theta: Any) -> "Hopeful":  # noqa: ARG003
        return cls(theta=tuple(theta))


@dataclass(frozen=True)
class Spender(Rounds):
    """Spends a budget."""

    name: ClassVar[str] = "spender"
    promise: ClassVar[str] = "budget"


def test_strategies_with_a_budget_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STRATEGIES, "spender", Spender)
    assert "spender" not in confident()
    with pytest.raises(ProblemError, match="'spender' spends a fixed budget"):
        parse_spec("spender")


def test_strategies_with_an_indifference_zone_are_left_out() -> None:
    assert "kn" not in confident()
    with pytest.raises(ProblemError, match=r"'kn' promises delta only where .* by epsilon or more"):
        parse_spec("kn")


def test_marks_say_what_is_known_and_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = tiny()[0]
    told = {name: marks(Spec(name), instance) for name in ("gauntlet", "xy-oracle")}
    assert told == {"gauntlet": (), "xy-oracle": ("knows theta",)}
    assert marks(Spec("fully-adaptive"), instance) == ("knows |theta|",)
    monkeypatch.setitem(STRATEGIES, "hopeful", Hopeful)
    assert marks(Spec("hopeful"), instance) == ("knows theta", "no proof")


@pytest.mark.parametrize("name", ["fully-adaptive", "lingape", "lingame"])
def test_a_norm_that_is_given_is_marked_and_proves_nothing_if_it_is_too_small(name: str) -> None:
    instance = instances.unstructured([2.0, 0.0, 0.0, 0.0])  # root mean square 1
    for norm, expected in (
        ("0.99", ("theta_norm given", "no proof")),
        ("1", ("theta_norm given",)),
        ("1.5", ("theta_norm given",)),
    ):
        assert marks(parse_spec(f"{name}:theta_norm={norm}"), instance) == expected
    if name != "fully-adaptive":
        spec = parse_spec(f"{name}:theta_norm=1:threshold=heuristic")
        assert marks(spec, instance) == ("theta_norm given", "no proof")


def test_cells_carry_the_marks_of_their_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    two = [instances.unstructured([2.0, 0.0, 0.0, 0.0]), instances.unstructured([9.0, 0.0])]
    monkeypatch.setitem(SUITES, "quick", lambda: two)
    first, second = small_plan(strategies=("lingape:theta_norm=1",)).cells()
    assert first.marks == ("theta_norm given",)
    assert second.marks == ("theta_norm given", "no proof")


def test_marks_of_some_instances_leave_one_column_and_say_where() -> None:
    cells = [
        outcome([10, 20], name="one", marks=("theta_norm given",)),
        outcome([10, 20], name="two", marks=("theta_norm given", "no proof")),
    ]
    head = "g (theta_norm given, no proof on 1 of 2)"
    assert overview(cells, 0.05).rows[0][0] == head
    assert ratio_table(cells, 0.05).columns[2:] == (head,)
    assert detail_table(cells, "one").rows[0][0] == "g (theta_norm given)"
    ratio, survival = make_report(small_plan(), cells).parts[0].pictures
    assert {row["column"] for row in ratio.chart.to_dict()["data"]["values"]} == {head}
    assert {row["label"] for row in survival.chart.to_dict()["data"]["values"]} == {head}
    assert cells[1].record()["marks"] == "theta_norm given, no proof"


# --- what is measured -------------------------------------------------------------------------


@pytest.mark.usefixtures("tiny_suite")
def test_cells_have_the_bound_and_the_cap_of_their_problem() -> None:
    cells = Plan("quick", ("g",), deltas=(0.05, 0.01), runs=2, max_ratio=30.0).cells()
    assert [(c.instance.name, c.delta) for c in cells] == [
        ("unstructured, 3 arms", 0.05),
        ("unstructured, 3 arms", 0.01),
        ("plums", 0.05),
        ("plums", 0.01),
    ]
    for cell in cells:
        c = fl.complexity(cell.instance.arms, cell.instance.theta, sigma=cell.instance.sigma)
        assert math.isclose(cell.bound, lower_bound_pulls(c.t_star, cell.delta), rel_tol=1e-5)
        assert cell.cap == math.ceil(30.0 * cell.bound)
        assert cell.task is not None
        assert cell.task.max_pulls == cell.cap
        assert cell.task.problem.delta == cell.delta
        assert cell.task.problem.sigma == cell.instance.sigma
        assert cell.task.rewards == "gaussian"


def test_smallest_means_are_looked_for_where_they_are_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(SUITES, "quick", lambda: [instances.table("weaving")])
    (cell,) = small_plan(strategies=("g",)).cells()
    assert cell.task is not None
    assert cell.task.problem.objective == "min"


def test_wrong_plans_are_refused() -> None:
    with pytest.raises(ProblemError, match="runs is 1"):
        Plan(runs=1)
    with pytest.raises(ProblemError, match="max_ratio is nan"):
        Plan(max_ratio=math.nan)
    with pytest.raises(ProblemError, match=r"max_ratio is 0\.5"):
        Plan(max_ratio=0.5)
    with pytest.raises(ProblemError, match="deltas is empty"):
        Plan(deltas=())
    with pytest.raises(ProblemError, match="strategy is 'x'"):
        Plan(strategies=("x",))
    for delta in (0.0, 0.5, 0.6, 2.0, math.nan):
        with pytest.raises(ProblemError, match=f"delta is {delta}; it must be between 0 and 1/2"):
            Plan("quick", ("g",), deltas=(0.05, delta))


def test_the_command_of_a_plan_makes_it() -> None:
    close = Plan(deltas=(0.05, 0.05000001), max_ratio=100.0000001).command
    assert "--deltas 0.05,0.05000001 --max-ratio 100.0000001" in close
    assert Plan().command == "finalist benchmark --suite standard --runs 100 --deltas 0.05,0.001"
    plan = Plan("quick", ("g", "xy:bound=soare"), (0.1,), 7, 50.0, 3)
    assert plan.command == (
        "finalist benchmark --suite quick --strategies g,xy:bound=soare --runs 7 --deltas 0.1 "
        "--max-ratio 50 --seed 3"
    )


def test_strategies_that_refuse_leave_an_empty_cell(tmp_path: Path) -> None:
    plan = small_plan(strategies=("track-and-stop", "xy-oracle"), runs=2)
    outcomes = run(plan, tmp_path / "results.sqlite")
    done = {
        o.cell.instance.name for o in outcomes if o.cell.spec.name == "track-and-stop" and o.result
    }
    assert done == {"unstructured, 3 arms"}
    refused = [o for o in outcomes if o.result is None]
    assert all("rank" in o.reason for o in refused)
    assert {row[0] for row in missing_table(outcomes).rows} == {"track-and-stop"}
    assert [r["ratio"] for r in map(CellResult.record, refused)] == [None] * len(refused)
    assert "| track-and-stop |" in overview(outcomes, 0.05).markdown()


@pytest.mark.usefixtures("tiny_suite")
def test_refusals_in_the_middle_leave_an_empty_cell_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise ProblemError("too much for me")

    monkeypatch.setattr(Task, "run", refuse)
    outcomes = run(small_plan(), tmp_path / "results.sqlite")
    assert {o.reason for o in outcomes} == {"too much for me"}
    text = markdown(make_report(small_plan(), outcomes))
    assert "too much for me" in text


def test_looking_after_every_pull_at_many_arms_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUITES, "quick", lambda: [instances.fan(MAX_ARMS + 1, 0)])
    slow, quick = small_plan(strategies=("g", "xy-adaptive")).cells()
    assert slow.task is None
    assert slow.reason == "it checks after every pull, and 1,001 arms are more than 1,000: too slow"
    assert quick.task is not None
    monkeypatch.setitem(SUITES, "quick", lambda: [instances.fan(301, 0)])
    slow, quick = small_plan(strategies=("fully-adaptive", "g")).cells()
    assert "301 arms are more than 300" in slow.reason
    assert quick.task is not None


def test_other_threads_do_not_count_as_cpu_of_a_run() -> None:
    def busy() -> None:
        begin = time.thread_time()
        while time.thread_time() - begin < 0.3:
            pass

    def reward(arm: int, n: int, rng: np.random.Generator) -> np.ndarray:
        thread = threading.Thread(target=busy)
        thread.start()
        thread.join()
        return np.full(n, float(arm))

    arms = fl.Arms.unstructured(2)
    words: dict[str, Any] = {"sigma": 1.0, "runs": 1, "rewards": reward, "progress": False}
    found = fl.simulate(arms, [0.0, 1.0], Rounds(1), **words)
    assert found.seconds[0] < 0.3  # two pulls, 0.6 seconds of other threads


# --- what is kept -----------------------------------------------------------------------------


@pytest.mark.usefixtures("tiny_suite")
def test_finished_runs_are_not_made_again(tmp_path: Path, ran: list[int]) -> None:
    path = tmp_path / "results.sqlite"
    first = run(small_plan(), path)
    assert len(ran) == 4 * 12
    check_same(first, run(small_plan(), path))
    assert len(ran) == 4 * 12
    run(small_plan(strategies=("gauntlet", "g", "xy-oracle")), path)
    assert len(ran) == 6 * 12


@pytest.mark.usefixtures("tiny_suite")
@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"deltas": (0.06,)},
        {"max_ratio": 150.0},
        {"strategies": ("g:bound=soare",)},
    ],
)
def test_another_setting_is_another_cell(
    tmp_path: Path, ran: list[int], change: dict[str, Any]
) -> None:
    path = tmp_path / "results.sqlite"
    run(small_plan(strategies=("g",)), path)
    before = len(ran)
    run(small_plan(**{"strategies": ("g",), **change}), path)
    assert len(ran) == 2 * before


@pytest.mark.usefixtures("tiny_suite")
def test_another_version_is_another_cell(
    tmp_path: Path, ran: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.sqlite"
    run(small_plan(strategies=("g",)), path)
    before = len(ran)
    monkeypatch.setattr(store, "__version__", "99.0")
    run(small_plan(strategies=("g",)), path)
    assert len(ran) == 2 * before


@pytest.mark.usefixtures("tiny_suite")
def test_the_number_of_processes_changes_nothing(tmp_path: Path) -> None:
    plan = small_plan(strategies=("xy-adaptive",))
    one = run(plan, tmp_path / "one.sqlite", jobs=1)
    check_same(one, run(plan, tmp_path / "two.sqlite", jobs=2))
    for outcome in one:
        cell = outcome.cell
        assert cell.task is not None
        found = fl.simulate(
            cell.instance.arms,
            cell.instance.theta,
            "xy-adaptive",
            sigma=cell.instance.sigma,
            delta=0.05,
            runs=12,
            max_pulls=cell.cap,
        )
        np.testing.assert_array_equal(found.samples, outcome.measured.samples)


def test_a_killed_benchmark_goes_on_where_it_was(tmp_path: Path) -> None:
    words = ["--suite", "quick", "--strategies", "xy-adaptive,xy-oracle", "--runs", "60"]
    words += ["--deltas", "0.05", "--jobs", "1"]
    command = [sys.executable, "-m", "finalist", "benchmark", *words]
    cut = tmp_path / "cut"
    process = subprocess.Popen([*command, "--out", cut], stdout=subprocess.DEVNULL, cwd=ROOT)
    try:
        until = time.monotonic() + 120
        while not (cut / "results.sqlite").exists() or blocks(cut / "results.sqlite") < 5:
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    kept = _cells(cut / "results.sqlite")
    assert 5 <= len(kept) < 48
    plan = Plan("quick", ("xy-adaptive", "xy-oracle"), (0.05,), 60)
    check_same(run(plan, cut / "results.sqlite"), run(plan, tmp_path / "whole.sqlite"))
    after = _cells(cut / "results.sqlite")
    assert len(after) == 48
    assert {key: after[key] for key in kept} == kept  # those rows were not written again


def _cells(path: Path) -> dict[str, bytes]:
    import sqlite3

    with sqlite3.connect(path) as connection:
        found = dict(connection.execute("SELECT key, arrays FROM cells"))
    connection.close()
    return found


# --- what is reported -------------------------------------------------------------------------


def outcome(
    pulls: list[int],
    *,
    cap: int = 1000,
    bound: float = 10.0,
    wrong: int = 0,
    strategy: str = "g",
    delta: float = 0.05,
    name: str = "toy",
    marks: tuple[str, ...] = (),
    batches: int = 3,
) -> CellResult:
    """Make up a cell: a run with more pulls than the cap was stopped at half of it, undecided."""
    n = len(pulls)
    decided = np.array(pulls) <= cap
    counts = np.where(decided, pulls, cap // 2)
    result = Simulation(
        arms=("a", "b"),
        name=strategy,
        strategy=strategy,
        delta=delta,
        seed=0,
        requested=n,
        run=np.arange(n),
        winner=np.where(decided, np.where(np.arange(n) < wrong, 1, 0), -1),
        correct=decided & (np.arange(n) >= wrong),
        pulls_per_arm=np.column_stack([counts, np.zeros(n, dtype=int)]),
        batches=np.full(n, batches),
        seconds=np.full(n, 0.002),
    )
    instance = instances.given(name, np.eye(2), [1.0, 0.0])
    return CellResult(Cell(instance, Spec(strategy), delta, bound, cap, None, "", marks), result)


def test_figures_are_those_of_the_runs() -> None:
    record = outcome([10, 20, 30, 40] * 10, wrong=1).record()
    assert record["mean_pulls"] == 25.0
    assert record["ratio"] == 2.5
    assert 1.0 <= record["ratio_low"] < 2.5 < record["ratio_high"] <= 4.0
    assert math.isclose(record["mean_pulls_low"], 10 * record["ratio_low"])
    assert (record["errors"], record["undecided"], record["runs"]) == (1, 0, 40)
    assert (record["error_low"], record["error_high"]) == exact_interval(1, 40, 0.95)
    assert (record["mean_batches"], record["median_cpu_seconds"]) == (3.0, 0.002)


def test_undecided_runs_count_up_to_the_cap_and_are_shown_so() -> None:
    cut = outcome([100, 5000], cap=1000)
    assert cut.ratios.tolist() == [10.0, 100.0]
    assert cut.undecided == 1
    assert cut.measured.errors == 0
    row = overview([cut], 0.05).records()[0]
    assert (row["ratio"], row["cut"]) == ("≥ 55", "1")
    assert ratio_table([cut], 0.05).rows[0] == ("toy", "10", "≥ 55")
    detail = detail_table([cut], "toy").records()[0]
    assert (detail["mean pulls"], detail["ratio"]) == ("≥ 550", "≥ 55")


def test_means_of_cut_runs_have_no_upper_end() -> None:
    cut = outcome([100, 5000] * 20, cap=1000)
    record = cut.record()
    assert 10.0 < record["ratio_low"] < 55.0
    assert record["mean_pulls_low"] == 10.0 * record["ratio_low"]
    assert record["ratio_high"] is record["mean_pulls_high"] is None
    detail = detail_table([cut], "toy").records()[0]
    assert re.fullmatch(r"≥ [345]\d\d to -", detail["95 % interval"])
    csv_row = next(csv.DictReader(io.StringIO(cells_table([cut]).csv())))
    assert (csv_row["ratio_high"], csv_row["mean_pulls_high"]) == ("", "")
    whole = detail_table([outcome([100, 200] * 20)], "toy").records()[0]
    assert re.fullmatch(r"1\d\d to 1\d\d", whole["95 % interval"])


def test_a_run_that_was_cut_had_a_batch_to_come() -> None:
    cut = outcome([100, 5000, 5000, 5000], batches=0)
    assert cut.record()["mean_batches"] == 0.75
    assert detail_table([cut], "toy").records()[0]["batches"] == "≥ 0.75"
    never = outcome([5000, 5000], batches=0)
    assert overview([never], 0.05).records()[0]["batches"] == "≥ 1"
    assert overview([outcome([10, 10])], 0.05).records()[0]["batches"] == "3"


def test_few_runs_have_no_interval() -> None:
    few, enough = outcome([10, 20, 30] * 9 + [10, 20]), outcome([10, 20, 30] * 10)
    record = few.record()
    for name in ("ratio_low", "ratio_high", "mean_pulls_low", "mean_pulls_high"):
        assert record[name] is None
    assert detail_table([few], "toy").records()[0]["95 % interval"] == "-"
    assert enough.record()["ratio_low"] < 2.0 < enough.record()["ratio_high"]
    assert "with fewer than 30 runs" in make_report(small_plan(), [few]).lead


def test_the_overview_has_geometric_means_and_the_best_first() -> None:
    cells = [
        outcome([10, 10], strategy="xy", name="one"),
        outcome([40, 40], strategy="xy", name="two"),
        outcome([30, 30], strategy="g", name="one", marks=("no proof",)),
        outcome([30, 30], strategy="g", name="two", marks=("no proof",)),
        outcome([5, 5], strategy="uniform", name="one"),
    ]
    assert strategies(cells) == ["xy", "g", "uniform"]  # the last one did one instance only
    first, second, third = overview(cells, 0.05).records()
    assert (first["strategy"], first["ratio"], first["least"], first["most"]) == (
        "xy",
        "2.00",
        "1.00",
        "4.00",
    )
    assert second["strategy"] == "g (no proof)"
    assert (third["ratio"], third["done"]) == ("0.50", "1/1")
    assert detail_table(cells, "one").rows[1][0] == "g (no proof)"
    assert "g (no proof)" in ratio_table(cells[:4], 0.05).columns


def test_errors_above_delta_are_counted() -> None:
    bad = outcome([10] * 100, wrong=20)
    good = outcome([10] * 100, wrong=4, name="other")
    row = overview([bad, good], 0.05).records()[0]
    assert (row["wrong"], row["above delta"]) == ("24/200", "1")


def test_a_report_without_a_decision_has_no_survival_curve() -> None:
    report = make_report(small_plan(), [outcome([5000, 5000])])
    assert [picture.name for picture in report.parts[0].pictures] == ["ratio-0.05"]
    assert "≥ 100" in markdown(report)


def test_all_strategies_have_a_survival_curve() -> None:
    cells = [outcome([10 + i, 40 * (1 + i)], strategy=f"s{i}") for i in range(8)]
    cells.append(outcome([5000, 5000], strategy="slow"))
    first, second = make_report(small_plan(), cells).parts[0].pictures[1:]
    assert (first.name, second.name) == ("survival-0.05", "survival-0.05-2")
    assert "(2 of 2)" in second.caption
    specs = [picture.chart.to_dict() for picture in (first, second)]
    drawn = [list(dict.fromkeys(row["label"] for row in s["data"]["values"])) for s in specs]
    assert drawn == [[f"s{i}" for i in range(6)], ["s6", "s7"]]
    axes = [s["spec"]["layer"][0]["encoding"]["x"]["scale"]["domain"] for s in specs]
    assert axes[0] == axes[1]
    assert "Without a decision: slow" in specs[0]["title"]["subtitle"]
    pictures = make_report(small_plan(), [*cells[:6], cells[-1]]).parts[0].pictures
    assert [picture.name for picture in pictures] == ["ratio-0.05", "survival-0.05"]


def test_the_instances_that_settings_were_tuned_on_are_named() -> None:
    tuned = [make() for make in TUNED.values()]

    def known(instance: instances.Instance) -> bool:
        return any(
            np.array_equal(one.arms.features, instance.arms.features)
            and np.array_equal(one.theta, instance.theta)
            for one in tuned
        )

    same = {instance.name for instance in suite("standard") if known(instance)}
    assert same == TUNED_ON
    assert len(same) == 6


def test_ratios_on_instances_that_were_tuned_on_stand_beside_the_others() -> None:
    tuned, other = "cube, 2^6", "plums"
    cells = [
        outcome([20, 40], strategy="gauntlet", name=tuned),
        outcome([40, 40], strategy="gauntlet", name=other),
        outcome([90, 90], strategy="gauntlet", name="oats"),
        outcome([50, 2000], strategy="g", name=tuned),
        outcome([50, 50], strategy="g", name=other),
        outcome([50, 50], strategy="g", name="oats"),
    ]
    table = halves(cells, 0.05)
    assert table.columns == ("strategy", "1 tuned on", "2 others")
    assert dict(zip(table.columns, table.rows[0], strict=True)) == {
        "strategy": "gauntlet",
        "1 tuned on": "3.00",
        "2 others": "6.00",  # the geometric mean of 4 and 9
    }
    assert table.rows[1] == ("g", "≥ 52.5", "5.00")
    text = markdown(make_report(small_plan(), cells))
    assert "settings of the gauntlet were tuned on 1 of these 3 instances: cube, 2^6." in text
    assert "| strategy | 1 tuned on | 2 others |" in text
    assert not halves(cells[1:3], 0.05).rows  # nothing to set apart
    assert "tuned" not in markdown(make_report(small_plan(), cells[1:3]))


def test_the_bound_says_that_it_does_not_bind_who_knows_theta() -> None:
    told = outcome([20, 40], strategy="xy-oracle", marks=("knows theta",))
    plain = outcome([20, 40])
    lead = make_report(small_plan(), [plain]).lead
    assert "a method that keeps delta for every theta needs at least so many on average" in lead
    assert "no method" not in lead
    for cells, expected in (([plain, told], True), ([plain], False)):
        for picture in make_report(small_plan(), cells).parts[0].pictures:
            subtitle = picture.chart.to_dict()["title"]["subtitle"]
            found = "The bound does not bind xy-oracle (knows theta)" in subtitle
            assert found is expected, picture.name
    many = [outcome([10 * i, 10 * i], strategy=f"s{i}") for i in range(1, 7)]
    cells = [*many, outcome([99, 99], strategy="xy-oracle", marks=("knows theta",))]
    _, first, second = make_report(small_plan(), cells).parts[0].pictures
    texts = [json.dumps(one.chart.to_dict()["title"]) for one in (first, second)]
    assert ["does not bind" in text for text in texts] == [False, True]  # where it is drawn


def test_close_deltas_have_files_of_their_own() -> None:
    plan = small_plan(deltas=(0.05, 0.05000001))
    report = make_report(plan, [outcome([10, 20], delta=d) for d in plan.deltas])
    names = [picture.name for part in report.parts for picture in part.pictures]
    assert names == [
        "ratio-0.05",
        "survival-0.05",
        "ratio-0.05000001",
        "survival-0.05000001",
    ]
    assert len({part.name for part in report.parts}) == len(report.parts)
    assert [row["delta"] for row in detail_table(report.outcomes, "toy").records()] == [
        "0.05000001",
        "0.05",
    ]


@pytest.mark.usefixtures("tiny_suite")
def test_reports_are_complete_and_need_nothing_else(tmp_path: Path) -> None:
    plan = small_plan(strategies=("xy-adaptive", "xy-oracle"), deltas=(0.05, 0.01))
    outcomes = run(plan, tmp_path / "results.sqlite")
    report = make_report(plan, outcomes)
    files = {path.name: path for path in write(report, tmp_path)}
    with files["cells.csv"].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["ratio"]) for row in rows] == [o.ratio for o in outcomes]
    assert [row["strategy"] for row in rows[:2]] == ["xy-adaptive", "xy-oracle"]
    text = files["benchmark.md"].read_text()
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert pictures == [
        f"{word}-{d}.png" for d in ("0.05", "0.01") for word in ("ratio", "survival")
    ]
    assert all(files[name].read_bytes().startswith(b"\x89PNG") for name in pictures)
    for word in ("## plums", "xy-oracle (knows theta)", plan.command, fl.__version__, "12 runs"):
        assert word in text
    html = files["index.html"].read_text()
    assert html.count("<svg") == 4
    assert not re.search(r"<script|https?://(?!www\.w3\.org)", html)
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert json.loads(json.dumps(report.record()))["cells"][0]["instance"] == "unstructured, 3 arms"
    assert len(list(csv.reader(io.StringIO(cells_table(outcomes).csv())))) == 9
