"""Is a model that is right called wrong with probability at most `ALARM`?

    python -m tests.statistical.model_validity [--runs 10000] [--jobs -1] [--only unknown]

Straight truths, half of them with slopes near 0 so that designs wander, are measured with the
gauntlet's adaptive design and its probes, without ever stopping, for a stated number of pulls. A
run counts if the evidence against the model ever reaches its limit. The first rows are proven: then
the exact 99.9 % lower bound must not exceed the level. The next ones have noise that the proof does
not cover; what they show is measured, and no promise. The last are a broken test whose prior has
seen the block that it is used for: it must be caught. Writes benchmarks/results/model-validity.md.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

import finalist as fl
from finalist.inference.bending import ALARM, BendEvidence
from finalist.inference.residuals import Cells
from finalist.inference.statistics import BatchResults
from finalist.lab.store import Store
from finalist.problem.rules import NEWEST
from finalist.simulation.binomial import exact_lower_bound
from finalist.strategies.gauntlet.checked import CheckedEpochs
from tests.statistical.gauntlet_validity import CONFIDENCE as CONFIDENCE
from tests.statistical.gauntlet_validity import counted, report

RESULTS = Path("benchmarks/results/model-validity.md")
BLOCK = 100
SIZES = (4, 8, 12, 24)
Noise = Literal["normal", "signs", "yes/no", "t, 3 df", "exponential", "shifts", "unequal"]


@dataclass(frozen=True)
class Case:
    """One kind of study of straight truths.

    `true` is sigma where it is not the one that is given, 1.
    """

    name: str
    noise: Noise = "normal"
    known: bool = True
    true: float = 1.0
    sizes: tuple[int | None, ...] = SIZES
    pulls: int = 160
    proven: bool = True
    twin: bool = False


CASES = (
    Case("sigma known"),
    Case("sigma known, batches as the study likes", sizes=(None,)),
    Case("sigma known, batches of 1, 2 and 3", sizes=(1, 2, 3), pulls=80),
    Case("sigma unknown", known=False),
    Case("noise of +1 and -1, sub-Gaussian", noise="signs"),
    Case("yes or no", noise="yes/no"),
    Case("batches shifted by .7, allowed for", noise="shifts", sizes=(8, 12, 24)),
    Case("t noise, 3 degrees of freedom", noise="t, 3 df", proven=False),
    Case("exponential noise", noise="exponential", proven=False),
    Case("sigma 1 given, 1.3 true", true=1.3, proven=False),
    Case("sigma .5 and 1.5, unknown", noise="unequal", known=False, proven=False),
)
TWINS = (
    Case("a prior that has seen its block, sigma known", twin=True),
    Case("a prior that has seen its block, sigma unknown", known=False, twin=True),
)
GRIDS = ((5, 5), (4, 4, 3))


class Peeking(BendEvidence):
    """A test whose prior has seen the block that it is used for."""

    def add(self, block: Cells, before: Cells) -> None:
        """Take a block, with itself among what was known before it."""
        both = (np.concatenate(pair) for pair in zip(*map(_parts, (before, block)), strict=True))
        arms, weight, mean = both
        seen = Cells(arms, weight, mean, before.pure + block.pure, before.freedom + block.freedom)
        super().add(block, seen)


def _parts(cells: Cells) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return cells.arms, cells.weight, cells.mean


def alarms(case: Case, index: int) -> bool:
    """Run once; return whether the evidence against the model ever reaches its limit."""
    rng = np.random.default_rng([31, index])
    levels = [np.linspace(-1.0, 1.0, n) for n in GRIDS[index % len(GRIDS)]]
    grid = np.array(list(product(*levels)))
    arms = fl.Arms(grid).with_intercept()
    slopes = rng.normal(size=grid.shape[1]) * (0.05 if index % 4 < 2 else 1.0)
    means = grid @ slopes
    run = fl.Gauntlet().start(_problem(case, arms), seed=index)
    course = run._course
    assert isinstance(course, CheckedEpochs)
    if case.twin:
        course.model.evidence = Peeking(**vars(course.model.evidence))
    size = case.sizes[index % len(case.sizes)]
    while not run.verdict.decided and run.verdict.pulls < case.pulls:
        batch = run.next(size)
        order = batch.order
        if order is None:
            order = rng.permutation(np.repeat(np.arange(len(batch.counts)), batch.counts))
        run.record(batch, BatchResults.of(len(arms), order, _values(case, means[order], rng)))
        if course.model.evidence.alarm:
            return True
    return False


def _problem(case: Case, arms: fl.Arms) -> fl.Problem:
    noise: Any = fl.Gaussian(1.0 if case.known else None)
    if case.noise == "signs":
        noise = fl.SubGaussian(1.0)
    if case.noise == "yes/no":
        noise = fl.Bernoulli()
    shifted = case.noise == "shifts"
    # So small a delta that nothing is decided, and nothing hidden ends it: the test alone is meant.
    return fl.Problem(arms, noise=noise, delta=1e-14, check=1e-9, batch_intercept=shifted)


def _values(case: Case, means: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n = len(means)
    if case.noise == "yes/no":
        share = 0.5 + 0.4 * means / max(float(np.abs(means).max()), 3.0)
        return (rng.random(n) < share).astype(float)
    noise = {
        "normal": lambda: rng.normal(size=n),
        "signs": lambda: rng.choice([-1.0, 1.0], n),
        "t, 3 df": lambda: rng.standard_t(3, n) / np.sqrt(3.0),
        "exponential": lambda: rng.exponential(size=n) - 1.0,
        "shifts": lambda: rng.normal(size=n) + 0.7 * rng.normal(),
        "unequal": lambda: rng.normal(size=n) * rng.choice([0.5, 1.5], n),
    }[case.noise]()
    return np.asarray(means + case.true * noise)


def count(store: Store | None, case: Case, runs: int, jobs: int = 1) -> int:
    """Count the runs with an alarm, reading what is in the store."""

    def settings(first: int) -> dict[str, Any]:
        what = {"first": first, "block": BLOCK, "rules": NEWEST.number}
        return {"kind": "alarms", "finalist": fl.__version__, **vars(case), **what}

    def found(first: int) -> list[bool]:
        return [alarms(case, index) for index in range(first, first + min(BLOCK, runs - first))]

    return counted(store, settings, found, runs, BLOCK, jobs)


def rows(store: Store, runs: int, jobs: int, only: str | None) -> Iterator[tuple[str, bool]]:
    """Yield lines of the table, and whether each is as it should be."""
    for case in (*CASES, *TWINS):
        if only is not None and only not in case.name:
            continue
        number = count(store, case, runs, jobs)
        lower = exact_lower_bound(number, runs, CONFIDENCE)
        kept = lower <= ALARM
        verdict = "yes" if kept else "**no**"
        if case.twin:
            verdict = "**no**" if kept else "no: caught"
        elif not case.proven:
            verdict = "no proof"
        yield (
            f"| {case.name} | {case.pulls} pulls | {runs:,} | {number:,} | {number / runs:.4f} "
            f"| {lower:.4f} | {verdict} |",
            not case.proven or kept != case.twin,
        )


def main() -> int:
    """Measure everything and say whether the promise is kept."""
    header = "| study | watched | runs | alarms | rate | at least (99.9 %) | at most 0.05 |"
    title = "How often a model that is right is called wrong"
    return report(__doc__, 10_000, rows, header, title, RESULTS)


if __name__ == "__main__":
    sys.exit(main())
