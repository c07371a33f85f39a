"""How often a bend stays hidden, and what looking for it costs: the frontier of the check.

    python -m benchmarks.models [--runs 400] [--jobs -1] [--store FILE] [--only WORD ...]

Studies that assume straight lines (or the model `bending`) on truths of `families`, on which a
straight study stops within a hundred measurements in the mean, sigma known and unknown in turns,
batches of 4 to 24. Each truth is measured without a check and with one; the frontier is read off
one path of probes for each study. Settings were tuned on the families marked so. A study is silent
if it calls a wrong winner certain. Results are kept in a store; a stopped run goes on where it was.
Writes benchmarks/results/models.md (models-partial.md with `--only`). The exit code is 1 when a
target is missed.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np

from benchmarks.gauntlet.cells import CodeStore
from benchmarks.harness import Report, Table, Target, console
from benchmarks.models.families import FAMILIES, Family
from benchmarks.models.studies import DOZENS, Study, study
from finalist.lab.store import Store
from finalist.problem.rules import NEWEST

RESULTS = Path(__file__).parents[1] / "results" / "models.md"
BLOCK = 20
#: Of a family at most so many truths are drawn for each study: most are left out.
MOST_DRAWN = 40
#: Limits of the chance of a hidden bend; with 1 nothing but the test speaks.
LIMITS = (1.0, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005)
#: The limit of a study that says nothing.
DEFAULT = 0.03
#: A loss that is not small, in sigma.
LARGE = 0.25
CERTAIN, HIDDEN, BENT = 0, 1, 2
OUTCOMES = {"certain": CERTAIN, "hidden": HIDDEN, "undecided": HIDDEN, "bent": BENT}
GROUPS = ("linear", "tuned", "held out")
WITH_MARGIN = tuple(f"{group}, a margin" for group in GROUPS)


class Found:
    """What the studies of some families came to, by limits of the chance."""

    def __init__(self, parts: list[dict[str, np.ndarray]], most: int | None = None) -> None:
        self.of = {name: np.concatenate([part[name] for part in parts])[:most] for name in parts[0]}

    def __len__(self) -> int:
        return len(self.of["plain"])

    def extra(self, limit: int) -> float:
        """Return how many more measurements the check takes."""
        return float(self.of["pulls"][:, limit].mean() / self.of["plain"].mean() - 1.0)

    def extra_error(self, limit: int) -> float:
        """Return the standard error of `extra`, a ratio of means."""
        plain = self.of["plain"]
        rest = self.of["pulls"][:, limit] - (1.0 + self.extra(limit)) * plain
        return float(rest.std(ddof=1) / np.sqrt(len(rest)) / plain.mean())

    def share(self, what: int, limit: int) -> float:
        """Return the share of an outcome."""
        return float((self.of["outcome"][:, limit] == what).mean())

    def silent(self, limit: int, loss: float = 0.0) -> float:
        """Return the share of studies that call a winner certain which is worse than that."""
        sure = self.of["outcome"][:, limit] == CERTAIN
        return float((sure & (self.of["loss"][:, limit] > loss)).mean())

    def wrong(self, loss: float = 0.0) -> float:
        """Return the share of wrong winners without a check."""
        return float((self.of["plain_loss"] > loss).mean())

    def warned(self, limit: int) -> tuple[float, float]:
        """Return the mean losses of what straight lines and what bends say, after a warning."""
        told = self.of["outcome"][:, limit] != CERTAIN
        if not told.any():
            return float("nan"), float("nan")
        straight = self.of["plain_loss"][told].mean()
        return float(straight), float(self.of["loss"][told, limit].mean())


def arrays(found: list[Study]) -> dict[str, np.ndarray]:
    """Return what is kept of studies."""
    ends = [[one.outcome(limit) for limit in LIMITS] for one in found]
    shape = (len(found), len(LIMITS))
    return {
        "plain": np.array([one.plain for one in found], dtype=np.int64),
        "plain_loss": np.array([one.truth.loss(one.winner) for one in found], dtype=float),
        "outcome": np.array([[OUTCOMES[e[0]] for e in row] for row in ends], int).reshape(shape),
        "pulls": np.array([[e[1] for e in row] for row in ends], dtype=np.int64).reshape(shape),
        "loss": np.array(
            [[one.truth.loss(e[2]) for e in row] for one, row in zip(found, ends, strict=True)],
            dtype=float,
        ).reshape(shape),
    }


def measured(family: Family, runs: int, jobs: int, store: Store) -> Found:
    """Run the studies of a family, or read them, until there are so many."""
    parts: list[dict[str, np.ndarray]] = []
    for first in range(0, MOST_DRAWN * runs, BLOCK):
        if sum(len(part["plain"]) for part in parts) >= runs:
            break
        what: dict[str, Any] = {"strategy": "Gauntlet(", "rules": NEWEST.number}
        what |= {"kind": "models", "family": family.name, "first": first, "block": BLOCK}
        part = store.get(what)
        if part is None:
            numbers = range(first, first + BLOCK)
            made = joblib.Parallel(n_jobs=jobs)(joblib.delayed(study)(family, n) for n in numbers)
            part = arrays([one for one in made if one is not None])
            store.put(what, part)
        parts.append(part)
    return Found(parts, runs)


def percent(share: float) -> str:
    """Write a share."""
    return f"{100.0 * share:.1f}"


def together(found: dict[str, Found], group: str) -> Found:
    """Return all studies of a group."""
    return Found([one.of for name, one in found.items() if FAMILIES[name].group == group])


def frontier(
    found: dict[str, Found], groups: tuple[str, ...] = GROUPS, title: str = "The frontier"
) -> Table:
    """Return what each limit costs and leaves hidden."""
    straight, tuned, others = (together(found, group) for group in groups)
    plain = [f"{percent(g.wrong())} ({percent(g.wrong(LARGE))})" for g in (tuned, others)]
    rows = [("no check", "0.0", "", percent(straight.wrong()), "", *plain)]
    for i, limit in enumerate(LIMITS):
        name = "probes and test only" if limit == 1.0 else f"{limit:g}"
        rows.append(
            (
                f"**{name}**" if limit == DEFAULT else name,
                percent(straight.extra(i)),
                percent(straight.share(BENT, i)),
                percent(straight.silent(i)),
                percent(1.0 - straight.share(CERTAIN, i)),
                *(
                    f"{percent(g.silent(i))} ({percent(g.silent(i, LARGE))})"
                    for g in (tuned, others)
                ),
            )
        )
    heads = (
        "largest chance accepted",
        "straight: more measurements",
        "straight: false alarms",
        "straight: wrong and certain",
        "straight: not certain",
        "tuned: silent (loss above a quarter of sigma)",
        "held out: silent (loss above a quarter of sigma)",
    )
    sizes = ", ".join(
        f"{len(g):,} {name}" for g, name in zip((straight, tuned, others), GROUPS, strict=True)
    )
    return Table(f"{title}, in percent of studies", heads, rows, f"Studies: {sizes}.")


def by_family(found: dict[str, Found]) -> Table:
    """Return what comes out for each family by default."""
    i = LIMITS.index(DEFAULT)
    rows = []
    for name, one in found.items():
        straight, bent = one.warned(i)
        rows.append(
            (
                name,
                FAMILIES[name].group,
                f"{len(one)}",
                f"{one.of['plain'].mean():.0f}",
                percent(one.wrong()),
                percent(one.extra(i)),
                f"{percent(one.silent(i))} ({percent(one.silent(i, LARGE))})",
                percent(one.share(BENT, i)),
                percent(one.share(HIDDEN, i)),
                "" if np.isnan(bent) else f"{straight:.2f} / {bent:.2f}",
            )
        )
    heads = (
        "truths",
        "set",
        "studies",
        "measurements without a check",
        "wrong without a check, %",
        "more measurements, %",
        "silent (loss above a quarter of sigma), %",
        "alarm, %",
        "not certain, %",
        "loss after a warning: straight / bent",
    )
    note = f"A chance of {DEFAULT:g} is accepted. Losses are means in sigma."
    return Table("By family, as studies are by default", heads, rows, note)


def add_targets(report: Report, found: dict[str, Found], groups: tuple[str, ...] = GROUPS) -> None:
    """Say what was to be reached by default."""
    i = LIMITS.index(DEFAULT)
    straight, tuned, others = (together(found, group) for group in groups)
    first, second, third = ("straight" + groups[0][len("linear") :], *groups[1:])
    large = f"{third}: silent with a loss above a quarter of sigma"
    sure = straight.share(CERTAIN, i)
    for name, value, most in (
        (f"{second}: silent", tuned.silent(i), 0.05),
        (f"{third}: silent", others.silent(i), 0.2),
        (large, others.silent(i, LARGE), 0.08),
        (f"{first}: false alarms", straight.share(BENT, i), 0.01),
        (f"{first}: not certain", 1.0 - sure, 0.04),
        (f"{first}: more measurements", straight.extra(i), 0.18),
    ):
        words = f"{percent(value)} %"
        if "more" in name:
            words += f" (standard error {percent(straight.extra_error(i))})"
        report.targets.append(Target(name, f"at most {100.0 * most:g} %", words, value <= most))


def main() -> int:
    """Measure, print and write."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--runs", type=int, default=400, help="studies of each family")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--store", type=Path, default=Path("models.sqlite"))
    parser.add_argument("--only", nargs="+", help="families whose name has one of these words")
    words = parser.parse_args()
    asked = [n for n in FAMILIES if words.only is None or any(w in n for w in words.only)]
    found = {}
    with CodeStore(words.store) as store:
        for name in asked:
            found[name] = measured(FAMILIES[name], words.runs, words.jobs, store)
            i = LIMITS.index(DEFAULT)
            console.print(
                f"{name}: {len(found[name])} studies, silent {percent(found[name].silent(i))} %, "
                f"{percent(found[name].extra(i))} % more",
                highlight=False,
            )
    report = Report("How often a bend stays hidden")
    report.add(by_family(found))
    if words.only is None:
        report.add(frontier(found))
        title = "The frontier with a margin: wrong is who is worse than the best by more"
        report.add(frontier(found, WITH_MARGIN, title))
        add_targets(report, found)
        add_targets(report, found, WITH_MARGIN)
        report.how = (
            report.how[0],
            f"Truths on which studies without a check take more than {DOZENS} measurements in the "
            "mean are left out. Shares of n studies have a standard error of at most "
            "50 / sqrt(n) percent.",
        )
    return report.finish(RESULTS if words.only is None else RESULTS.with_stem("models-partial"))


if __name__ == "__main__":
    sys.exit(main())
