"""Optimal designs measured beside cvxpy with Clarabel and beside vectorised NumPy.

    python -m benchmarks.designs [--quick] [--only g,xy,greedy,growth,memory]

Gaps are computed here, not taken from a solver: the returned design is evaluated with plain
NumPy over all arms or all pairs and compared with a lower bound proved independently. Two
exceptions, named in their tables: large XY designs use finalist's own lower bound, and the
growth table shows finalist's certificate. Writes
benchmarks/results/designs.md and growth.svg/png; the exit code is 1 when a target is missed.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from tests import instances, referees

from benchmarks import harness
from benchmarks.harness import Report, Table, Timing, console, seconds
from finalist.arms import Arms
from finalist.charts.theme import PALETTE, finish, save
from finalist.design import greedy, greedy_allocation, optimal_design

RESULTS = Path(__file__).parent / "results"
SECTIONS = ("g", "xy", "greedy", "growth", "memory")
TOL = 1e-6
Criterion = Literal["g", "xy"]
BOTH: tuple[Criterion, ...] = ("g", "xy")
COMPARED = ("K", "d", "method", "CPU", "wall", "solver alone, wall", "runs", "gap reached", "ratio")


def finalist_design(X: np.ndarray, criterion: Criterion, tol: float = TOL) -> Any:
    """Go the whole way from raw features, as cvxpy has to."""
    return optimal_design(Arms(X), criterion, tol=tol)


def compared(X: np.ndarray, name: str, timing: Timing, gap: float, **more: str) -> tuple[str, ...]:
    """One row of a comparison."""
    K, d = X.shape
    return (
        f"{K}",
        f"{d}",
        name,
        seconds(timing.cpu),
        seconds(timing.wall),
        more.get("solver", ""),
        f"{timing.runs}",
        f"{max(gap, 0.0):.1e}",
        more.get("ratio", ""),
    )


# ---- G -----------------------------------------------------------------------------------


def cvxpy_log_det(X: np.ndarray) -> tuple[np.ndarray, float]:
    """G by the primal: maximise log_det Lambda over the simplex, Lambda tied to lifted arms.

    The usual text X.T @ diag(lam) @ X compiles a K x K matrix: seconds at K = 1000, out of
    memory at 10 000.
    """
    cp = referees.cp
    d = X.shape[1]
    a, b = np.triu_indices(d)
    lam = cp.Variable(len(X), nonneg=True)
    Lambda = cp.Variable((d, d), symmetric=True)
    tied = [Lambda[a, b] == (X[:, a] * X[:, b]).T @ lam, cp.sum(lam) == 1.0]
    problem = cp.Problem(cp.Maximize(cp.log_det(Lambda)), tied)
    clarabel(problem)
    return referees.normalised(lam.value), problem.solver_stats.solve_time


def cvxpy_ellipsoid(X: np.ndarray) -> tuple[np.ndarray, float]:
    """G by the dual, the smallest ellipsoid around the arms."""
    problem, weights = referees.g_problem(X)
    clarabel(problem, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return weights(), problem.solver_stats.solve_time


def clarabel(problem: Any, **options: float) -> None:
    """Solve with Clarabel; what it says about accuracy is replaced by our own evaluation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(referees.cp.CLARABEL, **options)


