"""What each model of a table would cost: the measurements that a plan expects with it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from finalist.arms import Arms
from finalist.arms.models import MODELS, check_model
from finalist.errors import FinalistError, ProblemError
from finalist.files import finite
from finalist.planning.engine import MAX_PULLS, Draws, checked_gap, refuse_budget, rows_of
from finalist.planning.result import PlanRow, expected
from finalist.problem import Problem, as_problem
from finalist.problem.remodel import with_model
from finalist.settings import ProblemWords, spelled_out
from finalist.simulation.engine import Shown, collect
from finalist.simulation.task import Outcome, whole
from finalist.strategies import Strategy
from finalist.text import listed


@dataclass(frozen=True, eq=False)
class ModelPrice(PlanRow):
    """The pulls that one model needs; its `name` is the model.

    Attributes
    ----------
    features : int
        How many numbers describe the means: the rank of the features, with the constant.
    same_as : str
        A model before it that says the same of this table; empty if there is none.
    """

    features: int
    same_as: str = ""

    def figures(self) -> dict[str, Any]:
        """Return the model and the numbers, without the draws."""
        first = {"model": self.name, "features": self.features}
        rest = {k: v for k, v in super().figures().items() if k != "name"}
        return first | rest | {"same_as": self.same_as or None}


@dataclass(frozen=True, eq=False)
class ModelPrices:
    """How many pulls to expect of each model.

    Attributes
    ----------
    rows : tuple of ModelPrice
        In the order in which the models were given.
    impossible : dict of str to str
        Models that this question cannot have, and why.
    gap, delta : float
    draws, max_pulls, seed : int
    unit : str
        "measurements", or "units of cost" if pulls cost different amounts.
    """

    rows: tuple[ModelPrice, ...]
    impossible: dict[str, str]
    gap: float
    delta: float
    draws: int
    max_pulls: int
    seed: int
    unit: str = "measurements"

    def words(self) -> str:
        """Summarise the prices in a sentence, and say which models add nothing or cannot be."""
        told = [row for row in self.rows if not row.same_as]
        parts = [f"{row.name} {expected(row.median, self.max_pulls)}" for row in told]
        parts[0] += f" {self.unit}"
        same = [(row.name, row.same_as) for row in self.rows if row.same_as]
        sentences = [", ".join(parts)]
        sentences += [f"{name} is the same as {other} for this table" for name, other in same]
        sentences += [f"{name} is not possible: {why}" for name, why in self.impossible.items()]
        return f"{'; '.join(s.removesuffix('.') for s in sentences)}."

    def shown(self, pulls: float) -> str:
        """Format pulls, or their cost, for a table; infinite means more than `max_pulls`."""
        return f"{pulls:,.0f}" if math.isfinite(pulls) else f"> {self.max_pulls:,}"

    def price(self, model: str) -> str:
        """Say in a few words what a model costs."""
        row = next((row for row in self.rows if row.name == model), None)
        if row is None:
            return f"not possible: {self.impossible.get(model, 'it was not asked for')}"
        if row.same_as:
            return f"the same as {row.same_as}"
        middle = expected(row.median, self.max_pulls)
        return f"{middle} {self.unit}, 90 % within {self.shown(row.high)}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; infinite numbers become None."""
        words = ("impossible", "gap", "delta", "draws", "max_pulls", "seed", "unit")
        whole_ = {"words": self.words(), **{word: getattr(self, word) for word in words}}
        found: dict[str, Any] = finite({**whole_, "rows": [row.figures() for row in self.rows]})
        return found

    def __str__(self) -> str:
        lines = [
            f"{row.name}: {row.features} features, {self.shown(row.mean)} on average, 90 % within "
            f"{self.shown(row.high)}, undecided {row.undecided} of {self.draws}"
            for row in self.rows
        ]
        return "\n".join([self.words(), *lines])


