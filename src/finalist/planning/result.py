"""The result of a plan: for each strategy, the pulls of every draw and their quantiles."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from finalist.extras import need
from finalist.files import finite
from finalist.problem import PerArm
from finalist.simulation.binomial import exact_interval
from finalist.text import counted

if TYPE_CHECKING:
    import pandas as pd


def quantile(values: Float[np.ndarray, " n"], share: float) -> float:
    """Return the smallest value that this share of the values does not exceed.

    It is always one of the values, so infinite ones are harmless (`np.quantile` subtracts them).

    Examples
    --------
    >>> quantile(np.array([3.0, 1.0, 2.0, np.inf]), 0.5)
    2.0
    """
    rank = math.ceil(share * len(values) - 1e-9)
    return float(np.sort(values)[max(rank, 1) - 1])


class Quantiles:
    """Quantiles of draws: `pulls` has one number per draw, infinite if it is undecided."""

    pulls: Float[np.ndarray, " draws"]

    def __post_init__(self) -> None:
        self.pulls.flags.writeable = False

    @property
    def median(self) -> float:
        """Half of the draws need at most this many; infinite if half are undecided."""
        return quantile(self.pulls, 0.5)

    @property
    def low(self) -> float:
        """The 5 % quantile."""
        return quantile(self.pulls, 0.05)

    @property
    def undecided(self) -> int:
        """Number of undecided draws."""
        return int(np.isinf(self.pulls).sum())


@dataclass(frozen=True, eq=False)
class PlanRow(Quantiles):
    """The pulls that one strategy needs.

    Attributes
    ----------
    name : str
        The strategy, with its settings if two have the same name, and with "(no proof)" if its
        delta is not proven.
    pulls : (draws,) array
        Pulls of each draw, or their cost if pulls cost different amounts; infinite if it ended
        undecided.
    wrong : int
        Draws with a wrong winner.
    """

    name: str
    pulls: Float[np.ndarray, " draws"]
    wrong: int

    @property
    def high(self) -> float:
        """The 90 % quantile."""
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
class BudgetRow(PlanRow):
    """How good the arm is that one strategy names by the end of a budget.

    Attributes
    ----------
    pulls : (draws,) array
        Infinite in draws that are not certain by then.
    wrong, right : int
        Draws in which a wrong arm is named, and in which the right one is.
    near : int or None
        Draws in which it is within `Plan.within` of the best.
    """

    right: int
    near: int | None

    def figures(self) -> dict[str, Any]:
        """Return the name and the numbers, without the draws."""
        near = {} if self.near is None else {"near": self.near}
        return {**super().figures(), "right": self.right, **near}


@dataclass(frozen=True, eq=False)
class Plan:
    """How many pulls to expect of each strategy.

    Attributes
    ----------
    rows : tuple of PlanRow
        The strategy asked for, then those compared with it, under the same parameters.
    gap : float or None
        How far the best arm leads in every draw; None if theta was given.
    sigma : float or tuple
        Of all arms, or of each.
    delta : float
    draws, max_pulls, seed : int
    lower_bound : float or None
        T* kl(delta, 1 - delta), averaged over the draws: the mean pulls that any method needs which
        keeps delta for every parameter. One that is told the lead or the parameter may need fewer.
        None if no such bound is known: with epsilon, for several winners, and for noise that is
        not Gaussian.
    unit : str
        "pulls", or "units of cost" if pulls cost different amounts.
    budget : int or None
        Draws end there, with a recommendation, and rows are `BudgetRow`.
    within : float or None
        With a budget: the difference from the best that is counted in `BudgetRow.near`.
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
    budget: int | None = None
    within: float | None = None

    def words(self) -> str:
        """Summarise the plan in one sentence."""
        first, *others = self.rows
        if first.high == 0:
            return "There is a single arm: no pull is needed."
        if self.budget is not None:
            return self._at_the_end(self.budget)
        unit = self.unit if math.isfinite(first.median) else "pulls"  # draws are cut by pulls
        text = f"Expect {expected(first.median, self.max_pulls)} {unit} with {first.name}"
        if math.isfinite(first.high):
            text += f", 90 % within {about(first.high, up=True)}"
        else:
            text += f"; {first.undecided} of {self.draws} draws were undecided there"
        for row in others:
            text += f"; {row.name} would need {expected(row.median, self.max_pulls)}"
            text += self._if_cut(row.median)
        return f"{text}."

    @property
    def named(self) -> tuple[BudgetRow, ...]:
        """The rows of a plan with a budget."""
        return tuple(row for row in self.rows if isinstance(row, BudgetRow))

    def _at_the_end(self, budget: int) -> str:
        """Say how good what is named with the budget is."""

        def cases(count: int) -> str:
            return f"{100.0 * count / self.draws:.0f}"

        first, *others = self.named
        money = self.unit != "pulls"
        what = f"a budget of {budget:,}" if money else counted(budget, "measurement")
        text = (
            f"With {what} {first.name} names the right one in about "
            f"{cases(first.right)} of 100 cases"
        )
        if first.near is not None:
            text += f", within {self.within:g} of the best in {cases(first.near)}"
        for row in others:
            near = "" if row.near is None else f" and {cases(row.near)}"
            text += f"; {row.name} in {cases(row.right)}{near}"
        return f"{text}."

    def remarks(self) -> list[str]:
        """Give the lower bound in words, if it is known; with a budget, how sure the cases are.

        It bounds a mean, so the mean of the first strategy is given with it.
        """
        if self.named:
            row = self.named[0]
            low, high = exact_interval(row.right, self.draws)
            certain = self.draws - row.undecided
            return [
                f"From {self.draws} simulated studies, right in {row.right}: 95 % interval "
                f"{100 * low:.0f} to {100 * high:.0f} of 100. In {certain} of them {row.name} was "
                f"certain at delta = {self.delta:g} by then, and stopped when it was."
            ]
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
        """Format pulls, or their cost, for a table; infinite means more than `max_pulls`."""
        if math.isfinite(pulls):
            return f"{pulls:,.0f}"
        return f"> {self.max_pulls:,}{self._if_cut(pulls)}"

    def _if_cut(self, value: float) -> str:
        """Name the unit of the cap if the numbers beside it are costs."""
        return "" if math.isfinite(value) or self.unit == "pulls" else " pulls"

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per strategy: name, median, low, high, mean, undecided, wrong."""
        need("Data frames", "pandas")
        import pandas as pd

        return pd.DataFrame([row.figures() for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; infinite numbers become None."""
        rows = [{**row.figures(), "pulls": row.pulls.tolist()} for row in self.rows]
        words = ["gap", "sigma", "delta", "draws", "max_pulls", "seed", "lower_bound", "unit"]
        words += [] if self.budget is None else ["budget", "within"]
        whole_plan = {"words": self.words(), **{word: getattr(self, word) for word in words}}
        found: dict[str, Any] = finite({**whole_plan, "rows": rows})
        return found

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        rows = [
            f"{row.name:<{width}}  median {self.shown(row.median)}, 90 % within "
            f"{self.shown(row.high)}, undecided {row.undecided}, wrong {row.wrong} of {self.draws}"
            for row in self.rows
        ]
        return "\n".join([self.words(), *self.remarks(), *rows])


def about(value: float, *, up: bool = False) -> str:
    """Format a number with two significant digits, rounded up if it is a promise.

    Examples
    --------
    >>> about(1234.0), about(1234.0, up=True), about(87.0), about(math.inf)
    ('1,200', '1,300', '87', 'infinite')
    """
    if not math.isfinite(value):
        return "infinite"
    step = 10 ** max(math.floor(math.log10(max(value, 1.0))) - 1, 0)
    rounded = math.ceil(value / step) if up else round(value / step)
    return f"{rounded * step:,}"


def expected(value: float, cap: int) -> str:
    """Put a number of pulls into words; beyond the cap it is unknown.

    Examples
    --------
    >>> expected(240.0, 1000), expected(math.inf, 1000)
    ('about 240', 'more than 1,000')
    """
    return f"about {about(value)}" if math.isfinite(value) else f"more than {cap:,}"
