"""Real experiments with replicates, to try strategies on measured rewards.

Each table is a CSV file beside this module, one row per measurement; where they come from and
what was done to them is in SOURCES.md. A table becomes arms with features and, for each arm, the
values that were measured; drawing from those with replacement simulates further measurements.
"""

import csv
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, NamedTuple

import numpy as np

from finalist.arms import Arms
from finalist.errors import FinalistError
from finalist.extras import need
from finalist.inference.statistics import Statistics
from finalist.shapes import Float


@dataclass(frozen=True, eq=False)
class Replicates:
    """Arms with measured replicates.

    Attributes
    ----------
    arms : Arms
        K arms.
    rewards : tuple of K arrays
        The measured values of each arm, read-only.
    objective : "max" or "min"
        Whether the largest or the smallest mean is best.
    title, source, unit : str
        What was measured, where it was published, and the unit of the values.
    """

    arms: Arms
    rewards: tuple[Float[np.ndarray, " n"], ...]
    objective: Literal["max", "min"]
    title: str
    source: str
    unit: str

    def draw(self, arm: int, n: int, rng: np.random.Generator) -> Float[np.ndarray, " n"]:
        """Draw n measured values of an arm with replacement: `rewards=` of `simulate`.

        The mean of the draws is the measured mean of the arm, not the one that a linear model
        fits.

        Examples
        --------
        >>> table = load("oats")
        >>> arm = table.arms.index("Victory, 0.6 cwt")
        >>> table.rewards[arm]
        array([174., 100.,  86., 122., 116., 113.])
        >>> bool(np.isin(table.draw(arm, 100, np.random.default_rng(0)), table.rewards[arm]).all())
        True
        """
        values = self.rewards[arm]
        return values[rng.integers(len(values), size=n)]

    def statistics(self) -> Statistics:
        """Return all measurements summed up, as `least_squares.estimate` takes them."""
        statistics = Statistics.empty(len(self.arms))
        for arm, values in enumerate(self.rewards):
            statistics.add_many(np.full(len(values), arm), values)
        return statistics


class _Table(NamedTuple):
    """How to read a file: the column of values, the name of an arm, the features."""

    value: str
    name: str
    formula: str
    objective: Literal["max", "min"]
    title: str
    source: str
    unit: str


_TABLES = {
    "oats": _Table(
        value="yield",
        name="{variety}, {nitrogen} cwt",
        formula="C(variety) + nitrogen + I(nitrogen**2)",
        objective="max",
        title="Yield of three varieties of oats with four amounts of nitrogen",
        source="Yates (1935), Journal of the Royal Statistical Society Supplement 2, 181-247",
        unit="quarter pounds per plot of 1/80 acre",
    ),
    "cake": _Table(
        value="angle",
        name="recipe {recipe}, {temperature} F",
        formula="C(recipe) + C(temperature)",
        objective="max",
        title="Angle at which chocolate cakes of three recipes break, by baking temperature",
        source="Cook (1938); Cochran and Cox (1957), Experimental Designs, 2nd edition, page 300",
        unit="degrees",
    ),
    "weaving": _Table(
        value="breaks",
        name="wool {wool}, {tension} tension",
        formula="C(wool) * C(tension)",
        objective="min",
        title="Breaks of the warp in weaving two wools at three tensions",
        source="Tippett (1950), Technological Applications of Statistics, page 106",
        unit="breaks per loom, a fixed length of yarn",
    ),
    "plums": _Table(
        value="alive",
        name="{length}, {planted}",
        formula="C(length) + C(planted)",
        objective="max",
        title="Survival of cuttings of plum rootstocks by length and time of planting",
        source="Bartlett (1935), Journal of the Royal Statistical Society Supplement 2, 248-252",
        unit="1 alive, 0 dead",
    ),
}


def names() -> tuple[str, ...]:
    """Return the names of the tables.

    Examples
    --------
    >>> names()
    ('oats', 'cake', 'weaving', 'plums')
    """
    return tuple(_TABLES)


def load(name: str) -> Replicates:
    """Return a table of measured replicates.

    Parameters
    ----------
    name : "oats", "cake", "weaving" or "plums"

    Returns
    -------
    Replicates

    Examples
    --------
    >>> import finalist as fl
    >>> from finalist.inference.least_squares import estimate
    >>> table = load("plums")
    >>> table.arms.names
    ('long, at once', 'short, at once', 'long, in spring', 'short, in spring')
    >>> means = estimate(table.arms, table.statistics()).means()
    >>> theta = np.linalg.lstsq(table.arms.features, means)[0]
    >>> runs = fl.simulate(table.arms, theta, noise="bernoulli", rewards=table.draw, runs=5)
    >>> runs.correct.all()
    np.True_
    """
    if name not in _TABLES:
        raise FinalistError(f"there is no table {name!r}; load one of {', '.join(_TABLES)}.")
    need("Tables of measurements", "pandas", "formulaic")
    import pandas as pd

    table = _TABLES[name]
    text = (files(__package__) / f"{name}.csv").read_text(encoding="utf-8")
    # An arm is a combination of factors: the columns in its name.
    settings: dict[str, dict[str, str]] = {}
    values: dict[str, list[float]] = {}
    for row in csv.DictReader(text.splitlines()):
        arm = table.name.format_map(row)
        settings.setdefault(arm, {c: row[c] for c in row if f"{{{c}}}" in table.name})
        value, count = float(row[table.value]), int(row.get("count", 1))
        values.setdefault(arm, []).extend([value] * count)
    frame = pd.DataFrame(list(settings.values()))
    for column in frame.columns:
        if f"C({column})" not in table.formula:
            frame[column] = frame[column].astype(float)
    rewards = tuple(np.array(measured) for measured in values.values())
    for array in rewards:
        array.flags.writeable = False
    return Replicates(
        arms=Arms.from_formula(table.formula, frame, list(settings)),
        rewards=rewards,
        objective=table.objective,
        title=table.title,
        source=table.source,
        unit=table.unit,
    )
