"""What a plan says: for each strategy the pulls of every draw, and their quantiles."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from finalist.planning.figures import Quantiles, about, expected, quantile
from finalist.problem.noise import PerArm

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class PlanRow(Quantiles):
    """What one strategy needs.

    Attributes
    ----------
    name : str
        The strategy; with its settings if there are two of the same name, and with "(no proof)"
        if its delta is not proven.
    pulls : (draws,) array
        Pulls of each draw, or their cost where pulls cost different amounts; infinite where it
        ended undecided.
    wrong : int
        Draws with a wrong winner.
    """

    name: str
    pulls: Float[np.ndarray, " draws"]
    wrong: int

    @property
    def high(self) -> float:
        """The 90 % quantile: nine draws in ten are within it."""
        return quantile(self.pulls, 0.9)

    @property
    def mean(self) -> float:
        """Infinite if a draw is undecided."""
        return float(self.pulls.mean())

    def figures(self) -> dict[str, Any]:
        """Return the name and the numbers, without the draws."""
        words = ("name", "median", "low", "high", "mean", "undecided", "wrong")
        return {word: getattr(self, word) for word in words}


@dataclass(frozen=True, eq=False)
class Plan:
    """How many pulls to expect of each strategy.

    Attributes
    ----------
    rows : tuple of PlanRow
        The strategy asked for, then those it is compared with, under the same parameters.
    gap : float or None
        How far the best arm leads in every draw; None if theta was given.
    sigma : float or tuple
        Of all arms, or of each.
    delta : float
    draws, max_pulls, seed : int
    lower_bound : float or None
        T* kl(delta, 1 - delta), the mean over the draws: a method that keeps delta for every
        parameter needs so many pulls on average. One that is told the lead, or the parameter, may
        need fewer. None where no such bound is known: with epsilon, for several winners, and for
        noise that is not Gaussian.
    unit : str
        "pulls", or "units of cost" where pulls cost different amounts.
    """

    rows: tuple[PlanRow, ...]
    gap: float | None
    sigma: PerArm | None
    delta: float
    draws: int
    max_pulls: int
    seed: int
    lower_bound: float | None
    unit: str = "pulls"

    def words(self) -> str:
        """Say it in one sentence."""
        first, *others = self.rows
        if first.high == 0:
            return "There is a single arm: no pull is needed."
        unit = self.unit if math.isfinite(first.median) else "pulls"  # by which draws are cut
        text = f"Expect {expected(first.median, self.max_pulls)} {unit} with {first.name}"
        if math.isfinite(first.high):
            text += f", 90 % within {about(first.high, up=True)}"
        else:
            text += f"; {first.undecided} of {self.draws} draws were undecided there"
        for row in others:
            text += f"; {row.name} would need {expected(row.median, self.max_pulls)}"
            text += self._if_cut(row.median)
        return f"{text}."

    def remarks(self) -> list[str]:
        """Say what a method needs on average that keeps delta everywhere, if that is known.

        It is a bound on a mean, so the mean of the first strategy stands beside it.
        """
        if self.lower_bound is None:
            return []
        if math.isinf(self.lower_bound):
            return ["The best arms are tied: no number of pulls tells them apart."]
        first, here = self.rows[0], "with this theta" if self.gap is None else "at this lead"
        mean = f"On average over the draws {first.name} needs about {about(first.mean)} {self.unit}"
        bound = (
            f"A method whose risk is at most {self.delta:g} whatever the truth is, not only "
            f"{here}, needs at least about {about(self.lower_bound)} {self.unit} on average."
        )
        return [f"{mean}. {bound}" if math.isfinite(first.mean) else bound]

    def shown(self, pulls: float) -> str:
        """Return pulls, or their cost, for a table; what is infinite is more than `max_pulls`."""
        if math.isfinite(pulls):
            return f"{pulls:,.0f}"
        return f"> {self.max_pulls:,}{self._if_cut(pulls)}"

    def _if_cut(self, value: float) -> str:
        """Name the unit of the cap where the numbers beside it are costs."""
        return "" if math.isfinite(value) or self.unit == "pulls" else " pulls"

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per strategy: name, median, low, high, mean, undecided, wrong."""
        import pandas as pd

        return pd.DataFrame([row.figures() for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Return everything in values that JSON can hold; what is infinite is None."""
        rows = [{**row.figures(), "pulls": row.pulls.tolist()} for row in self.rows]
        words = ("gap", "sigma", "delta", "draws", "max_pulls", "seed", "lower_bound", "unit")
        whole_plan = {"words": self.words(), **{word: getattr(self, word) for word in words}}
        finite: dict[str, Any] = _finite({**whole_plan, "rows": rows})
        return finite

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        rows = [
            f"{row.name:<{width}}  median {self.shown(row.median)}, 90 % within "
            f"{self.shown(row.high)}, undecided {row.undecided}, wrong {row.wrong} of {self.draws}"
            for row in self.rows
        ]
        return "\n".join([self.words(), *self.remarks(), *rows])


def _finite(value: Any) -> Any:
    """Return a value of lists and dicts with None for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
