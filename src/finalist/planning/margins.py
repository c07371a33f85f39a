"""What a margin would save: the measurements that a plan expects without one and with several.

A margin is worth most where the best are close together, and nobody knows beforehand how close they
are. So every margin is simulated twice: with the lead that was given, and with all candidates
closer together.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from finalist.arms import Arms
from finalist.errors import FinalistError, ProblemError
from finalist.planning.figures import expected
from finalist.planning.prices import Prices, Terms
from finalist.planning.result import PlanRow
from finalist.problem import Problem, study_problem
from finalist.problem.remodel import with_margin
from finalist.settings import ProblemWords, spelled_out_of_study
from finalist.simulation.engine import Shown
from finalist.strategies import Strategy

#: The margins that are compared unless others are given, in leads.
STEPS = (0.25, 0.5, 1.0, 2.0)
#: The second lead, in leads: all candidates are closer together by this factor.
CLOSE = 0.25


@dataclass(frozen=True, eq=False)
class MarginPrice(PlanRow):
    """The pulls that one margin needs with one lead; its `name` has both.

    Attributes
    ----------
    margin : float
        0 for none: the best arm is sought.
    lead : float
        How far the best arm leads in every draw.
    """

    margin: float
    lead: float

    def figures(self) -> dict[str, Any]:
        """Return the margin, the lead and the numbers, without the draws."""
        first = {"margin": self.margin, "lead": self.lead}
        return first | {k: v for k, v in super().figures().items() if k != "name"}


@dataclass(frozen=True, eq=False)
class MarginPrices(Prices):
    """How many pulls to expect of each margin; `Prices` has the other attributes.

    Attributes
    ----------
    rows : tuple of MarginPrice
        By margin, none first, each with the lead that was given and then with the close one.
    impossible : dict of str to str
        Margins that this question cannot have, and why.
    chosen : float
        The margin that the sentence speaks of: the one of the question, or that nearest the lead.
    """

    rows: tuple[MarginPrice, ...]
    chosen: float = 0.0

    @property
    def margins(self) -> tuple[float, ...]:
        """The margins, 0 for none."""
        return tuple(dict.fromkeys(row.margin for row in self.rows))

    @property
    def leads(self) -> tuple[float, ...]:
        """The lead that was given, and the close one."""
        return tuple(dict.fromkeys(row.lead for row in self.rows))

    def row(self, margin: float, lead: float) -> MarginPrice:
        """Return what one margin needs with one lead."""
        return next(row for row in self.rows if (row.margin, row.lead) == (margin, lead))

    def words(self) -> str:
        """Say what the chosen margin saves, and which margins cannot be."""
        wide, close = self.leads
        with_, beside = f"with a margin of {self.chosen:g}", f" {self.unit}"
        parts = [f"If the best leads by {wide:g}, expect {self._both(wide, with_, beside)}"]
        times = f"If all are {1.0 / CLOSE:g} times closer together (a lead of {close:g})"
        parts.append(f"{times}, {self._both(close, 'with it')}")
        parts += [f"Not possible, {name}: {why}" for name, why in self.impossible.items()]
        return " ".join(f"{part.removesuffix('.')}." for part in parts)

    def _both(self, lead: float, with_: str, beside: str = "") -> str:
        """Say what is expected without a margin and with the chosen one."""
        here = self.row(self.chosen, lead).median
        if 0.0 not in self.margins:
            return f"{expected(here, self.max_pulls)}{beside} {with_}"
        none = self.row(0.0, lead).median
        return (
            f"{expected(none, self.max_pulls)}{beside} without a margin and "
            f"{expected(here, self.max_pulls)} {with_}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; infinite numbers become None."""
        return super().to_dict() | {"chosen": self.chosen}

    def typical(self, row: MarginPrice) -> str:
        """Say the median of a margin."""
        return f"{self.shown(row.median)} (median)"


