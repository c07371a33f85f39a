"""Is a choice right as often as its study says? Over 21 kinds of truths, at the end and before it.

    python -m benchmarks.budgets.calibration [--runs 200] [--jobs 1] [--set measured] [--store FILE]

The gauntlet is run with a budget and delta = 0.05, without the check of the model; arms and means
are drawn anew and permuted in every run. Results are kept in a store; a stopped run goes on where
it was. Half way and at the end the chances are noted that a study would show. Runs
that end certain show none at the end. The prior was chosen on the kinds of `--set tuned`; the table
is of others. Writes benchmarks/results/calibration.md. The exit code is 1 when a target is missed.
"""

import argparse
import itertools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import joblib  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import ArrayLike

import finalist as fl
from benchmarks.budgets.kinds import MEASURED, TUNED, KindOfTruth
from benchmarks.gauntlet.cells import CodeStore
from benchmarks.harness import Report, Table, Target
from finalist.inference.draws import error_estimate
from finalist.inference.intervals import leaders
from finalist.inference.pooling import Pooled
from finalist.lab.store import Store
from finalist.problem.rules import NEWEST
from finalist.simulation.binomial import exact_interval
from finalist.simulation.rewards import DrawnRewards
from finalist.simulation.task import drawn
from finalist.study.outlook import foresee

RESULTS = Path(__file__).parents[1] / "results" / "calibration.md"
SETS = {"measured": MEASURED, "tuned": TUNED}
EDGES = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
#: Where choices with a chance of 80 to 90 % should be right.
LOW, HIGH = 0.8, 0.9
#: Runs stored together.
BLOCK = 25


class Said(NamedTuple):
    """What a run showed, and what was so.

    Attributes
    ----------
    kind : str
    half, ahead : float
        Half way: the chance that the choice is right then, and at the end; NaN if none was shown.
    half_right : bool
    end : float
        At the end; NaN if it was certain.
    right : bool
    """

    kind: str
    half: float
    ahead: float
    half_right: bool
    end: float
    right: bool


def one(name: str, kind: KindOfTruth, budget: int, index: int) -> Said:
    """Run a study with a budget to its end."""
    rng = np.random.default_rng([index, budget, *name.encode()])
    X, theta = kind.draw(rng)
    arms = fl.Arms(X[rng.permutation(len(X))])
    noise: Any = fl.Bernoulli() if kind.binary else fl.Gaussian(1.0)
    problem = fl.Problem(arms, noise=noise, budget=budget)
    means = arms.means(theta)
    run = fl.Gauntlet().start(problem, seed=index)
    sigma = 0.5 if kind.binary else 1.0
    rewards = DrawnRewards(means, sigma, noise.rewards, rng)
    pooled, half, ahead, half_right = Pooled(problem), np.nan, np.nan, False
    while not run.verdict.decided and pooled.pulls < budget:
        batch = run.next()
        if batch.size > budget - pooled.pulls:
            batch = run.next(budget - pooled.pulls)
        values = drawn(rewards, batch)
        run.record(batch, values)
        pooled.add(values)
        if np.isnan(half) and budget / 2 <= pooled.pulls < budget and not run.verdict.decided:
            fit, alive = pooled.estimate(), run.verdict.survivors
            left = budget - pooled.pulls
            arm = leaders(fit, 1, alive, 1)[0]
            found = foresee(problem, fit, (arm,), alive, run.rest(fit, left))
            if found is not None:
                half, later = found.chances(0.0)
                ahead, half_right = later or np.nan, bool(means[arm] >= means.max())
    if run.verdict.winner is not None:
        arm, end = run.verdict.winner, np.nan
    else:
        fit = pooled.estimate()
        arm = leaders(fit, 1, run.verdict.survivors, 1)[0]
        error = error_estimate(fit, arm, sign=1, sigma=problem.scale)
        end = np.nan if error is None else 1.0 - error
    return Said(name, half, ahead, half_right, end, bool(means[arm] >= means.max()))


