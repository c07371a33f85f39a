"""The result of a plan: for each strategy, the measurements of every draw and their quantiles."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from finalist.extras import need
from finalist.files import finite
from finalist.planning.figures import Quantiles, about, enough, expected
from finalist.problem import PerArm, Problem
from finalist.shapes import Float
from finalist.simulation.binomial import exact_interval
from finalist.text import counted

if TYPE_CHECKING:
    import pandas as pd


#: What is counted, unless measurements cost different amounts.
Unit = Literal["measurements", "units of cost"]
MEASUREMENTS: Unit = "measurements"
#: Which truths are simulated where a lead is given (`planning.parameters`).
TRUTHS = (
    "In every simulated study the best candidate leads the second best by exactly this much. Where "
    "the others are is drawn at random: in four of five studies they spread freely, in one of five "
    "one candidate stands out from others that are more alike. If nearly all are close behind the "
    "best, a study takes longer."
)


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
        """Enough for 90 % of further studies (`enough`)."""
        return enough(self.pulls, 0.9)

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
    behind : (draws,) array or None
        The simple regret of each draw: how much worse it is than the best.
    """

    right: int
    near: int | None
    behind: Float[np.ndarray, " draws"] | None = None

    @property
    def regret(self) -> float | None:
        """The mean of `behind`."""
        return None if self.behind is None else float(self.behind.mean())

    def figures(self) -> dict[str, Any]:
        """Return the name and the numbers, without the draws."""
        near = {} if self.near is None else {"near": self.near}
        regret = {} if self.regret is None else {"regret": self.regret}
        return {**super().figures(), "right": self.right, **near, **regret}


@dataclass(frozen=True, eq=False)
class LeadRow:
    """What a plan expects at one lead.

    Attributes
    ----------
    lead : float
        Of the best arm over the second best.
    rows : tuple of PlanRow
        As in `Plan.rows`.
    fixed : float or None
        The measurements, or their cost, with which an experiment of fixed size names a winner in
        90 % of the draws: equal shares and one test at the end, at the same delta (Bonferroni,
        `planning.fixed`). Infinite above `Plan.max_pulls`; None where there is no such test.
    """

    lead: float
    rows: tuple[PlanRow, ...]
    fixed: float | None

    def figures(self) -> dict[str, Any]:
        """Return the numbers, without the draws."""
        rows = [row.figures() for row in self.rows]
        return {"lead": self.lead, "fixed": self.fixed, "rows": rows}