def bench_g(report: Report, quick: bool) -> None:
    """G to 1e-6 against cvxpy, and in units of one pass over the arms."""
    rows = []
    sizes = [(1000, 10, 50.0, 5)] if quick else [(1000, 10, 50.0, 5), (10_000, 20, 300.0, 1)]
    forms = {
        "cvxpy log_det, primal": cvxpy_log_det,
        "cvxpy log_det, dual (ellipsoid)": cvxpy_ellipsoid,
    }
    for K, d, promised, rounds in sizes:
        X = instances.gaussian(K, d, seed=0)
        ratios = []
        for name, form in forms.items():
            console.print(f"G at ({K}, {d}) against {name}...")
            ours, theirs = harness.side_by_side(
                partial(finalist_design, X, "g"), partial(form, X), rounds
            )
            ratios.append(theirs.cpu / ours.cpu)
            lam, solver = theirs.result
            ours_gap = referees.value(X, ours.result.weights, X) / d - 1.0
            gap = referees.value(X, lam, X) / d - 1.0
            rows.append(compared(X, "finalist", ours, ours_gap))
            more = {"solver": seconds(solver), "ratio": f"{ratios[-1]:.0f}"}
            rows.append(compared(X, name, theirs, gap, **more))
        report.at_least(f"G at ({K}, {d}) against the faster cvxpy form", min(ratios), promised)
    note = (
        "Finalist: from raw features to the certified design. cvxpy: building, compiling and "
        "solving; `solver alone` is Clarabel's own time. The gap is max x'Lambda^-1 x / d - 1."
    )
    report.add(Table("G-optimal design to 1e-6 against cvxpy and Clarabel", COMPARED, rows, note))
    bench_scans(report, 20_000 if quick else 100_000, 50)


def one_scan(X: np.ndarray) -> Callable[[], np.ndarray]:
    """Compute x'Mx for all arms from a triangular root of M, in blocks that stay in cache."""
    K, d = X.shape
    block = 1024
    root = np.linalg.inv(np.linalg.cholesky(X.T @ X / K)).T.copy()
    product, out = np.empty((block, d)), np.empty(K)

    def scan() -> np.ndarray:
        for start in range(0, K, block):
            rows = X[start : start + block]
            white = np.matmul(rows, root, out=product[: len(rows)])
            np.einsum("ij,ij->i", white, white, out=out[start : start + block])
        return out

    return scan


def bench_scans(report: Report, K: int, d: int) -> None:
    """Measure the whole solve in full scans of the arms."""
    console.print(f"G at ({K}, {d}) against one scan...")
    X = instances.gaussian(K, d, seed=0)
    arms = Arms(X)
    optimal_design(arms, "g", tol=TOL)
    scans, solves, whole = [], [], []
    for _ in range(3):
        scans += [harness.timed(one_scan(X)) for _ in range(7)]
        solves.append(harness.timed(lambda: optimal_design(arms, "g", tol=TOL)))
        whole.append(harness.timed(lambda: finalist_design(X, "g")))
    scan, solve, raw = map(harness.median, (scans, solves, whole))
    gap = referees.value(X, solve.result.weights, X) / d - 1.0
    rows = [
        (name, seconds(t.cpu), seconds(t.wall), f"{t.runs}", f"{t.cpu / scan.cpu:.1f}", reached)
        for name, t, reached in [
            ("one scan of the arms", scan, ""),
            ("solve, arms prepared", solve, f"{gap:.1e}"),
            ("solve, from raw features", raw, f"{gap:.1e}"),
        ]
    ]
    columns = ("", "CPU", "wall", "runs", "scans", "gap reached")
    note = (
        "A scan computes x'Mx for every arm given a factor of M, in blocks of 1024 arms. Arms are "
        "prepared (coordinates in their span) once, whatever is asked of them afterwards."
    )
    report.add(Table(f"G-optimal design at ({K}, {d}) in scans of the arms", columns, rows, note))
    if K == 100_000:
        report.below(f"G at ({K}, {d}), arms prepared", solve.cpu / scan.cpu, 20, "scans")


# ---- XY ----------------------------------------------------------------------------------


def cvxpy_all_pairs(X: np.ndarray) -> tuple[np.ndarray, float, float]:
    """XY with a matrix inequality for each pair, batched; weights, lower bound, solver time."""
    stated = referees.directions_problem(*referees.uniform_coordinates(X, referees.all_pairs(X)))
    clarabel(stated.problem, canon_backend=referees.cp.SCIPY_CANON_BACKEND)
    return stated.weights(), stated.lower_bound(), stated.problem.solver_stats.solve_time


