"""How wide intervals are at the end of a run, beside those of 0.1.0 on the same runs.

    python -m benchmarks.intervals [--runs 10]

Runs of the gauntlet on five fresh instances a family, theta scaled to a lower bound on the mean
pulls. Sigma is 1 and delta 0.05; intervals have 95 %, for all times and all others at once. The
constants of intervals were chosen on other instances. Prints a table and writes it to
benchmarks/results/intervals.md.
"""

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import finalist as fl
from benchmarks.harness import Table, about_this_run
from finalist.inference.information import information
from finalist.inference.intervals import pooled_widths, start_of
from finalist.inference.leads import leads, mean_widths
from finalist.inference.mixtures import Batches
from finalist.inference.pooling import BatchSums, Pooled
from finalist.problem import Problem, as_problem
from finalist.simulation import instances
from finalist.simulation.rewards import DrawnRewards

RESULTS = Path(__file__).parent / "results" / "intervals.md"
Q, SEEDS, BOUNDS = 0.05, range(301, 306), (5, 20, 60, 200, 1000)
FAMILIES: dict[str, Callable[[int], np.ndarray]] = {
    "sphere, 20 x 5": lambda seed: instances.unit_sphere(20, 5, seed),
    "Gaussian, 40 x 8": lambda seed: instances.gaussian(40, 8, seed),
    "factorial, 3 x 3 x 4": lambda _: instances.one_hot_factorial((3, 3, 4)),
    "quadratic, 5 x 5": lambda _: instances.quadratic_grid(2, 5),
    "6 arms, no features": lambda _: np.eye(6),
    "12 arms, no features": lambda _: np.eye(12),
    "30 arms, no features": lambda _: np.eye(30),
}


class Widths(NamedTuple):
    """Mean half-widths at the end of a run."""

    pulls: float
    old: float
    ellipsoid: float
    lead: float
    old_mean: float
    mean: float


def old_radius(problem: Problem, batches: list[BatchSums], r: int) -> float:
    """Return the radius of 0.1.0, which starts from the first batches that span (its pilot).

    sqrt(r + 2 sqrt(r x) + 2 x) + sqrt(log(det A / det A_0) + 2 x), x = log(2/q): half of q for the
    pilot (Hsu, Kakade and Zhang 2012), half for what follows; it multiplies ||y||_{A^-1}.
    """
    Z, counts, x = problem.arms.coordinates, np.zeros(len(problem.arms)), math.log(2 / Q)
    first, info = None, information(Z, counts)
    for cells in batches:
        counts[cells.arms] += cells.count
        info = information(Z, counts)
        if first is None and info.rank == r:
            first = info.log_det
    assert first is not None
    pilot = math.sqrt(r + 2 * math.sqrt(r * x) + 2 * x)
    return pilot + math.sqrt(max(info.log_det - first, 0.0) + 2 * x)


def widths(arms: fl.Arms, theta: np.ndarray, seed: int) -> Widths:
    """Run once to the end."""
    problem, means = as_problem(arms, sigma=1.0, delta=0.05), arms.means(theta)
    run = fl.Gauntlet().start(problem, seed=seed)
    lab = DrawnRewards(means, 1.0, "gaussian", np.random.default_rng(seed))
    pooled, batches = Pooled(problem), list[BatchSums]()
    while not run.verdict.decided:
        batch = run.next()
        rewards = lab.batch(batch.counts)
        run.record(batch, rewards)
        pooled.add(rewards)
        batches.append(BatchSums.of(rewards))
    winner = run.verdict.winner
    assert winner is not None
    fit, start, bets = pooled.estimate(), start_of(problem), Batches(problem, batches)
    Z = arms.coordinates
    Y, old = np.delete(Z[winner] - Z, winner, axis=0), old_radius(problem, batches, arms.rank)
    found = leads(fit, winner, start, 1 - Q, 1.0, bets, sign=1, won=True)
    return Widths(
        fit.statistics.pulls,
        float(old * fit.widths(Y).mean()),
        float(pooled_widths(fit, Y, start, 1 - Q, 1.0).mean()),
        float(np.nanmean(found.high - found.low) / 2),
        float(old * fit.widths(Z).mean()),
        float(mean_widths(fit, start, 1 - Q, 1.0, bets).mean()),
    )


def row(family: str, bound: int, runs: int) -> tuple[str, ...]:
    """Return the cells of a line."""
    found = []
    for seed in SEEDS:
        arms = fl.Arms(FAMILIES[family](seed))
        theta = np.asarray(np.random.default_rng(seed).standard_normal(arms.features.shape[1]))
        pulls = fl.complexity(arms, theta, delta=0.05, sigma=1.0).lower_bound
        scaled = theta * math.sqrt(pulls / bound)
        found += [widths(arms, scaled, 1000 * seed + i) for i in range(runs)]
    pulls, *rest = np.array(found).T
    old, ellipsoid, lead, old_mean, mean = rest
    ratios = [np.log(a / b) for a, b in ((old, lead), (ellipsoid, lead), (old_mean, mean))]
    error = ratios[0].std(ddof=1) / math.sqrt(len(found))
    first, second, third = (math.exp(ratio.mean()) for ratio in ratios)
    return (
        family,
        str(bound),
        f"{pulls.mean():,.0f}",
        *(f"{value.mean():.3g}" for value in (old, ellipsoid, lead)),
        f"{first:.2f} +- {first * error:.2f}",
        f"{second:.2f}",
        *(f"{value.mean():.3g}" for value in (old_mean, mean)),
        f"{third:.2f}",
    )


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    rows = [row(family, bound, runs) for family in FAMILIES for bound in BOUNDS]
    note = (
        f"Means of {len(SEEDS) * runs} runs a line: pulls, then half-widths of the winner's lead "
        "over each other arm by 0.1.0, by the ellipsoid alone and as they are, and how many times "
        "narrower that is (geometric mean); then the same for the means of all arms."
    )
    columns = (
        *("instance", "bound", "pulls", "lead, 0.1.0", "ellipsoid", "now"),
        *("0.1.0 / now", "ellipsoid / now", "mean, 0.1.0", "now", "0.1.0 / now"),
    )
    table = Table("Intervals at the end of a run", columns, rows, note)
    table.show()
    parts = ["# How wide intervals are", "", about_this_run(), table.markdown()]
    RESULTS.write_text("\n".join(parts).rstrip() + "\n")


if __name__ == "__main__":
    main()
