"""The reproduction as a whole: measure, put the parts together, write files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import finalist
from finalist.complexity import complexity
from finalist.errors import ProblemError
from finalist.files import write_file
from finalist.lab.page import Part, page, write_parts
from finalist.lab.paper.appendix import appendix_part, theorem_cases
from finalist.lab.paper.budget import alpha_part, budget_part, figure_cases
from finalist.lab.paper.cones import cones_part
from finalist.lab.paper.experiment import (
    DELTA,
    OMEGA,
    PRINTED,
    SIGMA,
    TABLE_DIMENSION,
    Announce,
    Case,
    Extent,
    Tallies,
    alpha_cases,
    instance,
    measure,
)
from finalist.lab.paper.table import lower_bound, table_cases, table_part
from finalist.lab.tables import compact

#: What each part needs to be simulated, and how it is assembled, in the order of the page.
_PARTS: dict[str, tuple[Callable[[Extent], list[Case]], Callable[[Extent, Tallies], Part]]] = {
    "table": (table_cases, table_part),
    "budget": (figure_cases, budget_part),
    "alpha": (alpha_cases, alpha_part),
    "cones": (lambda _: [], lambda *_: cones_part()),
    "appendix": (theorem_cases, appendix_part),
}
PARTS = tuple(_PARTS)
PAGE = "index.html"


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The results of a reproduction.

    Attributes
    ----------
    parts : tuple of Part
    settings : dict
        What it was made with, for JSON.
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


def cases_of(name: str, extent: Extent) -> list[Case]:
    """Return the cases that a part needs."""
    return _PARTS[name][0](extent)


def reproduce(
    names: Sequence[str],
    folder: Path,
    extent: Extent | None = None,
    *,
    seed: int = 0,
    jobs: int = 1,
    announce: Announce | None = None,
) -> Reproduction:
    """Measure what the parts need and assemble them; only the store is written.

    Parameters
    ----------
    names : sequence of str
        Some of `PARTS`.
    folder : Path
        Where `results.sqlite` is kept; it must exist.
    extent : Extent, optional
        How much is simulated, by default everything.
    seed, jobs : int
        Of the simulations.
    announce : function, optional
        Called before each case; see `experiment.Announce`.

    Returns
    -------
    Reproduction
    """
    extent = Extent() if extent is None else extent
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise ProblemError(f"part is {unknown[0]!r}; it is one of {', '.join(PARTS)}.")
    cases = [case for name in names for case in cases_of(name, extent)]
    tallies: Tallies = {}
    if cases:
        tallies = measure(cases, extent, folder, seed=seed, jobs=jobs, announce=announce)
    parts = tuple(_PARTS[name][1](extent, tallies) for name in names)
    settings = {
        "version": finalist.__version__,
        "sigma": SIGMA,
        "delta": DELTA,
        "omega": OMEGA,
        "runs": extent.runs,
        "static_runs_with_printed_constants": extent.static_runs,
        "constants": list(extent.bounds),
        "dimensions": list(extent.dimensions),
        "seed": seed,
    }
    return Reproduction(parts, settings)


def quick(folder: Path, *, jobs: int = 1, announce: Announce | None = None) -> Reproduction:
    """Return the table of the paper from a few runs, in less than half a minute.

    Parameters
    ----------
    folder : Path
        Where `results.sqlite` is kept; it must exist.
    jobs : int
        Processes.
    announce : function, optional
        Called before each case.
    """
    return reproduce(("table",), folder, Extent.quick(), jobs=jobs, announce=announce)


def write(result: Reproduction, folder: Path, with_page: bool = False) -> list[Path]:
    """Write pictures as PNG and SVG, tables as CSV and, on request, the page.

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
    tables = [table for part in result.parts for table in part.tables]
    files, drawings = write_parts(result.parts, tables, folder)
    if with_page:
        files.append(write_file(folder / PAGE, _page(result, drawings).encode()))
    return files


def _page(result: Reproduction, drawings: dict[str, str]) -> str:
    return page(
        "Best-arm identification in linear bandits, run again",
        "The experiment, the figures and the appendix of Soare, Lazaric and Munos (NIPS 2014), "
        f"computed with finalist {finalist.__version__}.",
        result.parts,
        drawings,
        abstract=_abstract(result),
        made=_settings(result.settings),
    )


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
