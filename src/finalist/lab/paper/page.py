"""The reproduction as one HTML page."""

from collections.abc import Sequence
from html import escape

import finalist
from finalist.lab.page import contents, document, figure, paragraphs, section, table_part
from finalist.lab.paper.parts import Finding, Part


def page(
    parts: Sequence[Part], abstract: Sequence[str], settings: str, drawings: dict[str, str]
) -> str:
    """Return the page.

    Parameters
    ----------
    parts : sequence of Part
        The sections, in order.
    abstract : sequence of str
        Paragraphs before them.
    settings : str
        One line that says how the numbers were made.
    drawings : dict of str to str
        The SVG of each picture by its name.
    """
    title = "Best-arm identification in linear bandits, run again"
    lead = (
        "The experiment, the figures and the appendix of Soare, Lazaric and Munos (NIPS 2014), "
        f"computed with finalist {finalist.__version__}."
    )
    body = [
        contents({part.name: part.title for part in parts}),
        paragraphs(abstract),
        *(section(part.name, part.title, _body(part, drawings)) for part in parts),
        "<h2>How this was made</h2>",
        paragraphs([settings]),
    ]
    return document(title, lead, "\n".join(body))


def _body(part: Part, drawings: dict[str, str]) -> str:
    pictures = "\n".join(figure(picture, drawings[picture.name]) for picture in part.pictures)
    tables = "\n".join(table_part(table) for table in part.tables if table.where != "file")
    return f"{paragraphs(part.text)}\n{pictures}\n{_findings(part.findings)}\n{tables}"


def _findings(findings: Sequence[Finding]) -> str:
    rows = "\n".join(
        f"<tr><td>{escape(f.claim)}</td><td>{f.constants or ''}</td>"
        f'<td class="v {f.verdict.split()[0]}">{f.verdict}</td>'
        f"<td>{escape(f.evidence)}</td></tr>"
        for f in findings
    )
    head = "<tr><th>The paper</th><th>Constants</th><th>Here</th><th>What came out</th></tr>"
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'