def cvxpy_one_by_one(X: np.ndarray, form: str) -> tuple[np.ndarray, float, float]:
    """XY as cvxpy code usually reads: a list of constraints, one for each pair."""
    cp = referees.cp
    d = X.shape[1]
    Y = referees.all_pairs(X)
    nu = cp.Variable(len(X), nonneg=True)
    N = X.T @ cp.diag(nu) @ X
    if form == "matrix_frac":
        constraints = [cp.matrix_frac(y, N) <= 1.0 for y in Y]
    elif form == "Schur LMI":
        constraints = [cp.bmat([[N, y[:, None]], [y[None, :], np.ones((1, 1))]]) >> 0 for y in Y]
    else:
        tied = cp.Variable((d, d), symmetric=True)
        constraints = [tied == N, *(tied - np.outer(y, y) >> 0 for y in Y)]
    problem = cp.Problem(cp.Minimize(cp.sum(nu)), constraints)
    clarabel(problem)
    return referees.normalised(nu.value), 0.0, problem.solver_stats.solve_time


def cvxpy_cutting_planes(X: np.ndarray, add: int = 30) -> tuple[np.ndarray, float, float]:
    """XY with cvxpy on the worst pairs so far, found by looking at all of them.

    Thirty new pairs a round are about best at (300, 10); one a round takes ten times longer.
    """
    Z, Y = referees.uniform_coordinates(X, referees.all_pairs(X))
    V = np.sum(Y**2, axis=1)
    active = np.argsort(-V)[:add]
    best, spent = 0.0, 0.0
    while True:
        stated = referees.directions_problem(Z, Y[active])
        clarabel(stated.problem, canon_backend=referees.cp.SCIPY_CANON_BACKEND)
        spent += stated.problem.solver_stats.solve_time
        lam, best = stated.weights(), max(best, stated.lower_bound())
        V = referees.variances(Z, lam, Y)
        worst = np.argsort(-V)[: add + len(active)]
        new = np.setdiff1d(worst[V[worst] > best * (1.0 + 1e-7)], active)[:add]
        if V.max() <= best * (1.0 + TOL) or len(new) == 0:
            return lam, best, spent
        active = np.concatenate([active, new])


def bench_xy(report: Report, quick: bool) -> None:
    """XY over all pairs to 1e-6 against cvxpy with all pairs and with cutting planes."""
    rows: list[tuple[str, ...]] = []
    X = instances.gaussian(50, 5, seed=0)
    xy_rows(rows, X, "cvxpy, all pairs batched in one LMI", cvxpy_all_pairs, 3)
    if not quick:
        for form in ("LMI, N a variable", "Schur LMI", "matrix_frac"):
            call = partial(cvxpy_one_by_one, form=form)
            ratio = xy_rows(rows, X, f"cvxpy, one by one, {form}", call, 1)
            if form == "Schur LMI":
                name = "XY at (50, 5) against cvxpy with a Schur LMI for each pair"
                report.at_least(name, ratio, 1000)
    X = instances.gaussian(*((100, 6) if quick else (300, 10)), seed=0)
    ratio = xy_rows(rows, X, "cvxpy, cutting planes", cvxpy_cutting_planes, 3)
    if not quick:
        report.at_least(f"XY at {X.shape} against cvxpy with cutting planes", ratio, 100)
    note = (
        "Finalist: from raw features to the certified design. cvxpy: building, compiling and "
        "solving; `solver alone` is Clarabel's own time. LMI: minimise 1'nu subject to "
        "N = sum nu_i x_i x_i' >= y y' for each pair. One by one is how such a problem is usually "
        "written down, a constraint for each pair. Batched: N is one variable and all "
        "inequalities are one constraint, the fastest form that we found; the target is not "
        "measured against it. "
        "The gap is the value over all pairs against the best lower bound that we can prove, from "
        "the dual variables of the LMI or by linear programming from either design."
    )
    report.add(
        Table("XY-optimal design over all pairs to 1e-6 against cvxpy", COMPARED, rows, note)
    )


