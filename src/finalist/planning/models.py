"""What each model of a table would cost: the measurements that a plan expects with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from finalist.arms import Arms
from finalist.arms.models import MODELS, check_model
from finalist.errors import FinalistError, ProblemError
from finalist.planning.figures import expected
from finalist.planning.prices import Prices, Terms
from finalist.planning.result import PlanRow
from finalist.problem import Problem, study_problem
from finalist.problem.remodel import with_model
from finalist.settings import ProblemWords, spelled_out_of_study
from finalist.simulation.engine import Shown
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
class ModelPrices(Prices):
    """How many pulls to expect of each model; `Prices` has the other attributes.

    Attributes
    ----------
    rows : tuple of ModelPrice
        In the order in which the models were given.
    impossible : dict of str to str
        Models that this question cannot have, and why.
    """

    rows: tuple[ModelPrice, ...]

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

    def price(self, model: str) -> str:
        """Say in a few words what a model costs."""
        row = next((row for row in self.rows if row.name == model), None)
        if row is None:
            return f"not possible: {self.impossible.get(model, 'it was not asked for')}"
        if row.same_as:
            return f"the same as {row.same_as}"
        middle = expected(row.median, self.max_pulls)
        return f"{middle} {self.unit}, 90 % within {self.shown(row.high)}"

    def typical(self, row: ModelPrice) -> str:
        """Say the features and the mean of a model."""
        return f"{row.features} features, {self.shown(row.mean)} on average"


@spelled_out_of_study
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
    size: int | None = None,
    guess: float | None = None,
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
    seed, n_jobs, max_pulls, size, guess, progress, **words
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
    terms = Terms.of(study_problem(arms, **words), gap, draws, max_pulls, seed, size, guess)
    asked, impossible = _asked(terms.problem, models)
    if not asked:
        raise ProblemError(f"no model is possible here: {next(iter(impossible.values()), '')}")
    first = {_kind(question.arms): name for name, question in reversed(asked.items())}
    plans = {name: terms.plan(asked[name], strategy, terms.gap) for name in first.values()}
    rows = terms.simulated(plans, n_jobs, progress)
    found = {row.name: row for row in rows}
    priced = []
    for name, question in asked.items():
        same = first[_kind(question.arms)]
        pulls, wrong = found[same].pulls, found[same].wrong
        rank = question.arms.rank
        priced.append(ModelPrice(name, pulls, wrong, rank, "" if same == name else same))
    return ModelPrices(tuple(priced), impossible, **terms.words())


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
