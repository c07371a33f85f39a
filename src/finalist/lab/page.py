"""Reports as one HTML page: pictures inlined as SVG, no scripts, nothing from the network."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from finalist.charts.theme import AnyChart, save
from finalist.inference.bounds import Bound
from finalist.lab.tables import Table

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --muted: #616e7c; --rule: #d9dee3;
  --paper: #fdfdfc; --card: #ffffff; --good: #00694d; --bad: #a63f00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --muted: #a3adb8;
  --rule: #3a424b; --paper: #16191d; --card: #1d2126; --good: #5fd0ab; --bad: #ff9a5c; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 17px/1.6 Georgia, "Iowan Old Style", "Times New Roman", serif; }
main { max-width: 52rem; margin: 0 auto; padding: 3rem 1.25rem 5rem; }
main.broad { max-width: 78rem; }
main.broad th.n { white-space: normal; vertical-align: bottom; }
main.broad > p, main.broad > section > p { max-width: 52rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.35rem; margin: 3.2rem 0 .6rem; padding-top: .9rem;
  border-top: 1px solid var(--rule); }
.lead, figcaption, caption, .small { color: var(--muted); }
.lead { font-size: 1.1rem; margin: 0 0 1.8rem; }
.small { font-size: .85rem; }
figure { margin: 1.8rem 0; }
figure .card { background: #fff; border: 1px solid var(--rule); border-radius: 6px;
  padding: .4rem; overflow-x: auto; }
figure svg { display: block; max-width: 100%; height: auto; margin: 0 auto; }
figcaption { font-size: .9rem; margin-top: .5rem; }
.wide { overflow-x: auto; margin: 1.4rem 0; }
table { border-collapse: collapse; width: 100%;
  font: 14px/1.4 system-ui, "Helvetica Neue", Arial, sans-serif; }
caption { text-align: left; padding: .3rem 0; }
th { text-align: left; font-weight: 600; border-bottom: 1.5px solid var(--ink); }
th, td { padding: .3rem .7rem .3rem 0; vertical-align: top; }
td { border-bottom: 1px solid var(--rule); font-variant-numeric: tabular-nums; }
th.n, td.n { text-align: right; white-space: nowrap; }
td.v { white-space: nowrap; font-weight: 600; }
.holds { color: var(--good); } .fails { color: var(--bad); } .not { color: var(--muted); }
code { font: .88em ui-monospace, Menlo, Consolas, monospace; }
a { color: inherit; }
nav a { margin-right: 1.1rem; }
@media print { body { font-size: 11pt; background: #fff; color: #000; }
  main { max-width: none; padding: 0; } h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; } nav { display: none; } }
"""


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
    title : str
    text : tuple of str
        Paragraphs.
    findings : tuple of Finding
    tables : tuple of Table
    pictures : tuple of Picture
    """

    name: str
    title: str
    text: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()


def write_pictures(parts: Sequence[Part], folder: Path) -> tuple[list[Path], dict[str, str]]:
    """Write every picture as PNG and SVG; return the files, and the SVG of each by its name."""
    files: list[Path] = []
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
    title : str
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
    links = "".join(f'<a href="#{part.name}">{escape(part.title)}</a> ' for part in parts)
    body = [
        f'<nav class="small">{links}</nav>',
        _paragraphs(abstract),
        *(_section(part, drawings) for part in parts),
        "<h2>How this was made</h2>",
        _paragraphs([made]),
    ]
    content = "\n".join(filter(None, body))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main{' class="broad"' if broad else ""}>
<h1>{escape(title)}</h1>
<p class="lead">{escape(lead)}</p>
{content}
</main>
</body>
</html>
"""


def _section(part: Part, drawings: Mapping[str, str]) -> str:
    body = [
        _paragraphs(part.text),
        *(_figure(picture, drawings[picture.name]) for picture in part.pictures),
        _findings(part.findings) if part.findings else "",
        *(
            _table(table) if table.rows else _paragraphs([f"{table.title}."])
            for table in part.tables
            if table.where != "file"
        ),
    ]
    content = "\n".join(filter(None, body))
    return f'<section id="{part.name}">\n<h2>{escape(part.title)}</h2>\n{content}\n</section>'


def _paragraphs(texts: Sequence[str]) -> str:
    return "\n".join(f"<p>{escape(text)}</p>" for text in texts)


def _findings(findings: Sequence[Finding]) -> str:
    rows = "\n".join(
        f"<tr><td>{escape(f.claim)}</td><td>{f.constants or ''}</td>"
        f'<td class="v {f.verdict.split()[0]}">{f.verdict}</td>'
        f"<td>{escape(f.evidence)}</td></tr>"
        for f in findings
    )
    head = "<tr><th>The paper</th><th>Constants</th><th>Here</th><th>What came out</th></tr>"
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'


def _table(table: Table) -> str:
    marks = ['class="n"' if numeric else "" for numeric in table.numeric()]
    head = "".join(
        f"<th {mark}>{escape(column)}</th>"
        for mark, column in zip(marks, table.columns, strict=True)
    )
    rows = "\n".join(
        "<tr>"
        + "".join(f"<td {mark}>{escape(cell)}</td>" for mark, cell in zip(marks, row, strict=True))
        + "</tr>"
        for row in table.shown()
    )
    return (
        f'<div class="wide"><table><caption>{escape(table.title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _figure(picture: Picture, svg: str) -> str:
    return (
        f'<figure><div class="card">{inline(svg, picture.name, picture.caption)}</div>'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
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
