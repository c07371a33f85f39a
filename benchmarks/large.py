"""How large a set of arms may be: seconds and memory of designs, decisions and studies.

    python -m benchmarks.large [--quick]

Arms lie on the unit sphere in 20 dimensions. Every measurement has a process of its own, whose
largest memory, all of it, is reported. Times are in the clock of the wall, and beside them in
passes: a pass computes x'A^-1 x of all arms by NumPy, in blocks, which nothing that looks at every
arm can do without. Writes benchmarks/results/large.md and docs/images/large.png. Exit code 1 when a
target is missed.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np

import finalist as fl
from benchmarks.harness import Report, Table, console, in_child, median, peak_megabytes, timed
from finalist.charts.theme import PALETTE, data, finish, save
from finalist.inference.information import SCAN_ROWS
from finalist.problem import as_problem
from finalist.simulation.instances import unit_sphere
from finalist.simulation.rewards import DrawnRewards

RESULTS = Path(__file__).parent / "results" / "large.md"
PICTURE = Path("docs/images/large.png")
D, SIGMA, EPSILON = 20, 0.1, 0.05
SIZES = (1_000, 10_000, 100_000, 1_000_000)
#: Seconds and gigabytes promised of a study with a million arms.
MAX_SECONDS, MAX_GIGABYTES = 60.0, 4.0


def pass_seconds(X: np.ndarray) -> float:
    """Return the time of one NumPy pass over all arms."""
    R = np.triu(np.ones((X.shape[1], X.shape[1])))

    def scan() -> float:
        most = 0.0
        for start in range(0, len(X), SCAN_ROWS):
            image = X[start : start + SCAN_ROWS] @ R.T
            most = max(most, float(np.einsum("ij,ij->i", image, image).max()))
        return most

    scan()
    return median([timed(scan) for _ in range(5)]).wall


def lap(times: dict[str, float], what: str, begin: float) -> float:
    """Keep the seconds since `begin`; return the present time."""
    now = time.perf_counter()
    times[what] = now - begin
    return now


# ---- what is measured, each in a process of its own ----------------------------------------


def reading(K: int) -> dict[str, Any]:
    """Read arms from a NumPy file and from a Parquet file."""
    times: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        in_child("benchmarks.large", "--part", "writing", "--arms", str(K), "--folder", folder)
        now = time.perf_counter()
        arms = fl.Arms.from_npy(f"{folder}/arms.npy")
        now = lap(times, "read .npy", now)
        del arms
        now = time.perf_counter()
        fl.Arms.from_parquet(f"{folder}/arms.parquet")
        lap(times, "read .parquet", now)
    return times


def writing(K: int, folder: str) -> dict[str, Any]:
    """Write the arms to files."""
    X = unit_sphere(K, D, 0)
    np.save(f"{folder}/arms.npy", X)
    fl.Arms(X).to_parquet(f"{folder}/arms.parquet")
    return {}


def design(K: int, criterion: Literal["g", "xy"]) -> dict[str, Any]:
    """Solve a design to the default tolerance."""
    X = unit_sphere(K, D, 0)
    arms = fl.Arms(X)
    times: dict[str, Any] = {"pass": pass_seconds(X)}
    now = time.perf_counter()
    found = fl.optimal_design(arms, criterion)
    lap(times, f"{criterion} design", now)
    return {**times, "gap": found.gap}


def deciding(K: int) -> dict[str, Any]:
    """Run the gauntlet to its end; return each decision and how many arms were left."""
    X = unit_sphere(K, D, 0)
    problem = as_problem(fl.Arms(X), sigma=SIGMA, epsilon=EPSILON)
    theta = np.random.default_rng(1).standard_normal(D)
    means = problem.arms.means(theta / np.linalg.norm(theta))
    rewards = DrawnRewards(means, SIGMA, "gaussian", np.random.default_rng(2))
    warm_up()
    run, rows = fl.Gauntlet().start(problem), []
    while not run.verdict.decided:
        begin = time.perf_counter()
        batch = run.next()
        chosen = time.perf_counter()
        given = rewards.batch(batch.counts)
        told = time.perf_counter()
        run.record(batch, given)
        now, left = time.perf_counter(), len(run.verdict.survivors)
        rows.append((run.verdict.pulls, left, chosen - begin, now - told))
    lost = float(means.max() - means[run.verdict.winner])
    return {"pass": pass_seconds(X), "rows": rows, "lost": lost}


def study(K: int) -> dict[str, Any]:
    """Create a study on disk, ask and tell twice, close it, open it again and ask."""
    X, times = unit_sphere(K, D, 0), dict[str, float]()
    rng, arms = np.random.default_rng(2), fl.Arms(X)
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        where, now = f"{folder}/large.db", time.perf_counter()
        kept = fl.Study.create(where, "large", arms, sigma=1.0, seed=0)
        now = lap(times, "create", now)
        for name in ("the pilot", "the first test"):
            now = time.perf_counter()
            batch = kept.ask()
            now = lap(times, f"ask for {name}", now)
            numbers = [int(pull.arm[1:]) - 1 for pull in batch]
            noisy = X[numbers] @ X[0] + rng.standard_normal(len(numbers))
            now = time.perf_counter()
            kept.tell({p.pull_id: float(r) for p, r in zip(batch, noisy, strict=True)})
            now = lap(times, f"tell {name}", now)
        kept.close()
        now = time.perf_counter()
        kept = fl.Study.open(where, "large")
        kept.ask()
        lap(times, "open again and ask", now)
        size = Path(where).stat().st_size / 1e6
        kept.close()
    return {**times, "file": size}


def warm_up() -> None:
    """Compile everything."""
    fl.simulate(fl.Arms.unstructured(3), [1.0, 0.5, 0.0], sigma=0.1, epsilon=0.1, runs=1)


def child(words: argparse.Namespace) -> None:
    """Measure one thing and print it as JSON."""
    parts: dict[str, Any] = {
        "reading": lambda: reading(words.arms),
        "writing": lambda: writing(words.arms, words.folder),
        "g": lambda: design(words.arms, "g"),
        "xy": lambda: design(words.arms, "xy"),
        "deciding": lambda: deciding(words.arms),
        "study": lambda: study(words.arms),
    }
    found = parts[words.part]()
    print(json.dumps({**found, "gigabytes": peak_megabytes() / 1024}))


# ---- the report ----------------------------------------------------------------------------


def measure(part: str, K: int) -> dict[str, Any]:
    """Measure one thing in a new process."""
    found = in_child("benchmarks.large", "--part", part, "--arms", str(K))
    console.print(f"{part}, {K:,} arms: {found['gigabytes']:.2f} GB")
    return found


def report_designs(report: Report, sizes: tuple[int, ...]) -> None:
    """Measure designs."""
    rows = []
    for criterion, most in (("g", sizes[-1]), ("xy", sizes[-2])):
        for K in [K for K in sizes if 1_000 < K <= most]:
            found = measure(criterion, K)
            took = found[f"{criterion} design"]
            rows.append(
                (
                    criterion.upper(),
                    f"{K:,}",
                    f"{took:.3g} s",
                    f"{took / found['pass']:,.0f}",
                    f"{found['gap']:.1e}",
                    f"{found['gigabytes']:.2f} GB",
                )
            )
    columns = ("criterion", "arms", "time", "passes", "gap", "memory")
    note = "XY is over all pairs of arms. All arms have the same length, the hardest case for it."
    report.add(Table("Designs", columns, rows, note))


def report_runs(report: Report, sizes: tuple[int, ...]) -> None:
    """Measure whole runs of the gauntlet."""
    rows, points = [], []
    for K in sizes:
        found = measure("deciding", K)
        decisions, unit = found["rows"], found["pass"]
        points += [{"K": f"{K:,} arms", "pulls": 0, "left": K}]
        points += [{"K": f"{K:,} arms", "pulls": p, "left": n} for p, n, _, _ in decisions]
        ask, tell = max(row[2] for row in decisions), max(row[3] for row in decisions)
        whole = sum(row[2] + row[3] for row in decisions)
        rows.append(
            (
                f"{K:,}",
                f"{decisions[-1][0]:,}",
                str(len(decisions)),
                f"{ask:.2g} s ({ask / unit:,.0f})",
                f"{tell:.2g} s ({tell / unit:,.0f})",
                f"{whole:.3g} s",
                f"{found['gigabytes']:.2f} GB",
                f"{found['lost']:.3f}",
            )
        )
    columns = (
        "arms",
        "pulls",
        "batches",
        "longest ask (passes)",
        "longest tell (passes)",
        "all",
        "memory",
        "behind the best",
    )
    note = (
        f"One run each to its end, sigma = {SIGMA}, epsilon = {EPSILON}, a parameter of length 1, "
        "delta = 0.05."
    )
    report.add(Table("The gauntlet", columns, rows, note))
    draw(points, sizes)


def report_studies(report: Report, sizes: tuple[int, ...]) -> None:
    """Measure studies on disk and files of arms."""
    rows: list[tuple[str, ...]] = []
    for K in sizes[-2:]:
        files, found = measure("reading", K), measure("study", K)
        memory, size = found.pop("gigabytes"), found.pop("file")
        peak = files.pop("gigabytes")
        rows += [(f"{K:,}", what, f"{took:.3g} s") for what, took in (files | found).items()]
        rows += [(f"{K:,}", "memory for reading files", f"{peak:.2f} GB")]
        rows += [(f"{K:,}", "memory of the study", f"{memory:.2f} GB")]
        rows += [(f"{K:,}", "database file", f"{size:,.0f} MB")]
        if SIZES[-1] == K:
            asked = max(took for what, took in found.items() if what.startswith("ask"))
            report.below("ask in a study with a million arms", asked, MAX_SECONDS, "s")
            report.below("memory of that study", memory, MAX_GIGABYTES, "GB")
    note = (
        "SQLite. A tell that completes a batch tests every arm, on all cores. A study that is "
        "opened again tests its batches anew, and solves no design."
    )
    report.add(Table("Studies and files", ("arms", "what", "measured"), rows, note))


def draw(points: list[dict[str, Any]], sizes: tuple[int, ...]) -> None:
    """Draw how many arms are left after so many pulls."""
    import altair as alt

    names = [f"{K:,} arms" for K in reversed(sizes)]
    log = alt.Scale(type="log", nice=False, padding=10)
    powers = [10**k for k in range(7)]
    chart = (
        alt.Chart(data(points), width=520, height=300)
        .mark_line(interpolate="step-after", strokeWidth=2, point={"size": 30})
        .encode(
            x=alt.X("pulls:Q", title="Pulls", axis=alt.Axis(grid=False)),
            y=alt.Y(
                "left:Q",
                title="Arms that are left",
                scale=log,
                axis=alt.Axis(values=powers, format=","),
            ),
            color=alt.Color(
                "K:N", title=None, scale=alt.Scale(domain=names, range=list(PALETTE[: len(names)]))
            ),
        )
    )
    words = [
        f"{D} features, sigma = {SIGMA}, delta = 0.05; one run each. With epsilon = {EPSILON} a",
        "winner is named when no arm that is left can be better by more.",
    ]
    save(finish(chart, "The best of a million arms, in a few hundred pulls", words), PICTURE)


def main() -> int:
    """Measure everything."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--quick", action="store_true", help="up to 100,000 arms")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--arms", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.part is not None:
        child(words)
        return 0
    sizes = SIZES[:-1] if words.quick else SIZES
    report = Report("Very large sets of arms")
    report_runs(report, sizes)
    report_studies(report, sizes)
    report_designs(report, sizes)
    return report.finish(RESULTS)


if __name__ == "__main__":
    sys.exit(main())