@dataclass(frozen=True, eq=False)
class Plan:
    """How many measurements to expect of each strategy.

    Attributes
    ----------
    rows : tuple of PlanRow
        The strategy asked for, then those compared with it, under the same parameters.
    gap : float or None
        How far the best arm leads in every draw; None if theta was given.
    sigma : float or tuple
        Of all arms, or of each: what was drawn with.
    delta : float
    draws, max_pulls, seed : int
    lower_bound : float or None
        Where theta is given: T* kl(delta, 1 - delta), the mean measurements that any method needs
        which keeps delta for every parameter. None with a gap, as an experiment that is planned for
        a lead may need fewer; with epsilon, for several winners, for unknown sigma, and for noise
        that is not Gaussian.
    unit : str
        "measurements", or "units of cost" if they cost different amounts.
    budget : int or None
        Draws end there, with a recommendation, and rows are `BudgetRow`.
    within : float or None
        With a budget: the difference from the best that is counted in `BudgetRow.near`.
    by_lead : tuple of LeadRow
        For the gap and further leads, the smallest first; empty with theta and with a budget.
    size : int or None
        Measurements of a batch.
    known : bool
        Whether the simulated studies know sigma.
    """

    rows: tuple[PlanRow, ...]
    gap: float | None
    sigma: PerArm | None
    delta: float
    draws: int
    max_pulls: int
    seed: int
    lower_bound: float | None
    unit: Unit = MEASUREMENTS
    budget: int | None = None
    within: float | None = None
    by_lead: tuple[LeadRow, ...] = ()
    size: int | None = None
    known: bool = True

    def words(self) -> str:
        """Summarise the plan in one sentence."""
        first, *others = self.rows
        if first.high == 0:
            return "There is a single candidate: no measurement is needed."
        if self.budget is not None:
            return self._at_the_end(self.budget)
        # Draws are cut by their number, whatever they cost.
        unit = self.unit if math.isfinite(first.median) else MEASUREMENTS
        text = f"Expect {expected(first.median, self.max_pulls)} {unit}{_by(first.name)}"
        if math.isfinite(first.high):
            text += f", 90 % within {about(first.high, up=True)}"
        else:
            text += f"; {first.undecided} of {self.draws} simulations had no winner by then"
        for row in others:
            text += f"; {called(row.name)} would need {expected(row.median, self.max_pulls)}"
            text += self._if_cut(row.median)
        return f"{text}."

    @property
    def fixed(self) -> float | None:
        """What an experiment of fixed size takes at this gap (`LeadRow.fixed`)."""
        return next((row.fixed for row in self.by_lead if row.lead == self.gap), None)

    @property
    def named(self) -> tuple[BudgetRow, ...]:
        """The rows of a plan with a budget."""
        return tuple(row for row in self.rows if isinstance(row, BudgetRow))

    def _at_the_end(self, budget: int) -> str:
        """Say how good what is named with the budget is."""

        def cases(count: int) -> str:
            return f"{100.0 * count / self.draws:.0f}"

        first, *others = self.named
        money = self.unit != MEASUREMENTS
        what = f"a budget of {budget:,}" if money else counted(budget, "measurement")
        text = (
            f"With {what} the study{_by(first.name)} names the right one in about "
            f"{cases(first.right)} of 100 cases"
        )
        if first.near is not None:
            text += f", within {self.within:g} of the best in {cases(first.near)}"
        for row in others:
            near = "" if row.near is None else f" and {cases(row.near)}"
            text += f"; {row.name} in {cases(row.right)}{near}"
        return f"{text}."

    def remarks(self) -> list[str]:
        """Say what else the same question takes, and what was assumed.

        A bound on a mean is given with the mean. With a budget: how sure the cases are.
        """
        if self.named:
            row = self.named[0]
            low, high = exact_interval(row.right, self.draws)
            certain = self.draws - row.undecided
            return [
                f"From {self.draws} simulated studies, right in {row.right}: 95 % interval "
                f"{100 * low:.0f} to {100 * high:.0f} of 100. {certain} of them were certain at "
                f"delta = {self.delta:g} by then, and stopped as soon as they were."
            ]
        if self.rows[0].high == 0:
            return []
        if self.gap is not None:
            return [*self._fixed_words(), TRUTHS]
        if self.lower_bound is None:
            return []
        if math.isinf(self.lower_bound):
            return ["The best candidates are tied: no number of measurements tells them apart."]
        first = self.rows[0]
        who = f"the study{_by(first.name)}"
        mean = f"On average over the simulations {who} needs about {about(first.mean)} {self.unit}."
        bound = (
            f"A method whose risk is at most {self.delta:g} whatever the truth is, not only with "
            f"this theta, needs at least about {about(self.lower_bound)} {self.unit} on average."
        )
        return [f"{mean} {bound}" if math.isfinite(first.mean) else bound]

    def _fixed_words(self) -> list[str]:
        """Say what an experiment of fixed size takes."""
        if self.fixed is None:
            return []
        takes = expected(self.fixed, self.max_pulls) + self._if_cut(self.fixed)
        return [
            "A fixed number of measurements in equal shares, with one test at the end (Bonferroni, "
            f"the same delta), takes {takes} to name the best in 90 % of such studies. Its size "
            "has to be right for the lead: if the true one is smaller, it often ends without an "
            "answer."
        ]

    def shown(self, pulls: float) -> str:
        """Format measurements, or their cost, for a table; infinite is more than `max_pulls`."""
        if math.isfinite(pulls):
            return f"{pulls:,.0f}"
        return f"> {self.max_pulls:,}{self._if_cut(pulls)}"

    def _if_cut(self, value: float) -> str:
        """Name the unit of the cap if the numbers beside it are costs."""
        return "" if math.isfinite(value) or self.unit == MEASUREMENTS else f" {MEASUREMENTS}"

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
        whole_plan |= {"size": self.size, "known": self.known, "fixed": self.fixed}
        leads = [row.figures() for row in self.by_lead]
        found: dict[str, Any] = finite({**whole_plan, "by_lead": leads, "rows": rows})
        return found

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        rows = [
            f"{row.name:<{width}}  median {self.shown(row.median)}, 90 % within "
            f"{self.shown(row.high)}, undecided {row.undecided}, wrong {row.wrong} of {self.draws}"
            for row in self.rows
        ]
        return "\n".join([self.words(), *self.remarks(), *rows])


def unit_of(problem: Problem) -> Unit:
    """Return what is counted."""
    return MEASUREMENTS if problem.cost == 1.0 else "units of cost"


def _by(name: str) -> str:
    """Name a strategy, unless it is the usual one."""
    return "" if name == "gauntlet" else f" with {name}"


def called(name: str) -> str:
    """Say in a sentence what is compared with."""
    return "the same test with equal shares" if name == "equal shares" else name
