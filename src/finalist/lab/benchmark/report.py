"""The report of a benchmark: Markdown, a page, CSV, and pictures."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import finalist
from finalist.charts.ratios import Ratio, Survival, ratios_chart, survival_chart, survival_domain
from finalist.charts.theme import PALETTE
from finalist.files import write_file
from finalist.lab.benchmark import tables
from finalist.lab.benchmark.engine import CellResult
from finalist.lab.benchmark.plan import TUNED_ON, Plan, exact
from finalist.lab.benchmark.specs import KNOWS
from finalist.lab.page import Part, Picture, page, write_parts
from finalist.lab.tables import Table
from finalist.simulation.summary import FEWEST
from finalist.text import listed

TITLE = "Strategies side by side"
PAGE, MARKDOWN = "index.html", "benchmark.md"
#: Strategies per picture.
_CURVES = len(PALETTE)


@dataclass(frozen=True, eq=False)
class Report:
    """What came out, before anything is written.

    Attributes
    ----------
    plan : Plan
    outcomes : tuple of CellResult
    lead : str
        What the figures are.
    parts : tuple of Part
    """

    plan: Plan
    outcomes: tuple[CellResult, ...]
    lead: str
    parts: tuple[Part, ...]

    def record(self) -> dict[str, Any]:
        """Return settings and all cells for JSON."""
        settings = {"finalist": finalist.__version__, **asdict(self.plan)}
        settings["command"] = self.plan.command
        return {"settings": settings, "cells": [o.record() for o in self.outcomes]}

    def overviews(self) -> list[Table]:
        """Return the tables over all instances, one for each delta."""
        deltas = dict.fromkeys(self.plan.deltas)
        return [tables.overview(self.outcomes, delta) for delta in deltas]


def make_report(plan: Plan, outcomes: Sequence[CellResult]) -> Report:
    """Make a report of the results.

    Parameters
    ----------
    plan : Plan
    outcomes : sequence of CellResult
        What `run` returned for this plan.
    """
    parts = [_delta_part(outcomes, delta) for delta in dict.fromkeys(plan.deltas)]
    parts += [
        Part(f"instance-{number}", name, tables=(tables.detail_table(outcomes, name),))
        for number, name in enumerate(tables.instances(outcomes), 1)
    ]
    missing = tables.missing_table(outcomes)
    if missing.rows:
        parts.append(Part("missing", missing.title, tables=(missing,)))
    return Report(plan, tuple(outcomes), _lead(plan), tuple(parts))


def _lead(plan: Plan) -> str:
    return (
        "Mean pulls over T* kl(delta, 1 - delta): a method that keeps delta for every theta needs "
        "at least so many on average. A strategy that knows theta is not bound by it. "
        f"{plan.runs} runs of each strategy on each instance with Gaussian noise; the "
        "tables of real experiments (oats, cake, weaving, plums) lend their fitted means and the "
        "size of their noise. A run that needs more than "
        f"{exact(plan.max_ratio)} times the bound is cut and counted up to there; its mean is "
        "shown with ≥ and has no upper end. “Done” counts instances, “wrong” runs, and “above "
        "delta” instances with more wrong runs than chance allows (exact 95 % interval). Intervals "
        f"of means are from the bootstrap; with fewer than {FEWEST} runs they would be too short, "
        "and there are none. Batches count how often a strategy "
        "chose what to pull; CPU is the median of a run."
    )


def _delta_part(outcomes: Sequence[CellResult], delta: float) -> Part:
    chosen = tables.at(outcomes, delta)
    done = [o for o in chosen if o.result is not None]
    pictures = [_ratio_picture(chosen, delta)] if done else []
    if any(o.measured.decided.any() for o in done):
        pictures += _survival_pictures(done, delta)
    halves = tables.halves(outcomes, delta)
    found = [tables.overview(outcomes, delta), tables.ratio_table(outcomes, delta)]
    found[1:1] = [halves] if halves.rows else []
    text = (_tuned(tables.instances(chosen)),) if halves.rows else ()
    title = f"delta = {exact(delta)}"
    return Part(f"delta-{exact(delta)}", title, text, (), tuple(found), tuple(pictures))


def _tuned(names: Sequence[str]) -> str:
    tuned = [name for name in names if name in TUNED_ON]
    return (
        f"The settings of the gauntlet were tuned on {len(tuned)} of these {len(names)} instances: "
        f"{'; '.join(tuned)}."
    )


def _unbound(heads: Iterable[str]) -> list[str]:
    """Name the strategies to which the lower bound does not apply."""
    told = [head for head in heads if KNOWS in head]
    return [f"The bound does not bind {listed(told)}"] if told else []


def _ratio_picture(outcomes: Sequence[CellResult], delta: float) -> Picture:
    heads = tables.headings(outcomes)
    ratios = [
        Ratio(head, o.cell.instance.name, None)
        if o.result is None
        else Ratio(head, o.cell.instance.name, o.ratio, bool(o.undecided))
        for label, head in heads.items()
        for o in outcomes
        if o.cell.spec.label == label
    ]
    names = {name: place for place, name in enumerate(tables.instances(outcomes))}
    ratios.sort(key=lambda ratio: names[ratio.row])
    title = "Pulls over the lower bound"
    subtitle = [
        f"Mean over runs, delta = {exact(delta)}; 1 is the bound",
        *_unbound(heads.values()),
    ]
    chart = ratios_chart(ratios, title, subtitle)
    return Picture(f"ratio-{exact(delta)}", chart, f"{title}, delta = {exact(delta)}.")


def _survival_pictures(outcomes: Sequence[CellResult], delta: float) -> list[Picture]:
    """Draw all strategies with a decided run, several per picture, on one common axis."""
    heads = tables.headings(outcomes)
    deciding = {o.cell.spec.label for o in outcomes if o.measured.decided.any()}
    drawn = [label for label in heads if label in deciding]
    groups = [drawn[i : i + _CURVES] for i in range(0, len(drawn), _CURVES)]
    title = "Share of runs that have not decided yet"
    subtitle = [f"delta = {exact(delta)}; dashed: the lower bound on the mean"]
    never = [head for label, head in heads.items() if label not in deciding]
    if never:
        subtitle.append(f"Without a decision: {listed(never)}")
    columns = 4 if len(tables.instances(outcomes)) > 9 else 3
    domain = survival_domain(_curves(outcomes, drawn))
    pictures = []
    for number, labels in enumerate(groups, 1):
        words = f"{title} ({number} of {len(groups)})" if len(groups) > 1 else title
        curves, told = _curves(outcomes, labels), _unbound(heads[label] for label in labels)
        chart = survival_chart(
            curves, "Pulls over the lower bound", words, [*subtitle, *told], columns, domain
        )
        name = f"survival-{exact(delta)}" + (f"-{number}" if number > 1 else "")
        pictures.append(Picture(name, chart, f"{words}, delta = {exact(delta)}."))
    return pictures


def _curves(outcomes: Sequence[CellResult], labels: Sequence[str]) -> list[Survival]:
    """Return the curves of some strategies, one for each instance."""
    heads = tables.headings(outcomes)
    return [
        Survival(o.cell.instance.name, heads[label], np.where(o.measured.decided, o.ratios, np.inf))
        for label in labels
        for o in outcomes
        if o.cell.spec.label == label
    ]


# --- files ------------------------------------------------------------------------------------


def write(report: Report, folder: Path) -> list[Path]:
    """Write Markdown, the page, the CSV of all cells, and pictures as PNG and SVG.

    Parameters
    ----------
    report : Report
    folder : Path
        It must exist.

    Returns
    -------
    list of Path
    """
    cells = tables.cells_table(report.outcomes)
    files, drawings = write_parts(report.parts, [cells], folder)
    made = _made(report.plan)
    html = page(TITLE, report.lead, report.parts, drawings, made=made, broad=True)
    files.append(write_file(folder / MARKDOWN, markdown(report).encode()))
    files.append(write_file(folder / PAGE, html.encode()))
    return files


def markdown(report: Report) -> str:
    """Return the report as Markdown; its pictures are files beside it."""
    blocks = [f"# {TITLE}", report.lead]
    for part in report.parts:
        blocks += [f"## {part.title}", *part.text]
        blocks += [f"![{picture.caption}]({picture.name}.png)" for picture in part.pictures]
        for table in part.tables:
            blocks += [f"{table.title}:", table.markdown()] if table.rows else [f"{table.title}."]
    return "\n\n".join([*blocks, _made(report.plan)]) + "\n"


def _made(plan: Plan) -> str:
    return f"Made by finalist {finalist.__version__}: {plan.command}"