def xy_rows(
    rows: list[tuple[str, ...]],
    X: np.ndarray,
    name: str,
    form: Callable[[np.ndarray], tuple[np.ndarray, float, float]],
    rounds: int,
) -> float:
    """Measure finalist beside one cvxpy form; return the ratio of their CPU times."""
    console.print(f"XY at {X.shape} against {name}...")
    ours, theirs = harness.side_by_side(partial(finalist_design, X, "xy"), partial(form, X), rounds)
    lam, bound, solver = theirs.result
    pairs = referees.all_pairs(X)
    bound = max(bound, *(referees.lower_bound(X, w, pairs) for w in (lam, ours.result.weights)))
    ratio = theirs.cpu / ours.cpu
    rows.append(
        compared(X, "finalist", ours, referees.xy_value(X, ours.result.weights) / bound - 1)
    )
    more = {"solver": seconds(solver), "ratio": f"{ratio:.0f}"}
    rows.append(compared(X, name, theirs, referees.xy_value(X, lam) / bound - 1, **more))
    return ratio


# ---- memory ------------------------------------------------------------------------------


def child(criterion: Criterion, K: int, d: int, tol: float) -> None:
    """Solve one design in this fresh process and print what it took."""
    finalist_design(instances.gaussian(40, 4, seed=0), criterion)
    baseline = harness.restart_peak()
    X = instances.gaussian(K, d, seed=0)
    run = harness.timed(lambda: finalist_design(X, criterion, tol))
    peak = harness.peak_megabytes()
    design = run.result
    if criterion == "g":
        gap = referees.value(X, design.weights, X) / d - 1.0
    else:
        gap = referees.xy_value(X, design.weights) / design.lower_bound - 1.0
    answer = {"baseline": baseline, "peak": peak, "cpu": run.cpu, "wall": run.wall, "gap": gap}
    print(json.dumps(answer))


def bench_memory(report: Report, quick: bool) -> None:
    """Peak memory of large designs, each in a process of its own."""
    cases = [("g", 10**6, 50, TOL, 4096.0), ("xy", 10**4, 20, TOL, 500.0)]
    cases += [("xy", 10**5, 20, 1e-4, 4096.0)]
    if quick:
        cases = [("g", 10**5, 20, TOL, 4096.0), ("xy", 10**4, 20, TOL, 500.0)]
    rows = []
    for criterion, K, d, tol, limit in cases:
        console.print(f"Memory of {criterion} at ({K}, {d})...")
        used = harness.in_child(
            "benchmarks.designs", "--child", criterion, str(K), str(d), str(tol)
        )
        name = f"{criterion.upper()} at ({K}, {d}) to {tol:g}"
        above = used["peak"] - used["baseline"]
        times = seconds(used["cpu"]), seconds(used["wall"])
        reached = f"{max(used['gap'], 0.0):.1e}"
        rows.append((name, f"{used['peak']:.0f} MB", f"{above:.0f} MB", *times, reached))
        report.below(f"{name}: peak memory", used["peak"], limit, "MB")
        if used["gap"] > tol * 1.01:
            report.below(f"{name}: gap", used["gap"], tol, "(relative)")
    columns = ("design", "peak memory", "above imports", "CPU", "wall", "gap reached")
    note = (
        "Peak resident memory of a fresh process that draws the arms and solves, interpreter, "
        "libraries and the arms themselves included; `above imports` leaves out what is used after "
        "importing (cvxpy too, for the check) and solving a tiny design. Gap: the design evaluated "
        "over all arms or all pairs here; for XY against the lower bound that finalist reports, "
        "for G against d."
    )
    report.add(Table("Memory", columns, rows, note))


# ---- greedy ------------------------------------------------------------------------------