@spelled_out
def model_prices(
    arms: Arms | Problem,
    *,
    gap: float,
    models: Sequence[str] = MODELS,
    strategy: Strategy | str = "gauntlet",
    draws: int = 20,
    seed: int = 0,
    n_jobs: int = 1,
    max_pulls: int | None = None,
    progress: Shown = None,
    **words: Unpack[ProblemWords],
) -> ModelPrices:
    """Say how many pulls to expect of each model of the same table.

    For each model the truth is drawn from that model, with the best arm `gap` ahead, as `plan` does
    it. A model with more features can follow more shapes and needs more pulls for it.

    Parameters
    ----------
    arms : Arms or Problem
        The arms, with the settings in `words`; or the problem.
    gap : float
        How far the best arm leads the second best, in units of the reward.
    models : sequence of str
        Of "straight", "bending", "surface" and "separate"; see `Arms.with_model`.
    strategy : str or Strategy
    draws : int
        How often each model is simulated.
    seed, n_jobs, max_pulls, progress, **words
        As in `plan`.

    Returns
    -------
    ModelPrices

    Examples
    --------
    >>> import finalist as fl
    >>> arms = fl.Arms([[1.0], [2.0], [3.0], [4.0], [5.0]]).with_intercept()
    >>> prices = fl.model_prices(arms, sigma=1.0, gap=0.5, draws=5)
    >>> [(row.name, row.features) for row in prices.rows]
    [('straight', 2), ('bending', 3), ('surface', 3), ('separate', 5)]
    >>> prices.rows[2].same_as
    'bending'
    """
    problem = as_problem(arms, **words)
    limit, problem = problem.budget, problem.with_(budget=None)
    if problem.noise.sigma is None:
        raise ProblemError(
            "sigma is None, unknown; prices are simulated and need a guess of it, such as sigma=1."
        )
    number, start, lead = whole("draws", draws, 1), whole("seed", seed, 0), checked_gap(gap)
    cap = MAX_PULLS if max_pulls is None else whole("max_pulls", max_pulls, 1)
    cap = cap if limit is None else min(cap, limit)
    asked, impossible = _asked(problem, models)
    if not asked:
        raise ProblemError(f"no model is possible here: {next(iter(impossible.values()), '')}")
    first = {_kind(question.arms): name for name, question in reversed(asked.items())}
    plans = {
        name: Draws(asked[name], (strategy,), lead, None, start, cap) for name in first.values()
    }
    for one in plans.values():
        refuse_budget(one.task(0).strategy)
    together = _Together(tuple(plans.values()))
    outcomes = collect(together, range(number * len(plans)), n_jobs, progress)
    if len(outcomes) < number * len(plans):
        raise KeyboardInterrupt
    rows = rows_of(list(plans), outcomes, [one.problem.costs for one in plans.values()])
    found = {row.name: row for row in rows}
    priced = []
    for name, question in asked.items():
        same = first[_kind(question.arms)]
        pulls, wrong = found[same].pulls, found[same].wrong
        rank = question.arms.rank
        priced.append(ModelPrice(name, pulls, wrong, rank, "" if same == name else same))
    unit = "measurements" if problem.cost == 1.0 else "units of cost"
    return ModelPrices(tuple(priced), impossible, lead, problem.delta, number, cap, start, unit)


@dataclass(frozen=True, eq=False)
class _Together:
    """The runs of several plans, numbered: every plan under draw 0, then under draw 1."""

    plans: tuple[Draws, ...]

    def run(self, index: int) -> Outcome:
        """Simulate the run with this number."""
        draw, which = divmod(index, len(self.plans))
        return self.plans[which].run(draw)._replace(run=index)


def _asked(problem: Problem, models: Sequence[str]) -> tuple[dict[str, Problem], dict[str, str]]:
    """Return the question with each model, and why it cannot have the others."""
    names = [models] if isinstance(models, str) else list(dict.fromkeys(models))
    if not names:
        raise ProblemError(f"no model is given; use some of {listed(MODELS)}.")
    asked, impossible = {}, {}
    for name in names:
        check_model(name)
        try:
            asked[name] = with_model(problem, name)
        except FinalistError as error:
            impossible[name] = str(error)
    return asked, impossible


def _kind(arms: Arms) -> tuple[object, ...]:
    """Return what is the same for models that say the same of these arms."""
    if arms.rank == len(arms) and bool(np.all(arms.measurable)):
        return (len(arms),)  # nothing, like separate arms
    return (len(arms), *arms.feature_names)
