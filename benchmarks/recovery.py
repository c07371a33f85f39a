"""What does a wrong past cost the gauntlet? Pulls by rules 1 and 2 beside a past that is right.

    python -m benchmarks.recovery [--runs 200]

A past that is wrong leaves every test right; here it is measured how soon there is a winner all
the same. Rewards are Gaussian with sigma = 1 and delta is 0.05. Prints a table and writes it to
benchmarks/results/recovery.md.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import finalist as fl
from benchmarks.harness import Table, about_this_run
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.problem.rules import rules_of
from finalist.simulation.rewards import DrawnRewards

RESULTS = Path(__file__).with_name("results") / "recovery.md"
#: A run is cut here.
MOST = 4000
LINE = np.column_stack([np.ones(7), np.linspace(-1.0, 1.0, 7)])
PARABOLA = tuple((-3.0 * (LINE[:, 1] - 0.3) ** 2).tolist())
FIVE = (1.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Case:
    """Arms with their means, and what is wrong with the past of a run.

    `history` is how often each arm was measured before, and its means then; `pilot` is added to
    the rewards of the pilot; the means may be off the linear model by `off`. Each batch is shifted
    by a constant of its own, with the standard deviation `shift`.
    """

    name: str
    features: np.ndarray
    means: tuple[float, ...]
    history: tuple[int, tuple[float, ...]] | None = None
    pilot: tuple[float, ...] | None = None
    off: float = 0.0
    shift: float = 0.0

    def pulls(self, rules: int, seed: int) -> tuple[int, bool, bool]:
        """Run once; return the pulls, whether there is a winner, and whether it is wrong."""
        problem = as_problem(
            fl.Arms(self.features),
            sigma=1.0,
            misspecification=self.off,
            batch_intercept=self.shift > 0.0,
            rules=rules_of(rules),
        )
        run, rng = fl.Gauntlet().start(problem, seed=seed), np.random.default_rng(seed)
        means = np.array(self.means)
        lab = DrawnRewards(means, 1.0, "gaussian", rng)
        first = DrawnRewards(means + np.array(self.pilot or 0.0), 1.0, "gaussian", rng)
        if self.history is not None:
            n, before = self.history
            counts = np.full(len(means), n)
            total = counts * np.array(before) + np.sqrt(n) * rng.standard_normal(len(means))
            run.inform(Statistics.of_batch(counts, total, np.full(len(means), n - 1.0)))
        while not run.verdict.decided and run.verdict.pulls < MOST:
            batch = run.next()
            source = first if batch.note["kind"] == "pilot" else lab
            rewards = source.batch(batch.counts)
            if self.shift > 0.0:
                rewards.mean[rewards.count > 0] += self.shift * rng.standard_normal()
            run.record(batch, rewards)
        winner = run.verdict.winner
        return run.verdict.pulls, winner is not None, winner not in (None, int(means.argmax()))


TWO, ARMS = np.eye(2), np.eye(5)
CASES = (
    Case("two arms, gap 1", TWO, (1.0, 0.0)),
    Case("... a right history of 100", TWO, (1.0, 0.0), (100, (1.0, 0.0))),
    Case("... a history of 100 that says -2", TWO, (1.0, 0.0), (100, (0.0, 2.0))),
    Case("... a history of 1,000 that says -2", TWO, (1.0, 0.0), (1000, (0.0, 2.0))),
    Case("... a history of 1,000 that says 0", TWO, (1.0, 0.0), (1000, (0.0, 0.0))),
    Case("five arms, gap 1", ARMS, FIVE),
    Case("... a right history of 100", ARMS, FIVE, (100, FIVE)),
    Case("... a history of 100, best arm last", ARMS, FIVE, (100, (0.0, 2.0, 0.0, 1.0, 0.0))),
    Case("... a history of 1,000, best arm last", ARMS, FIVE, (1000, (0.0, 2.0, 0.0, 1.0, 0.0))),
    Case("... a pilot shifted by -4 and 4", ARMS, FIVE, pilot=(-4.0, 4.0, 0.0, 0.0, 0.0)),
    Case("... a pilot shifted by -40 and 40", ARMS, FIVE, pilot=(-40.0, 40.0, 0.0, 0.0, 0.0)),
    Case("parabola, 7 arms without a model", np.eye(7), PARABOLA),
    Case("... a line that may be off by 1.7", LINE, PARABOLA, off=1.7),
    Case("... shifts of 2, without a model", np.eye(7), PARABOLA, shift=2.0),
    Case("... shifts of 2, and the line", LINE, PARABOLA, off=1.7, shift=2.0),
)


def row(case: Case, runs: int) -> list[str]:
    """Return the cells of a line: for each rules mean pulls, and what was cut or wrong."""
    cells = [case.name]
    for rules in (1, 2):
        found = [case.pulls(rules, seed) for seed in range(runs)]
        pulls = float(np.mean([n for n, _, _ in found]))
        open_ = sum(not decided for _, decided, _ in found)
        cells.append(f"{'at least ' if open_ else ''}{pulls:,.0f}")
        cells.append(f"{open_} / {sum(wrong for _, _, wrong in found)}")
    return cells


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    rows: list[Any] = [row(case, runs) for case in CASES]
    note = (
        f"Mean pulls of {runs} runs, cut at {MOST:,}; in the other columns, runs without a winner "
        "at the cut / wrong winners."
    )
    columns = ("past", "rules 1", "open / wrong", "rules 2", "open / wrong")
    table = Table("Sigma 1, delta 0.05", columns, rows, note)
    table.show()
    parts = ["# Recovery from a wrong past", "", about_this_run(), table.markdown()]
    RESULTS.write_text("\n".join(parts).rstrip() + "\n")


if __name__ == "__main__":
    main()
