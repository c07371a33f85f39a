"""Is a best arm rejected by the gauntlet with probability at most delta?

    python -m tests.statistical.gauntlet_validity [--runs 10000] [--jobs -1] [--only tie]

A given best arm may be rejected with probability delta, at any time, also where arms are tied
for ever; so tied runs are watched for a stated number of pulls, others to their end. Prints a
table and writes it to benchmarks/results/gauntlet-validity.md; fails when the exact 99.9 % lower
bound of a rejection probability exceeds delta. Results are kept in a store, block by block. The
last lines are strategies that break a rule of the proof (`gauntlet_twins`): they have to be caught,
and the same strategies without that break must not be.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

import finalist as fl
from finalist.inference.statistics import BatchResults, Statistics
from finalist.lab.store import Store
from finalist.problem.rules import NEWEST
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.rewards import DrawnRewards
from finalist.simulation.task import drawn
from finalist.strategies import Batch, Gauntlet
from finalist.strategies.gauntlet import GauntletRun
from tests.statistical.gauntlet_cases import BENT as BENT
from tests.statistical.gauntlet_cases import CASES, TWINS, Case
from tests.statistical.gauntlet_cases import TIE as TIE
from tests.statistical.gauntlet_twins import Twin

CONFIDENCE = 0.999
RESULTS = Path("benchmarks/results/gauntlet-validity.md")
BLOCK = 250


def is_rejected(case: Case, strategy: Gauntlet | Twin, index: int) -> bool:
    """Run once; return whether the watched best arm is rejected, or the wrong arm wins."""
    problem = case.problem()
    rng = np.random.default_rng(np.random.SeedSequence(20141208, spawn_key=(index,)))
    true = np.array(case.true) if isinstance(case.true, tuple) else case.true
    rewards = DrawnRewards(case.means, true, case.rewards, rng)
    run, sizes = strategy.start(problem, seed=index), cycle(case.sizes)
    if case.history is not None:
        counts = np.full(len(case.means), 1000)
        run.inform(Statistics.of_batch(counts, counts * np.array(case.history), 999.0 * counts**0))
    while not is_wrong(case, run):
        if run.verdict.decided or run.verdict.pulls >= (case.pulls or math.inf):
            return False
        batch = run.next(next(sizes))
        source = rewards
        if case.pilot is not None and batch.note["kind"] == "pilot":
            source = replace(rewards, means=case.means + np.array(case.pilot))
        if case.lost > 0.0:
            batch, results = arrived(batch, source, case.lost, rng)
        else:
            results = drawn(source, batch)
        run.record(batch, results)
        if case.budgets is not None and not run.verdict.decided and not run.waits(None):
            near = run.evidence().share[case.best] > 0.5
            run.rebudget(case.budgets[0] if near else case.budgets[1])
    return True


def is_wrong(case: Case, run: GauntletRun) -> bool:
    """Return whether what should happen with probability delta at most has happened."""
    found, means = run.verdict, case.means
    if run._problem.epsilon > 0.0:
        return found.decided and means[found.winner] < means.max() - run._problem.epsilon
    return case.best not in found.survivors


def arrived(
    batch: Batch, rewards: DrawnRewards, lost: float, rng: np.random.Generator
) -> tuple[Batch, BatchResults]:
    """Return a batch with the results that are not lost."""
    K, order = len(batch.counts), batch.order
    arms = np.repeat(np.arange(K), batch.counts) if order is None else order
    some = rewards.sequence(arms[rng.random(batch.size) >= lost])
    return Batch(some.count.copy(), batch.note), some


def block(case: Case, strategy: Gauntlet | Twin, first: int, runs: int) -> list[bool]:
    """Run several times."""
    return [is_rejected(case, strategy, index) for index in range(first, first + runs)]


def rejections(
    store: Store | None, case: Case, strategy: Gauntlet | Twin, runs: int, jobs: int = 1
) -> int:
    """Count the runs in which the best arm is rejected, reading what is in the store."""

    def settings(first: int) -> dict[str, Any]:
        words = replace(case, features=case.features.tolist())
        what: dict[str, Any] = {"strategy": repr(strategy), "first": first, "block": BLOCK}
        what["rules"] = NEWEST.number
        asked = {name: value for name, value in vars(words).items() if name != "budgets" or value}
        return {"kind": "rejections", "finalist": fl.__version__, **asked, **what}

    def rejected(first: int) -> list[bool]:
        return block(case, strategy, first, min(BLOCK, runs - first))

    return counted(store, settings, rejected, runs, BLOCK, jobs)


def counted(
    store: Store | None,
    settings: Callable[[int], dict[str, Any]],
    rejected: Callable[[int], list[bool]],
    runs: int,
    size: int,
    jobs: int,
) -> int:
    """Count rejections, block by block; those in the store are read, others made and kept."""
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    total, missing = 0, []
    for first in range(0, runs, size):
        kept = None if store is None else store.get(settings(first))
        if kept is None:
            missing.append(first)
        else:
            total += int(kept["rejected"].sum())
    calls = (delayed(lambda f: (f, rejected(f)))(first) for first in missing)
    for first, found in Parallel(n_jobs=jobs, return_as="generator_unordered")(calls):
        total += sum(found)
        if store is not None and len(found) == size:
            store.put(settings(first), {"rejected": np.array(found)})
    return total


def rows(store: Store, runs: int, jobs: int, only: str | None) -> Iterator[tuple[str, bool]]:
    """Yield lines of the table, and whether each is as it should be."""
    for case, strategy, honest in [*((case, Gauntlet(), True) for case in CASES), *TWINS]:
        if only is not None and only not in case.name:
            continue
        total = int(case.part * runs)
        count = rejections(store, case, strategy, total, jobs)
        lower = exact_lower_bound(count, total, CONFIDENCE)
        kept = lower <= case.delta
        verdict = ("yes" if kept else "**no**") if honest else ("**no**" if kept else "no: caught")
        watched = "to the end" if case.pulls == 0 else f"{case.pulls} pulls"
        yield (
            f"| {case.name} | {strategy.name} | {case.delta} | {watched} | {total:,} | {count:,} "
            f"| {count / total:.4f} | {lower:.4f} | {verdict} |",
            kept == honest,
        )


def report(
    about: str,
    runs: int,
    rows: Callable[[Store, int, int, str | None], Iterator[tuple[str, bool]]],
    header: str,
    title: str,
    results: Path,
) -> int:
    """Measure everything and say whether the promise is kept."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=about, formatter_class=layout)
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--store", type=Path, default=Path("validity.sqlite"))
    parser.add_argument("--only", help="part of the name of a case")
    words = parser.parse_args()
    lines, good = list[str](), True
    for line, fine in rows(Store(words.store), words.runs, words.jobs, words.only):
        own = line.count("|") > header.count("|")  # the rules of this case
        lines.append(line if own else f"{line} {NEWEST.number} |")
        print(lines[-1], flush=True)
        good = good and fine
    made = f"`make validate`, finalist {fl.__version__}."
    header += " rules |"
    table = [header, "|---" * (header.count("|") - 1) + "|"]
    if words.only is not None:
        lines = merged(results, made, header, lines)
    results.write_text("\n".join([f"# {title}", "", made, "", *table, *lines, ""]))
    return 0 if good else 1


def merged(results: Path, made: str, header: str, lines: list[str]) -> list[str]:
    """Return the rows of a table with those that were measured again, or for the first time.

    A row is known by what stands before its number of runs, and says by which rules it was made. A
    table of another version or with other columns is not gone on with: its rows go.
    """
    text = results.read_text().splitlines() if results.exists() else []
    kept = [row for row in text if row.startswith("|")][2:] if {made, header} <= {*text} else []
    named = header.split(" | ").index("runs")
    return list({tuple(row.split(" | ")[:named]): row for row in [*kept, *lines]}.values())


def main() -> int:
    """Measure everything and say whether the promise is kept."""
    header = (
        "| instance | strategy | delta | watched | runs | best arm rejected | rate | at least "
        "(99.9 %) | delta kept |"
    )
    return report(__doc__, 10_000, rows, header, "Validity of the gauntlet", RESULTS)


if __name__ == "__main__":
    sys.exit(main())
