"""The reproduction: what must come out, on the quick version; sets in the plane; the page."""

import fcntl
import json
import math
import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import finalist as fl
from finalist.charts.geometry import ConvexSet
from finalist.inference.bounds import static_radius
from finalist.lab import paper
from finalist.lab.page import Finding, Part, inline, page
from finalist.lab.paper import appendix, cones
from finalist.lab.paper.appendix import proven_budget
from finalist.lab.paper.budget import budget_part, growth
from finalist.lab.paper.experiment import (
    METHODS,
    ORACLE,
    OURS,
    PAPERS,
    PRINTED,
    STORE,
    TABLE_DIMENSION,
    XY,
    Case,
    Extent,
    G,
    Method,
    Tally,
    alpha_cases,
    budget_cases,
    instance,
    measure,
)
from finalist.lab.paper.report import Reproduction, cases_of
from finalist.lab.paper.table import lower_bound, printed_error, table_part
from finalist.lab.tables import Table
from finalist.simulation import exact_interval
from finalist.simulation.task import Task
from tests import instances

QUICK = Extent.quick()
Tallies = dict[Case, Tally]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of one test run share, and with it the store."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "paper"
    shared.mkdir(exist_ok=True)
    return shared


@pytest.fixture(scope="module")
def tallies(folder: Path) -> Tallies:
    """Everything that the quick version measures; the first process simulates, others read."""
    cases = [case for name in paper.PARTS for case in cases_of(name, QUICK)]
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return measure(cases, QUICK, folder, jobs=2)


@pytest.fixture(scope="module")
def quick(tallies: Tallies, folder: Path) -> Reproduction:
    return paper.reproduce(paper.PARTS, folder, QUICK)


def sharp(tallies: Tallies, method: Method, d: int = TABLE_DIMENSION) -> Tally:
    return tallies[Case(method, "sharp", d)]


class TestExperiment:
    @pytest.mark.parametrize("d", [2, 5, 10])
    def test_it_is_the_paper_s(self, d: int) -> None:
        arms, theta = instance(d)
        truth = instances.paper(d, 0.01)
        np.testing.assert_array_equal(arms.features, truth.features)
        np.testing.assert_array_equal(theta, truth.theta)

    def test_printed_pulls_sum_to_the_printed_budgets(self) -> None:
        budgets = {name: sum(pulls) for name, pulls in PRINTED.items()}
        assert list(budgets.values()) == [41652, 52988, 147620, 140075, 149964]

    def test_a_cell_has_its_constants_and_its_alpha(self) -> None:
        strategy = Case(PAPERS, "soare", 2).strategy(instance(2))
        assert (strategy.name, strategy.alpha, strategy.bound) == ("xy-adaptive", 0.1, "soare")  # type: ignore[attr-defined]

    def test_the_full_plan_is_the_paper_s(self) -> None:
        extent = Extent()
        assert extent.dimensions == tuple(range(2, 11))
        assert {extent.runs_of(Case(m, "sharp", 5)) for m in METHODS} == {100}
        assert extent.runs_of(Case(G, "soare", 5)) == 20
        assert extent.with_runs(7).runs_of(Case(G, "soare", 5)) == 7


class TestOutcome:
    def test_the_interval_holds_the_mean_and_is_positive(self) -> None:
        samples = np.array([326, 326, 326, 326, 326, 326, 326, 326, 326, 3259])
        low, high = Tally(samples, np.ones(3), 0).interval
        assert 0 < 326 <= low < samples.mean() < high < 3259

    def test_equal_runs_have_no_interval(self) -> None:
        assert Tally(np.full(5, 7), np.ones(2), 0).interval == (7.0, 7.0)