@spelled_out_of_study
def margin_prices(
    arms: Arms | Problem,
    *,
    gap: float,
    margins: Sequence[float] | None = None,
    strategy: Strategy | str = "gauntlet",
    draws: int = 20,
    seed: int = 0,
    n_jobs: int = 1,
    max_pulls: int | None = None,
    size: int | None = None,
    guess: float | None = None,
    progress: Shown = None,
    **words: Unpack[ProblemWords],
) -> MarginPrices:
    """Say how many pulls to expect without a margin and with several.

    A margin (`epsilon`) is the difference that would not matter to you. All margins are tried on
    the same truths: those of `plan` with this gap, and the same with all candidates four times
    closer together, where a study without a margin takes long.

    Parameters
    ----------
    arms : Arms or Problem
        The arms, with the settings in `words`; or the problem. Its own epsilon is one of the
        margins.
    gap : float
        How far the best arm leads the second best, in units of the reward.
    margins : sequence of float, optional
        By default a quarter of the gap, half of it, the gap, and twice the gap. No margin is always
        compared too.
    strategy : str or Strategy
    draws : int
        How often each margin is simulated with each lead.
    seed, n_jobs, max_pulls, size, guess, progress, **words
        As in `plan`.

    Returns
    -------
    MarginPrices

    Raises
    ------
    ProblemError
        For questions in which a margin has no proof: the m best (`top`).

    Examples
    --------
    >>> import finalist as fl
    >>> found = fl.margin_prices(fl.Arms.unstructured(3), sigma=1.0, gap=0.5, draws=5)
    >>> found.margins, found.leads
    ((0.0, 0.125, 0.25, 0.5, 1.0), (0.5, 0.125))
    >>> found.row(0.5, 0.125).median < found.row(0.0, 0.125).median
    True
    """
    problem = study_problem(arms, **words)
    terms = Terms.of(problem, gap, draws, max_pulls, seed, size, guess)
    leads = (terms.gap, CLOSE * terms.gap)
    asked, impossible = _asked(terms, _wanted(problem, terms.gap, margins), strategy)
    some = [margin for margin in asked if margin > 0.0]
    plans = {
        f"{_called(margin)}, lead {lead:g}": (margin, lead, terms.plan(question, strategy, lead))
        for margin, question in asked.items()
        for lead in leads
    }
    rows = terms.simulated({name: runs for name, (*_, runs) in plans.items()}, n_jobs, progress)
    priced = [MarginPrice(row.name, row.pulls, row.wrong, *plans[row.name][:2]) for row in rows]
    return MarginPrices(
        tuple(priced),
        impossible,
        **terms.words(),
        chosen=problem.epsilon or min(some, key=lambda margin: abs(math.log(margin / terms.gap))),
    )


def _called(margin: float) -> str:
    return "no margin" if margin == 0.0 else f"margin {margin:g}"


def _wanted(problem: Problem, gap: float, margins: Sequence[float] | None) -> list[float]:
    """Return the margins to compare in increasing order, 0 among them."""
    given = [step * gap for step in STEPS] if margins is None else list(margins)
    checked = [with_margin(problem, margin).epsilon for margin in [*given, problem.epsilon]]
    if not any(checked):
        raise ProblemError("no margin is given; give some, or leave margins out.")
    return sorted({0.0, *checked})


def _asked(
    terms: Terms, margins: Sequence[float], strategy: Strategy | str
) -> tuple[dict[float, Problem], dict[str, str]]:
    """Return the question with each margin, and why the strategy cannot have the others."""
    asked: dict[float, Problem] = {}
    refused: dict[str, FinalistError] = {}
    for margin in margins:
        question = with_margin(terms.problem, margin)
        chosen = terms.plan(question, strategy, terms.gap).task(0).strategy
        try:
            chosen.start(question)
            asked[margin] = question
        except FinalistError as error:
            refused[_called(margin)] = error
    if not any(asked):
        raise next(reversed(refused.values()))
    return asked, {name: str(error) for name, error in refused.items()}