class NumpyGreedy:
    """Greedy allocation in vectorised NumPy: every arm against every direction at each step."""

    def __init__(self, X: np.ndarray, Y: np.ndarray, counts: np.ndarray) -> None:
        self.X, self.Y = X, Y
        self.P = np.linalg.inv((X.T * counts) @ X)
        self.after = np.empty((len(Y), len(X)))

    def step(self) -> int:
        """Pull the arm with the smallest maximum afterwards, by the rank-one formula."""
        PX = self.P @ self.X.T
        grow = 1.0 + np.einsum("kd,dk->k", self.X, PX)
        now = np.einsum("md,md->m", self.Y @ self.P, self.Y)
        drop = np.matmul(self.Y, PX / np.sqrt(grow), out=self.after)
        np.multiply(drop, drop, out=drop)
        worst = now >= now.max() * (1.0 - referees.TIE)
        total = drop[worst].sum(axis=0)
        largest = np.subtract(now[:, None], drop, out=self.after).max(axis=0)
        tied = largest <= largest.min() * (1.0 + referees.TIE)
        most = total[tied].max()
        arm = int(np.argmax(tied & (total >= most * (1.0 - referees.TIE))))
        self.P -= np.outer(PX[:, arm], PX[:, arm]) / grow[arm]
        return arm


def spanning_prefix(X: np.ndarray, picks: list[int]) -> int:
    """How many of the first picks it takes to span the space of the arms."""
    rank = np.linalg.matrix_rank(X)
    return next(n for n in range(1, len(picks)) if np.linalg.matrix_rank(X[picks[:n]]) == rank)