class TestWhatMustComeOut:
    @pytest.mark.parametrize("method", [ORACLE, PAPERS, OURS], ids=lambda m: m.label)
    def test_who_knows_or_learns_pulls_x2(self, tallies: Tallies, method: Method) -> None:
        assert sharp(tallies, method).shares[1] > 0.99

    def test_the_oracle_pulls_x1_once_for_200_pulls_of_x2(self, tallies: Tallies) -> None:
        pulls = sharp(tallies, ORACLE).pulls
        assert pulls[1] / pulls[0] == pytest.approx(41440 / 207, rel=0.02)

    @pytest.mark.parametrize("method", [XY, G], ids=lambda m: m.label)
    def test_static_strategies_are_uniform(self, tallies: Tallies, method: Method) -> None:
        shares = sharp(tallies, method).shares
        np.testing.assert_allclose(shares[:5], 0.2, rtol=0.01)
        assert shares[5] < 1e-3

    @pytest.mark.parametrize("d", QUICK.dimensions)
    def test_the_oracle_is_below_all_others(self, tallies: Tallies, d: int) -> None:
        for method in (PAPERS, OURS, XY, G):
            assert sharp(tallies, ORACLE, d).mean < sharp(tallies, method, d).mean

    @pytest.mark.parametrize("d", [d for d in QUICK.dimensions if d >= 4])
    def test_xy_adaptive_is_below_the_static_ones(self, tallies: Tallies, d: int) -> None:
        for method in (XY, G):
            assert sharp(tallies, OURS, d).mean < sharp(tallies, method, d).mean

    def test_the_oracle_and_xy_adaptive_are_flat(self, tallies: Tallies) -> None:
        # The oracle compares K - 1 = d rivals: log(d / delta) grows by 1.44 from d = 2 to 10.
        for method, factor in ((ORACLE, 1.5), (OURS, 2.0)):
            means = [sharp(tallies, method, d).mean for d in QUICK.dimensions]
            assert max(means) < factor * min(means)

    @pytest.mark.parametrize("first", [2, 5])
    @pytest.mark.parametrize("method", [XY, G], ids=lambda m: m.label)
    def test_static_strategies_grow_linearly(
        self, tallies: Tallies, method: Method, first: int
    ) -> None:
        # n = d omega^2 radius(n)^2 / Delta_min^2 (see `growth`): linear but for the logarithm in
        # the radius. The estimated gap that ends a run has a relative error of 1 / radius, about
        # an eighth, so a run varies by a quarter, a mean of 10 by 0.08, a ratio of two by 0.11.
        rule = "g" if method == G else "xy"
        expected = growth("sharp", rule, 10) / growth("sharp", rule, first)  # type: ignore[arg-type]
        assert 10 / first < expected < 1.25 * 10 / first
        ratio = sharp(tallies, method, 10).mean / sharp(tallies, method, first).mean
        assert ratio == pytest.approx(expected, rel=0.3)

    def test_no_budget_is_below_the_lower_bound_and_few_runs_are_wrong(
        self, tallies: Tallies
    ) -> None:
        for case, tally in tallies.items():
            assert tally.mean > lower_bound(case.d)
            assert exact_interval(tally.wrong, tally.runs)[0] <= 0.05

    def test_the_oracle_is_below_all_others_with_printed_constants(self, folder: Path) -> None:
        extent = Extent(bounds=("soare",)).with_runs(2)
        methods = [m for m in METHODS if m.name != "fully-adaptive"]
        cases = [Case(m, "soare", d) for m in methods for d in (2, 5)]
        found = measure(cases, extent, folder, jobs=2)
        for case in cases:
            oracle = found[Case(ORACLE, "soare", case.d)].mean
            if case.method != ORACLE:
                assert oracle < found[case].mean
            else:
                assert oracle == pytest.approx(proven_budget(ORACLE, "soare", case.d), rel=1e-4)


