"""Do plans come true? Studies with truths of other kinds, driven by ask and tell.

    python -m benchmarks.plans [--tables 5] [--studies 10] [--store plans.sqlite]

For each kind (`kinds`) tables are drawn. For each a plan is made with the settings of the study and
the smallest lead, and nothing else; then studies are created with the same settings and truths of
the kind, asked for batches and told results until they end. Counted is how many need no more than
the plan's 90 % figure, and than its median. A study is cut, and counts as more, at 20 times that
figure. Finished plans are kept in the store; a changed package has new keys. Writes
benchmarks/results/plans.md. The exit code is 1 when a target is missed.
"""

import argparse
import hashlib
import itertools
import sys
import tempfile
from pathlib import Path

import numpy as np

import finalist as fl
from benchmarks.harness import Report, Table, Target, console
from benchmarks.plans.kinds import KINDS, Kind
from finalist.lab.store import Store
from finalist.planning import PlanRow
from finalist.planning.figures import quantile
from finalist.problem import study_problem
from finalist.problem.rules import NEWEST
from finalist.simulation.binomial import exact_interval
from finalist.simulation.rewards import DrawnRewards

RESULTS = Path(__file__).parents[1] / "results" / "plans.md"
#: The draws of a plan, and what studies needed.
Part = dict[str, np.ndarray]
#: A study is cut at this many times the plan's 90 % figure.
MOST = 20
#: The shares of studies that need no more than the 90 % figure.
LOW, HIGH = 0.85, 0.95


def code() -> str:
    """Return a hash of what decides the results."""
    root = Path(fl.__file__).parent
    files = [root / f"planning/{name}.py" for name in ("draws", "figures", "parameters")]
    files.append(Path(__file__).with_name("kinds.py"))
    for folder in ("strategies", "simulation", "inference", "design"):
        files += sorted((root / folder).rglob("*.py"))
    found = hashlib.sha256()
    for file in files:
        found.update(file.read_bytes())
    return found.hexdigest()[:16]


def drive(arms: fl.Arms, kind: Kind, theta: np.ndarray, seed: int, most: float) -> float:
    """Run a study until it ends; return what its measurements cost, infinite if it was cut."""
    words = {"sigma": 1.0, **kind.words}
    if words.get("noise") == "bernoulli":
        del words["sigma"]
    drawn = study_problem(
        arms, **{**words, **({"sigma": 1.0} if words.get("sigma", 1) is None else {})}
    )
    sigma = np.array(drawn.sigmas) if isinstance(drawn.noise.sigma, tuple) else drawn.sigma
    rng = np.random.default_rng([seed, 1])
    shift = 1.0 if drawn.batch_intercept else 0.0
    rewards = DrawnRewards(drawn.means(theta), sigma, drawn.noise.rewards, rng, shift)
    index = {name: i for i, name in enumerate(arms.names)}
    cost, prices = 0.0, drawn.costs
    with (
        tempfile.TemporaryDirectory() as folder,
        fl.Study.create(f"{folder}/study.db", "study", arms, seed=seed, **words) as study,
    ):
        while len(batch := study.ask(kind.size)) > 0:
            asked = np.array([index[pull.arm] for pull in batch])
            values = rewards.pulls(asked)
            if shift > 0.0:
                values = values + shift * rng.standard_normal()
            cost += float(prices[asked].sum())
            if cost > most:
                return np.inf
            study.tell({p.pull_id: float(v) for p, v in zip(batch, values, strict=True)})
        found = study.status(forecast=False)
        return cost if found.verdict == "winner" and found.certain else np.inf


def one(name: str, kind: Kind, table: int, studies: int, draws: int) -> Part:
    """Make a plan for a table, and run studies."""
    rng = np.random.default_rng([table, *name.encode()])
    arms = kind.arms(rng)
    words = {"sigma": 1.0, **kind.words}
    if words.get("noise") == "bernoulli":
        del words["sigma"]
    guess = 1.0 if words.get("sigma", 1.0) is None else None
    plan = fl.plan(
        arms,
        gap=kind.gap,
        size=kind.size,
        guess=guess,
        draws=draws,
        seed=table,
        against=(),
        **words,
    )
    row = plan.rows[0]
    needed = [
        drive(arms, kind, kind.theta(rng, arms), 1000 * table + i, MOST * row.high)
        for i in range(studies)
    ]
    return {"plan": row.pulls, "needed": np.array(needed)}


def share(hits: int, of: int) -> str:
    """Format a share with its exact interval."""
    low, high = exact_interval(hits, of)
    return f"{100 * hits / of:.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def measured(store: Store, tables: int, studies: int, draws: int) -> dict[str, list[Part]]:
    """Make plans and run studies, one table of every kind after the other; return all of them.

    Ctrl-C ends it: then those tables are returned that all kinds have.
    """
    version, found = code(), {name: list[Part]() for name in KINDS}
    try:
        for table, (name, kind) in itertools.product(range(tables), KINDS.items()):
            key = {"kind": name, "table": table, "studies": studies, "draws": draws}
            key |= {"code": version, "rules": NEWEST.number}
            part = store.get(key)
            if part is None:
                part = one(name, kind, table, studies, draws)
                store.put(key, part)
            found[name].append(part)
    except KeyboardInterrupt:
        console.print("stopped")
    least = min(map(len, found.values()))
    return {name: parts[:least] for name, parts in found.items()}


def main() -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--studies", type=int, default=10)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--store", default="plans.sqlite")
    words = parser.parse_args()
    how = "one process", "No times are measured: measurements, or their cost, are counted."
    report, rows = Report("Do plans come true?", how), []
    hits = below = count = 0
    outside = []
    with Store(words.store) as store:
        found = measured(store, words.tables, words.studies, words.draws)
    for name, parts in found.items():
        made = [PlanRow(name, np.array(part["plan"]), 0) for part in parts]
        needed = np.concatenate([part["needed"] for part in parts])
        high = np.repeat([row.high for row in made], words.studies)
        half = np.repeat([row.median for row in made], words.studies)
        within, under, n = int((needed <= high).sum()), int((needed <= half).sum()), len(needed)
        hits, below, count = hits + within, below + under, count + n
        if not LOW <= within / n <= HIGH:
            outside.append(name)
        rows.append(
            (
                name,
                f"{np.median(half):.0f} / {np.median(high):.0f}",
                f"{quantile(needed, 0.5):.0f} / {quantile(needed, 0.9):.0f}",
                share(within, n),
                share(under, n),
            )
        )
    heads = ("kind", "plan: median / 90 %", "studies: median / 90 %", "within the 90 % figure")
    note = (
        f"{len(parts)} tables of each kind with a plan of {words.draws} draws each, and "
        f"{words.studies} studies for each plan: {count:,} studies. With 95 % exact bounds for the "
        f"plans that were made. In all, {share(hits, count)} are within the 90 % figure, "
        f"and {share(below, count)} within the median. Kinds outside 85 to 95 %: "
        f"{'; '.join(outside) or 'none'}."
    )
    report.add(Table("Plans and studies", (*heads, "within the median"), rows, note))
    report.targets.append(
        Target(
            "studies within the 90 % figure, all kinds together",
            "85 to 95 %",
            share(hits, count),
            LOW <= hits / count <= HIGH,
        )
    )
    return report.finish(RESULTS)


if __name__ == "__main__":
    sys.exit(main())
