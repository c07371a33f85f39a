"""The reproduction as a whole: measure, put the parts together, write files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import finalist
from finalist.charts import save
from finalist.complexity import complexity
from finalist.errors import ProblemError
from finalist.files import write_file
from finalist.lab.paper.alpha import alpha_part
from finalist.lab.paper.appendix import appendix_part, theorem_cells
from finalist.lab.paper.budget import budget_part, figure_cells
from finalist.lab.paper.cells import Cell, Outcome, Plan, alpha_cells
from finalist.lab.paper.cones import cones_part
from finalist.lab.paper.experiment import DELTA, OMEGA, PRINTED, SIGMA, TABLE_DIMENSION, instance
from finalist.lab.paper.measure import Announce, measure
from finalist.lab.paper.page import page
from finalist.lab.paper.parts import Part
from finalist.lab.paper.table import lower_bound, table_cells, table_part
from finalist.lab.tables import compact

#: The parts of the reproduction, in the order of the page.
PARTS = ("table", "budget", "alpha", "cones", "appendix")
PAGE = "index.html"


@dataclass(frozen=True, eq=False)
class Reproduction:
    """What came out.

    Attributes
    ----------
    parts : tuple of Part
    settings : dict
        What it was made with.
    """

    parts: tuple[Part, ...]
    settings: dict[str, Any]

    def record(self) -> dict[str, Any]:
        """Return everything for JSON: settings, findings and tables, by part."""
        return {
            "settings": self.settings,
            "parts": {
                part.name: {
                    "findings": [finding.record() for finding in part.findings],
                    "tables": {table.name: table.records() for table in part.tables},
                }
                for part in self.parts
            },
        }


def cells_of(name: str, plan: Plan) -> list[Cell]:
    """Return what has to be measured for a part."""
    needs = {
        "table": table_cells,
        "budget": figure_cells,
        "alpha": alpha_cells,
        "appendix": theorem_cells,
    }
    return needs[name](plan) if name in needs else []


def reproduce(
    names: Sequence[str],
    folder: Path,
    plan: Plan | None = None,
    *,
    seed: int = 0,
    jobs: int = 1,
    announce: Announce | None = None,
) -> Reproduction:
    """Measure what the parts need and put them together; only the store is written.

    Parameters
    ----------
    names : sequence of str
        Some of `PARTS`.
    folder : Path
        Where `results.sqlite` is kept; it must exist.
    plan : Plan, optional
        How much is simulated, by default everything.
    seed, jobs : int
        Of the simulations.
    announce : function, optional
        Called before each cell; see `finalist.lab.paper.measure`.

    Returns
    -------
    Reproduction
    """
    plan = Plan() if plan is None else plan
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise ProblemError(f"part is {unknown[0]!r}; it is one of {', '.join(PARTS)}.")
    cells = [cell for name in names for cell in cells_of(name, plan)]
    outcomes: dict[Cell, Outcome] = {}
    if cells:
        outcomes = measure(cells, plan, folder, seed=seed, jobs=jobs, announce=announce)
    settings = {
        "version": finalist.__version__,
        "sigma": SIGMA,
        "delta": DELTA,
        "omega": OMEGA,
        "runs": plan.runs,
        "static_runs_with_printed_constants": plan.static_runs,
        "constants": list(plan.bounds),
        "dimensions": list(plan.dimensions),
        "seed": seed,
    }
    return Reproduction(tuple(_part(name, plan, outcomes) for name in names), settings)


def quick(folder: Path, *, jobs: int = 1, announce: Announce | None = None) -> Reproduction:
    """Return the table of the paper from few runs, in less than half a minute.

    Parameters
    ----------
    folder : Path
        Where `results.sqlite` is kept; it must exist.
    jobs : int
        Processes.
    announce : function, optional
        Called before each cell.
    """
    return reproduce(("table",), folder, Plan.quick(), jobs=jobs, announce=announce)


def _part(name: str, plan: Plan, outcomes: dict[Cell, Outcome]) -> Part:
    if name == "cones":
        return cones_part()
    makers = {
        "table": table_part,
        "budget": budget_part,
        "alpha": alpha_part,
        "appendix": appendix_part,
    }
    return makers[name](plan, outcomes)


def write(result: Reproduction, folder: Path, with_page: bool = False) -> list[Path]:
    """Write pictures as PNG and SVG, tables as CSV and, if wanted, the page.

    Parameters
    ----------
    result : Reproduction
    folder : Path
        It must exist.
    with_page : bool

    Returns
    -------
    list of Path
    """
    files = [
        write_file(folder / f"{table.name}.csv", table.csv().encode())
        for part in result.parts
        for table in part.tables
    ]
    files += [
        save(picture.chart, folder / f"{picture.name}.{suffix}")
        for part in result.parts
        for picture in part.pictures
        for suffix in ("png", "svg")
    ]
    if with_page:
        files.append(write_file(folder / PAGE, _page(result, folder).encode()))
    return files


def _page(result: Reproduction, folder: Path) -> str:
    drawings = {
        picture.name: (folder / f"{picture.name}.svg").read_text(encoding="utf-8")
        for part in result.parts
        for picture in part.pictures
    }
    return page(result.parts, _abstract(result), _settings(result.settings), drawings)


def _abstract(result: Reproduction) -> list[str]:
    """Say what the problem is and how many statements hold."""
    findings = [finding for part in result.parts for finding in part.findings]
    counts = {word: sum(f.verdict == word for f in findings) for word in ("holds", "fails")}
    rest = len(findings) - sum(counts.values())
    failing = [
        f.claim + (f" ({f.constants})" if f.constants else "") for f in findings if f.holds is False
    ]
    least = min(sum(pulls) for pulls in PRINTED.values())
    stated = complexity(*instance(), SIGMA, DELTA, "soare")
    return [
        "One arm is best, another is almost as good, and measuring either tells hardly anything "
        "about which is which. What separates them is one coordinate of an unknown parameter, and "
        "a third arm, useless as an answer, measures just that. The paper asks how a strategy can "
        "find this out by itself, and what it costs.",
        f"Of {len(findings)} statements checked below, {counts['holds']} hold, {counts['fails']} "
        f"fail, and {rest} cannot be compared. Statements about shares, order and growth are "
        "checked as they stand, once for each set of constants. Absolute counts are not "
        "comparable: a method that is right whatever θ is needs "
        f"{lower_bound(TABLE_DIMENSION):,.0f} pulls on average, the paper prints {least:,} for an "
        "oracle that knows θ, and with the constants it states the oracle needs "
        f"{compact(stated.oracle_budget)}.",
        f"What fails: {'; '.join(failing) or 'nothing'}. Each section says why.",
    ]


def _settings(settings: dict[str, Any]) -> str:
    dimensions = settings["dimensions"]
    return (
        f"Noise N(0, {settings['sigma']:g}), error probability {settings['delta']:g}, angle "
        f"{settings['omega']:g}, d from {dimensions[0]} to {dimensions[-1]}, {settings['runs']} "
        f"runs of each strategy ({settings['static_runs_with_printed_constants']} of G and XY "
        f"with printed constants), seed {settings['seed']}. Intervals of means are from the "
        "bootstrap, at 95 %. “soare” are the constants of the paper's Propositions 1 and 2 as "
        "printed; “sharp” are the tightest ones proven for the same statements. Where the paper's "
        "pseudo-code is misprinted, what it means was run."
    )
