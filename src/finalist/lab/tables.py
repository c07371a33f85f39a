"""A table of results: the same one for a CSV file, the terminal, JSON, Markdown and the page."""

import csv
import io
import math
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Table:
    """Rows under named columns.

    Attributes
    ----------
    name : str
        The stem of its file.
    title : str
        One line for people.
    rows : tuple of tuples
        Numbers, text, or None for an empty cell.
    where : "everywhere", "page" or "file"
        Every table is written to a file. "page": it is also on the page, but too wide for a
        terminal. "file": it is for programs and shown nowhere else.
    figures : bool
        Right-align all columns but the first, even if their numbers are text.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    where: Literal["everywhere", "page", "file"] = "everywhere"
    figures: bool = False

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows), self.name

    def csv(self) -> str:
        """Return the table as CSV with numbers in full; None is an empty field."""
        buffer = io.StringIO(newline="")
        writer = csv.writer(buffer)
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return buffer.getvalue()

    def markdown(self) -> str:
        r"""Return the table as Markdown.

        Examples
        --------
        >>> print(Table("t", "T", ("arm", "pulls"), (("a|b", 1234),)).markdown())
        | arm | pulls |
        |---|---:|
        | a\|b | 1,234 |
        """
        lines = [
            "| " + " | ".join(_cell(text) for text in self.columns) + " |",
            "|" + "|".join("---:" if number else "---" for number in self.numeric()) + "|",
        ]
        lines += ["| " + " | ".join(_cell(text) for text in row) + " |" for row in self.shown()]
        return "\n".join(lines)

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping from column to value for each row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def shown(self) -> list[list[str]]:
        """Return the rows as text for people."""
        return [[shown(value) for value in row] for row in self.rows]

    def numeric(self) -> list[bool]:
        """Return which columns hold numbers and are right-aligned."""
        if self.figures:
            return [False] + [True] * (len(self.columns) - 1)
        return [
            all(row[i] is None or isinstance(row[i], int | float) for row in self.rows)
            for i in range(len(self.columns))
        ]


def _cell(text: str) -> str:
    """Escape text for a Markdown cell."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def shown(value: Any) -> str:
    """Format a value for people: thousands with commas, otherwise about four digits.

    Examples
    --------
    >>> [shown(v) for v in (1234567, 1234567.8, 0.123456, 2.5, None, "x")]
    ['1,234,567', '1,234,568', '0.1235', '2.5', '', 'x']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "infinite"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def compact(value: float) -> str:
    """Format a number of pulls with three significant digits.

    Examples
    --------
    >>> [compact(v) for v in (53_530, 2_512_345, 999, 15_300_000)]
    ['53,500', '2.51 million', '999', '15.3 million']
    """
    if value >= 1e6:
        return f"{value / 1e6:.3g} million"
    if value < 100:
        return f"{value:.3g}"
    unit = 10 ** (math.floor(math.log10(value)) - 2)
    return f"{round(value / unit) * unit:,}"