class TestReproduction:
    def test_a_second_time_nothing_is_simulated(
        self,
        quick: Reproduction,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def refuse(*_: object) -> None:
            raise AssertionError("simulated again")

        monkeypatch.setattr(Task, "run", refuse)
        again = paper.reproduce(paper.PARTS, folder, QUICK)
        assert again.record() == quick.record()
        assert (folder / STORE).stat().st_size > 0

    @pytest.mark.usefixtures("tallies")
    def test_every_cell_is_announced_once(self, folder: Path) -> None:
        calls: list[tuple[int, int, Case]] = []
        cases = [*cases_of("table", QUICK), *cases_of("appendix", QUICK)]
        measure(cases, QUICK, folder, announce=lambda *call: calls.append(call))
        assert [number for number, _, _ in calls] == list(range(1, 7))
        assert {total for _, total, _ in calls} == {6}
        assert {case.method for _, _, case in calls} == set(METHODS)

    def test_an_interrupted_cell_ends_the_reproduction(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = Task.run

        def interrupt(self: Task, index: int) -> object:
            if index == 2:
                raise KeyboardInterrupt
            return run(self, index)

        monkeypatch.setattr(Task, "run", interrupt)
        with pytest.raises(KeyboardInterrupt):
            measure([Case(ORACLE, "sharp", 2)], QUICK, tmp_path)

    def test_an_unknown_part_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(fl.errors.FinalistError, match="'figure'"):
            paper.reproduce(["figure"], tmp_path)

    def test_all_statements_but_the_known_ones_hold(self, quick: Reproduction) -> None:
        failing = {f.claim for part in quick.parts for f in part.findings if f.holds is False}
        known = {
            "Dimensions have little impact on XY-Adaptive (0.1)",  # tenfold phases
            "Fully adaptive has no advantage over XY and G, because of √d in its bound",
            "Lemma 2 as printed: H_LB is at least max ‖y‖² / (L Δ_min²)",
            "Rounding costs at most a factor 1 + p/n, as printed",
        }
        assert failing <= known
        assert len(failing) >= 4

    def test_files_are_written_and_the_page_is_self_contained(
        self, quick: Reproduction, tmp_path: Path
    ) -> None:
        files = paper.write(quick, tmp_path, with_page=True)
        assert {path.suffix for path in files} == {".csv", ".png", ".svg", ".html"}
        text = (tmp_path / "index.html").read_text()
        pictures = [picture for part in quick.parts for picture in part.pictures]
        assert text.count("<svg ") == len(pictures) >= 7
        assert "<script" not in text
        links = set(re.findall(r'(?:https?:)?//[^\s"\'<>]+', text))
        assert {link for link in links if "www.w3.org" not in link} == set()
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert len(ids) == len(set(ids))
        assert f"{lower_bound(5):,.0f}" in text
        _Balanced().feed(text)


class _Balanced(HTMLParser):
    """Fails on a tag that is closed in the wrong place."""

    VOID = frozenset({"meta", "link", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def invented() -> Tallies:
    """Tallies of an extent with two dimensions: the oracle 100 pulls, all others 200."""
    extent = Extent(dimensions=(2, 5), bounds=("soare",))
    return {
        case: Tally(np.full(4, 100 if case.method == ORACLE else 200), _shares(case), 0)
        for case in [*budget_cases(extent, (2, 5)), *alpha_cases(extent)]
    }


def _shares(case: Case) -> np.ndarray:
    shares = np.full(case.d + 1, 0.001)
    shares[:-1] = 0.2 if case.method in (XY, G) else 0.001
    shares[1] = shares[1] if case.method in (XY, G) else 0.995
    return shares


class TestFindings:
    extent = Extent(dimensions=(2, 5), bounds=("soare",))

    def finding(self, tallies: Tallies, words: str) -> Finding:
        parts = (table_part(self.extent, tallies), budget_part(self.extent, tallies))
        (found,) = (f for part in parts for f in part.findings if words in f.claim)
        return found

    def test_order_holds_when_it_does(self, invented: Tallies) -> None:
        assert self.finding(invented, "the fewest").holds is True

    def test_order_names_where_it_fails(self, invented: Tallies) -> None:
        invented[Case(G, "soare", 5)] = Tally(np.full(4, 99), np.ones(6), 0)
        found = self.finding(invented, "the fewest")
        assert found.holds is False
        assert "G for d = 5" in found.evidence
        assert "XY" not in found.evidence.split("against")[1]

    def test_a_budget_that_does_not_grow_is_not_linear(self, invented: Tallies) -> None:
        assert self.finding(invented, "budget of G").holds is False

    def test_a_steep_budget_is_not_flat(self, invented: Tallies) -> None:
        assert self.finding(invented, "impact on XY-Adaptive (0.4)").holds is True
        invented[Case(OURS, "soare", 5)] = Tally(np.full(4, 401), np.ones(6), 0)
        assert self.finding(invented, "impact on XY-Adaptive (0.4)").holds is False

    def test_shares_are_tested(self, invented: Tallies) -> None:
        assert self.finding(invented, "most of the samples for x2").holds is True
        assert self.finding(invented, "uniformly").holds is True
        pulls = np.array([0.3, 0.1, 0.2, 0.2, 0.2, 0.0])
        invented[Case(G, "soare", 5)] = Tally(np.full(4, 200), pulls, 0)
        invented[Case(OURS, "soare", 5)] = Tally(np.full(4, 200), pulls, 0)
        assert self.finding(invented, "most of the samples for x2").holds is False
        assert self.finding(invented, "uniformly").holds is False

    def test_the_oracle_is_not_held_to_a_bound_for_those_who_do_not_know_theta(
        self, invented: Tallies
    ) -> None:
        found = self.finding(invented, "printed budgets")
        assert found.holds is None
        assert "no method" not in found.evidence
        for words in ("right for every θ", "41,652 knows θ", "4.9%", "52,988", "1% below"):
            assert words in found.evidence
        table, budget = table_part(self.extent, invented), budget_part(self.extent, invented)
        said = [*table.text, *(one.title for one in table.tables)]
        assert not any("any method" in text or "no method" in text for text in said)
        assert any("whatever θ is" in text and "oracle knows θ" in text for text in table.text)
        drawn = json.dumps(budget.pictures[0].chart.to_dict(), ensure_ascii=False)
        assert "Lower bound" in drawn
        assert "right for every θ; the oracle knows θ" in drawn
        assert "No method" not in drawn

    def test_the_error_of_printed_pulls_is_that_of_the_formula_for_two_arms(self) -> None:
        # With 10,000 pulls of x3, x4 and x5 only x1 and x6 can be confused: Phi(-gap / sd).
        arms, theta = instance(5)
        pulls = (200, 40_000, 10_000, 10_000, 10_000, 0)
        y = arms.features[0] - arms.features[5]
        A = arms.features.T @ (np.array(pulls)[:, None] * arms.features)
        sd = math.sqrt(y @ np.linalg.inv(A) @ y)
        expected = 0.5 * math.erfc(float(y @ theta) / sd / math.sqrt(2.0))
        assert printed_error(pulls) == pytest.approx(expected, abs=0.002)
        assert 0.02 < expected < 0.03

    def test_errors_are_counted(self, invented: Tallies) -> None:
        assert self.finding(invented, "probability 95%").holds is True
        invented[Case(G, "soare", 5)] = Tally(np.full(4, 200), np.ones(6), 4)
        found = self.finding(invented, "probability 95%")
        assert found.holds is False
        assert found.evidence.startswith("4 wrong")


class TestCones:
    arms, theta = instance(2, cones.ANGLE)

    def counts(self) -> Iterator[np.ndarray]:
        yield from (np.array(n) for n in ([40, 60, 0], [17, 83, 2], [200, 300, 5], [1, 900, 99]))

    def test_the_oracle_s_set_is_the_formula(self) -> None:
        rng = np.random.default_rng(0)
        X = self.arms.features
        for n in self.counts():
            inverse = np.linalg.inv(X.T @ (n[:, None] * X))
            radius = static_radius(float(n.sum()), 3, 0.05, cones.NOISE)
            region = cones.oracle_set(self.arms, self.theta, n)
            for t in self.theta + 3 * rng.standard_normal((50, 2)):
                ys = X[0] - X[1:]
                limits = radius * np.sqrt(np.einsum("ij,jk,ik->i", ys, inverse, ys))
                inside = bool((ys @ (self.theta - t) <= limits).all())
                assert inside == bool((region.normals @ t <= region.limits).all())

    def test_possible_arms_are_those_of_sampled_parameters(self) -> None:
        X = self.arms.features
        grid = np.stack(np.meshgrid(*2 * [np.linspace(-20, 20, 801)]), axis=-1).reshape(-1, 2)
        for n in self.counts():
            region = cones.empirical_set(self.arms, self.theta, n)
            inside = grid[(grid @ region.normals.T <= region.limits).all(axis=1)]
            assert sorted(region.possible(X)) == sorted(set((inside @ X.T).argmax(axis=1).tolist()))

    def test_the_border_is_left_after_m_star_pulls(self) -> None:
        c = fl.complexity(self.arms, self.theta, cones.NOISE)
        design = fl.optimal_design(self.arms, "xy")
        for factor, meets in ((0.9, True), (1.1, False)):
            counts = fl.round_design(design, round(factor * c.m_star))
            region = cones.oracle_set(self.arms, self.theta, counts)
            assert region.meets_border(self.arms.features, 1, 2) is meets

    def test_a_border_behind_a_third_cone_is_not_met(self) -> None:
        everywhere = ConvexSet(np.array([[1.0, 0.0]]), np.array([5.0]))
        X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 3.0], [0.0, -3.0]])
        assert not everywhere.meets_border(X, 0, 1)
        assert everywhere.meets_border(X, 0, 2)

    def test_the_figure_and_its_sequel(self) -> None:
        first = cones.figure()
        assert (first.possible, first.borders) == (("x1", "x3"), False)
        g, adaptive, oracle = (
            [s.possible for s in row]
            for row in (cones.g_sets(), cones.adaptive_sets(), cones.oracle_sets())
        )
        assert g[-1] == ("x1", "x3")
        assert adaptive[-1] == oracle[-1] == ("x1",)


class TestAppendix:
    def test_closed_forms(self) -> None:
        for row in appendix.examples_table().records():
            assert row["G value"] == pytest.approx(row["G closed form"], rel=1e-5)
            assert row["XY value"] == pytest.approx(row["XY closed form"], rel=1e-5)

    def test_lemma_2(self) -> None:
        rows = appendix.lemma2_table().records()
        assert all(row["inside"] for row in rows)
        experiment = next(row for row in rows if row["problem"].endswith("d = 5"))
        assert experiment["printed"] == pytest.approx(2e8, rel=1e-3)
        assert not experiment["print holds"]

    def test_rounding(self) -> None:
        rows = appendix.rounding_table().records()
        assert all(row["value / optimum"] <= row["n/(n-p)"] + 1e-9 for row in rows)
        broken = [(row["arms"], row["n"]) for row in rows if not row["print holds"]]
        assert broken == [("e1, e2, e3", 5)]

    def test_the_theorems_are_above_what_was_measured(self, tallies: Tallies) -> None:
        rows = appendix.theorems_table(QUICK, tallies).records()
        assert len(rows) == 5
        assert all(row["ratio"] > 1 for row in rows)


class TestPage:
    def test_text_is_escaped(self) -> None:
        finding = Finding("a < b", False, "<script>")
        table = Table("t", "T & U", ("<c>", "n"), (("<x>", 1),))
        part = Part("p", "P", ("1 < 2",), (finding,), (table,), ())
        text = page("P", "lead", [part], {}, made="s", abstract=["<i>"])
        assert "<script" not in text
        assert "&lt;x&gt;" in text
        assert '<td class="v fails">fails</td>' in text

    def test_ids_of_drawings_do_not_meet(self) -> None:
        svg = '<svg width="1"><g id="a"/><use href="#a"/><g clip-path="url(#a)"/></svg>'
        both = inline(svg, "one", "") + inline(svg, "two", "")
        for name in ("one", "two"):
            for form in (f'id="{name}-a"', f'href="#{name}-a"', f"url(#{name}-a)"):
                assert both.count(form) == 1

    def test_numbers_of_tables(self) -> None:
        assert Table("t", "T", ("a", "b"), ()).markdown() == "| a | b |\n|---:|---:|"
        table = Table("t", "T", ("name", "n"), (("a", 1234567), ("b", None)))
        assert table.shown() == [["a", "1,234,567"], ["b", ""]]
        assert table.numeric() == [False, True]
        assert table.csv().splitlines() == ["name,n", "a,1234567", "b,"]