def bench_greedy(report: Report, quick: bool) -> None:
    """Count steps per second of the greedy XY rule and compare the picks."""
    cases = [
        ("the paper's instance, d = 5, omega = 0.01", instances.paper(5, 0.01).features, 50, 10**6),
        ("Gaussian arms, K = 100, d = 5", instances.gaussian(100, 5, seed=0), 100, 20_000),
    ]
    rows = []
    for name, X, promised, steps in cases:
        console.print(f"Greedy on {name}...")
        arms, Y = Arms(X), referees.all_pairs(X)
        picks = [int(arm) for arm in islice(greedy(arms, "xy"), 200)]
        start = spanning_prefix(X, picks)
        numpy = NumpyGreedy(X, Y, np.bincount(picks[:start], minlength=len(X)))
        theirs = picks[:start] + [numpy.step() for _ in range(200 - start)]
        same = next((t for t in range(200) if picks[t] != theirs[t]), 200)
        report.targets.append(
            harness.Target(
                f"greedy on {name}: same picks", "first 200", f"first {same}", same == 200
            )
        )
        theirs_steps = 2000 if len(Y) < 100 else (100 if quick else 300)
        run = partial(greedy_allocation, arms, "xy", steps // (10 if quick else 1))
        ours, slow = harness.side_by_side(
            run, lambda n=theirs_steps, g=numpy: [g.step() for _ in range(n)], 3, fast_runs=2
        )
        ours_rate = steps // (10 if quick else 1) / ours.cpu
        slow_rate = theirs_steps / slow.cpu
        ratio = ours_rate / slow_rate
        rows.append((name, f"{len(Y)}", f"{ours_rate:,.0f}", f"{slow_rate:,.0f}", f"{ratio:.0f}"))
        report.at_least(f"greedy on {name}", ratio, promised)
    columns = ("arms", "directions", "finalist, steps/s", "NumPy, steps/s", "ratio")
    note = (
        "NumPy: the rank-one formula for all arms and all directions at once. Both take the "
        "smallest maximum, ties (1e-9 relative) to the largest total reduction over the present "
        "maximisers, then to the lowest index. CPU time."
    )
    report.add(Table("Greedy XY allocation against vectorised NumPy", columns, rows, note))


# ---- growth ------------------------------------------------------------------------------


def bench_growth(report: Report, quick: bool) -> None:
    """Time against K and against d; also as a chart."""
    import pandas as pd

    top = 3 if quick else 5
    K_values = [int(round(10**e, 1 - int(e))) for e in np.arange(2, top + 0.1, 0.5)]
    d_values = [2, 5, 10, 20] if quick else [2, 3, 5, 10, 20, 35, 50]
    points = [("K (d = 10)", K, 10) for K in K_values] + [
        ("d (K = 2000)", 2000, d) for d in d_values
    ]
    data = []
    for panel, K, d in points:
        for criterion in BOTH:
            if criterion == "xy" and K > 40_000:
                continue
            X = instances.gaussian(K, d, seed=0)
            run = harness.repeated(partial(finalist_design, X, criterion), 3)
            size = K if panel.startswith("K") else d
            data.append((panel, criterion.upper(), size, run.cpu, run.result.gap))
            console.print(f"{criterion.upper()} at ({K}, {d}): {seconds(run.cpu)}")
    rows = [(p, c, f"{size}", seconds(t), f"{gap:.1e}") for p, c, size, t, gap in data]
    columns = ("against", "criterion", "size", "CPU", "gap (certificate)")
    note = "The gap is the certificate that finalist reports; it is not evaluated anew here."
    report.add(Table("Growth: Gaussian arms, to 1e-6", columns, rows, note))
    draw_growth(pd.DataFrame(data, columns=["panel", "criterion", "size", "seconds", "gap"]))


def draw_growth(table: Any) -> None:
    """Two log-log panels, saved as SVG and PNG."""
    import altair as alt

    log = alt.Scale(type="log", nice=False, padding=12)
    panels = []
    for panel in table["panel"].unique():
        part = table[table["panel"] == panel]
        sizes = sorted(part["size"].unique())
        lines = alt.Chart(part, width=320, height=260).mark_line(point=True)
        panels.append(
            lines.encode(
                x=alt.X("size:Q", scale=log, title=panel, axis=alt.Axis(values=sizes, grid=False)),
                y=alt.Y("seconds:Q", scale=log, title="CPU seconds, one thread"),
                color=alt.Color(
                    "criterion:N", title="design", scale=alt.Scale(range=list(PALETTE[:2]))
                ),
                shape=alt.Shape("criterion:N", legend=None),
            )
        )
    title = "Time to a certified gap of 1e-6"
    subtitle = ["Gaussian arms, from raw features to the design; both axes are logarithmic."]
    chart = finish(alt.hconcat(*panels).resolve_scale(y="shared"), title, subtitle)
    RESULTS.mkdir(parents=True, exist_ok=True)
    for suffix in ("svg", "png"):
        save(chart, RESULTS / f"growth.{suffix}")


# ---- the program -------------------------------------------------------------------------


def main() -> int:
    """Measure what was asked for and write the report."""
    parser = argparse.ArgumentParser(prog="benchmarks.designs", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, for a first look")
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"some of {','.join(SECTIONS)}")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    harness.single_thread()
    if options.child:
        criterion, K, d, tol = options.child
        child("g" if criterion == "g" else "xy", int(K), int(d), float(tol))
        return 0
    asked = harness.asked_for(parser, options.only, SECTIONS)
    report = Report("Design solvers: measurements")
    benches = {
        "g": bench_g,
        "xy": bench_xy,
        "greedy": bench_greedy,
        "growth": bench_growth,
        "memory": bench_memory,
    }
    wanted = [name for name in SECTIONS if name in asked]
    harness.go_through(report, {n: partial(benches[n], report, options.quick) for n in wanted})
    whole = asked == list(SECTIONS) and not options.quick
    chart = "![Time against K and against d](growth.svg)" if "growth" in asked else ""
    return report.finish(RESULTS / ("designs.md" if whole else "designs-partial.md"), chart)


if __name__ == "__main__":
    sys.exit(main())
