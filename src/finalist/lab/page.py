"""Reports as one HTML page: pictures inlined as SVG, no scripts, nothing from the network."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from finalist.charts.theme import AnyChart, save
from finalist.files import write_file
from finalist.inference.bounds import Bound
from finalist.lab.tables import Table


@dataclass(frozen=True, eq=False)
class Picture:
    """A chart with the stem of its files and a caption."""

    name: str
    chart: AnyChart
    caption: str


@dataclass(frozen=True)
class Finding:
    """A claim of a paper and whether it holds here.

    Attributes
    ----------
    claim : str
        What the paper says.
    holds : bool or None
        None if it cannot be compared.
    evidence : str
        The numbers, and where the claim fails.
    constants : "soare" or "sharp" or None
        The constants it was checked under; None if they do not matter.
    """

    claim: str
    holds: bool | None
    evidence: str
    constants: Bound | None = None

    def record(self) -> dict[str, Any]:
        """Return the finding for JSON."""
        return {
            "claim": self.claim,
            "constants": self.constants,
            "holds": self.holds,
            "evidence": self.evidence,
        }

    @property
    def verdict(self) -> str:
        """The answer in a word or two."""
        if self.holds is None:
            return "not comparable"
        return "holds" if self.holds else "fails"


@dataclass(frozen=True, eq=False)
class Part:
    """One section of a report, before anything is written.

    Attributes
    ----------
    name : str
        Its anchor on the page; for the paper, also the word on the command line.
    text : tuple of str
        Paragraphs.
    """

    name: str
    title: str
    text: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()


def write_parts(
    parts: Sequence[Part], tables: Iterable[Table], folder: Path
) -> tuple[list[Path], dict[str, str]]:
    """Write tables as CSV, and every picture as PNG and SVG.

    Returns
    -------
    list of Path, dict of str to str
        The files, and the SVG of each picture by its name.
    """
    files = [write_file(folder / f"{table.name}.csv", table.csv().encode()) for table in tables]
    drawings: dict[str, str] = {}
    for picture in (picture for part in parts for picture in part.pictures):
        files += [save(picture.chart, folder / f"{picture.name}.{end}") for end in ("png", "svg")]
        drawings[picture.name] = files[-1].read_text(encoding="utf-8")
    return files, drawings


def page(
    title: str,
    lead: str,
    parts: Sequence[Part],
    drawings: Mapping[str, str],
    *,
    made: str,
    abstract: Sequence[str] = (),
    broad: bool = False,
) -> str:
    """Return a whole page.

    Parameters
    ----------
    lead : str
        One or two sentences below the title.
    parts : sequence of Part
        The sections, in order.
    drawings : mapping of str to str
        The SVG of each picture by its name.
    made : str
        How the numbers were made.
    abstract : sequence of str
        Paragraphs before the sections.
    broad : bool
        Leave room for tables with many columns.
    """
    from jinja2 import Environment, FileSystemLoader

    folder = FileSystemLoader(Path(__file__).parent)
    pages = Environment(loader=folder, autoescape=True, keep_trailing_newline=True)
    return pages.get_template("page.html").render(
        title=title,
        lead=lead,
        parts=parts,
        drawings=drawings,
        made=made,
        abstract=abstract,
        broad=broad,
        inline=inline,
    )


def inline(svg: str, name: str, label: str) -> str:
    """Return an SVG whose ids cannot clash with others on the page, with an accessible label.

    Examples
    --------
    >>> inline('<svg width="1"><g id="a"/><g clip-path="url(#a)"/></svg>', "p", "A dot")
    '<svg role="img" aria-label="A dot" width="1"><g id="p-a"/><g clip-path="url(#p-a)"/></svg>'
    """
    own = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    own = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", own)
    own = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', own)
    return own.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