def block(
    name: str, kind: KindOfTruth, budget: int, runs: range, jobs: int, store: Store
) -> dict[str, np.ndarray]:
    """Run some studies, or read what they showed before."""
    settings = {"kind": "calibration", "truth": name, "budget": budget, "rules": NEWEST.number}
    settings |= {"strategy": repr(fl.Gauntlet()), "first": runs.start, "runs": len(runs)}
    kept = store.get(settings)
    if kept is None:
        tasks = [joblib.delayed(one)(name, kind, budget, index) for index in runs]
        found = joblib.Parallel(n_jobs=jobs)(tasks)
        words = Said._fields[1:]
        arrays: dict[str, ArrayLike] = {w: np.array([getattr(s, w) for s in found]) for w in words}
        store.put(settings, arrays)
        kept = {word: np.asarray(array) for word, array in arrays.items()}
    return {"kind": np.full(len(runs), name), **kept}


def measured(kinds: Mapping[str, KindOfTruth], words: argparse.Namespace) -> dict[str, np.ndarray]:
    """Return what all studies showed, by what it is."""
    parts = []
    with CodeStore(words.store) as store:
        for (name, kind), which in itertools.product(kinds.items(), (0, 1)):
            for first in range(0, words.runs, BLOCK):
                runs = range(first, min(first + BLOCK, words.runs))
                parts.append(block(name, kind, kind.budgets[which], runs, words.jobs, store))
    return {word: np.concatenate([part[word] for part in parts]) for word in Said._fields}


def table(title: str, said: np.ndarray, right: np.ndarray, note: str) -> Table:
    """Return shares that are right, by what was said."""
    rows = []
    for low, high in itertools.pairwise(EDGES):
        some = (said >= low) & ((said < high) | (high == 1.0))
        if some.any():
            ends = exact_interval(int(right[some].sum()), int(some.sum()))
            rows.append(
                (
                    f"{100 * low:.0f} to {100 * high:.0f} %",
                    f"{int(some.sum()):,}",
                    f"{100 * said[some].mean():.1f} %",
                    f"{100 * right[some].mean():.1f} % "
                    f"({100 * ends[0]:.1f} to {100 * ends[1]:.1f})",
                )
            )
    return Table(
        title, ("said", "studies", "mean of what was said", "right (95 % bounds)"), rows, note
    )


def main() -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--set", choices=SETS, default="measured")
    parser.add_argument("--store", type=Path, default=Path("budgets.sqlite"))
    words = parser.parse_args()
    kinds = SETS[words.set]
    columns = measured(kinds, words)
    end, half, ahead = (columns[word] for word in ("end", "half", "ahead"))
    right, half_right = columns["right"], columns["half_right"]
    known, early = ~np.isnan(end), ~np.isnan(half)
    report = Report("Is a choice right as often as its study says?")
    note = f"{len(kinds)} kinds of truths at two budgets each, {words.runs:,} runs of each."
    sure = np.isnan(end)
    certain = f" {int(sure.sum()):,} of {len(end):,} runs were certain and show no chance: "
    certain += f"{int((sure & ~right).sum())} of them were wrong (delta = 0.05)."
    report.add(table("At the end of the budget", end[known], right[known], note + certain))
    report.add(table("Half way: now", half[early], half_right[early], note))
    more = " What was said half way, and what the choice at the end was."
    report.add(table("Half way: at the end", ahead[early], right[early], note + more))
    rows = []
    for name in kinds:
        some = known & (columns["kind"] == name)
        before = early & (columns["kind"] == name)
        rows.append(
            (
                name,
                f"{int(some.sum())}",
                f"{100 * end[some].mean():.0f} %",
                f"{100 * right[some].mean():.0f} %",
                f"{100 * ahead[before].mean():.0f} %",
                f"{100 * right[before].mean():.0f} %",
            )
        )
    heads = ("kind", "not certain", "said", "right", "said half way of the end", "right")
    report.add(Table("By kind", heads, rows, "No prior is right for each kind."))
    for what, said, was in (
        ("at the end", end[known], right[known]),
        ("half way", half[early], half_right[early]),
        ("half way, of the end", ahead[early], right[early]),
    ):
        some = (said >= LOW) & (said < HIGH)
        share = float(was[some].mean())
        report.targets.append(
            Target(
                f"right where 80 to 90 % is said, {what}",
                "80 to 90 %",
                f"{100 * share:.1f} % of {int(some.sum())}",
                LOW <= share <= HIGH,
            )
        )
    return report.finish(
        RESULTS if words.set == "measured" else RESULTS.with_stem("calibration-tuned")
    )


if __name__ == "__main__":
    sys.exit(main())
