"""A part of the reproduction: text, findings, tables and pictures, before anything is written."""

from dataclasses import dataclass
from typing import Any

from finalist.inference.bounds import Bound
from finalist.lab.page import Picture
from finalist.lab.tables import Table


@dataclass(frozen=True)
class Finding:
    """A statement of the paper and what came out here.

    Attributes
    ----------
    claim : str
        What the paper says.
    holds : bool or None
        Whether it holds here; None where it cannot be compared.
    evidence : str
        The numbers, and where it fails.
    constants : "soare" or "sharp" or None
        Under which constants; None where they do not matter.
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
    """One section of the report.

    Attributes
    ----------
    name : str
        The word of the command line.
    title : str
    text : tuple of str
        Paragraphs.
    findings : tuple of Finding
    tables : tuple of Table
    pictures : tuple of Picture
    """

    name: str
    title: str
    text: tuple[str, ...]
    findings: tuple[Finding, ...]
    tables: tuple[Table, ...]
    pictures: tuple[Picture, ...]
