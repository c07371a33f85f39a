"""How results are shown: settings that decide nothing and go wherever results go."""

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a problem, a status and a batch of pulls say beside results.

    A field added here is a key of the JSON of statuses and batches and a column of sheets.

    Attributes
    ----------
    unit : str or None
        The unit of the rewards, and so of estimates and intervals, for people: "kg".

    Examples
    --------
    >>> weights = Shown(unit="kg")
    >>> weights.in_unit("Mean"), weights.with_unit("0.5"), Shown().in_unit("Mean")
    ('Mean (kg)', '0.5 kg', 'Mean')
    """

    unit: str | None = None

    def in_unit(self, word: str) -> str:
        """Return a word for something in the unit of the rewards, with the unit if there is one."""
        return word if self.unit is None else f"{word} ({self.unit})"

    def with_unit(self, number: str) -> str:
        """Return a number with the unit if there is one."""
        return number if self.unit is None else f"{number} {self.unit}"

    def beside(self) -> dict[str, Any]:
        """Return what is shown beside results, by its name.

        Examples
        --------
        >>> Shown(unit="kg").beside()
        {'unit': 'kg'}
        """
        return {name: getattr(self, name) for name in BESIDE}


#: The names of what is shown beside results.
BESIDE = tuple(field.name for field in fields(Shown))
