"""How many pulls are still needed: the strategy is simulated forward from its present state.

Parameters are drawn from what the rewards so far leave possible. A draw that ends undecided counts
as infinite, so that quantiles say only what is known: "more than".
"""

import copy
import math
from dataclasses import dataclass

import numpy as np

from finalist.errors import EstimateError
from finalist.inference.least_squares import Estimate
from finalist.inference.pooling import batch_arms
from finalist.planning.figures import Quantiles, about, expected, quantile
from finalist.problem import Problem
from finalist.shapes import Float
from finalist.strategies import Run
from finalist.text import counted

#: A draw is cut after FURTHER times the pulls so far, counting at least EARLY per dimension. A
#: median beyond FAR times as many is not worth waiting for.
FURTHER, EARLY, FAR = 50, 20, 10


@dataclass(frozen=True, eq=False)
class Forecast(Quantiles):
    """How many pulls are still needed, by draws of the parameter.

    Attributes
    ----------
    pulls : (draws,) array
        Further pulls of each draw; infinite if it reached the cap undecided.
    cap : int
        Further pulls after which a draw was cut.
    cost : (draws,) array or None
        Cost of those pulls, if pulls of different arms cost different amounts.
    remedy : str or None
        What helps, in words, if candidates are so close that no end is in sight.
    """

    pulls: Float[np.ndarray, " draws"]
    cap: int
    cost: Float[np.ndarray, " draws"] | None = None
    remedy: str | None = None

    @property
    def high(self) -> float:
        """The 95 % quantile; infinite if more than 5 % are undecided."""
        return quantile(self.pulls, 0.95)

    def words(self) -> str:
        """Summarise the forecast in a sentence or two.

        Examples
        --------
        >>> Forecast(np.array([180.0, 240.0, 510.0]), cap=10_000).words()
        'About 240 more measurements, with 90 % between 180 and 510.'
        >>> Forecast(np.array([18.0, 24.0, 51.0]), 10_000, np.array([30.0, 40.0, 90.0])).words()
        'About 24 more measurements, ... between 18 and 51. They cost about 40, between 30 and 90.'
        """
        if self.remedy is not None:
            return self.remedy
        if self.high == 0:
            return "No more measurements are needed."
        if math.isfinite(self.high):
            spread = f", with 90 % between {about(self.low)} and {about(self.high)}"
        else:
            after = "by then" if math.isinf(self.median) else f"after {self.cap:,}"
            some = f"; {self.undecided} of {len(self.pulls)} simulations"
            if self.undecided == len(self.pulls):
                some = f": none of {len(self.pulls)} simulations"
            has = "had a winner" if self.undecided == len(self.pulls) else "had no winner"
            spread = f"{some} {has} {after}"
        pulls = "measurement" if self.median == 1 else "measurements"
        words = f"{expected(self.median, self.cap).capitalize()} more {pulls}{spread}."
        if self.cost is None or not math.isfinite(self.high):
            return words
        low, middle, high = (about(quantile(self.cost, q)) for q in (0.05, 0.5, 0.95))
        return f"{words} They cost about {middle}, between {low} and {high}."


def forecast(
    run: Run,
    problem: Problem,
    estimate: Estimate,
    done: int,
    *,
    draws: int = 20,
    seed: int = 0,
    cap: int | None = None,
    brief: bool = False,
) -> Forecast:
    """Simulate a strategy forward from its present state, under draws of the parameter.

    The parameter of a draw is normal around the estimate, with the covariance of the pulls so far.
    In directions that no pull has measured, arms are drawn around the mean of the pulled ones, with
    their spread.

    Parameters
    ----------
    run : Run
        A running strategy; it is copied for each draw and left unchanged.
    problem : Problem
        Its problem. If sigma is unknown, it is estimated from the residuals.
    estimate : Estimate
        From all rewards so far, for the arms of the problem.
    done : int
        Pulls so far.
    draws : int
    seed : int
        Draw i depends only on the seed and i.
    cap : int, optional
        Further pulls after which a draw is cut, undecided; by default 50 times `done`, or 1000
        per dimension if that is more. Never more than the problem's `max_pulls_per_arm` allows.

    brief : bool
        Make no more draws when more than half of them are undecided: the median is beyond the cap.

    Raises
    ------
    EstimateError
        If there are too few rewards to draw from.

    Examples
    --------
    >>> import finalist as fl
    >>> from finalist.inference.least_squares import estimate
    >>> from finalist.inference.statistics import Statistics
    >>> problem = fl.Problem(fl.Arms.unstructured(2), noise=fl.Gaussian(1.0))
    >>> run, rewards = fl.Uniform().start(problem), Statistics.empty(2)
    >>> rewards.add_many([0, 0, 1, 1], [1.2, 0.8, 0.1, -0.3])
    >>> run.record(run.next(size=4), rewards)
    >>> soon = forecast(run, problem, estimate(problem.arms, rewards), done=4)
    >>> soon.pulls.shape, soon.low <= soon.median <= soon.high
    ((20,), True)
    """
    from finalist.simulation.rewards import DrawnRewards
    from finalist.simulation.task import finish, whole

    number, start = whole("draws", draws, 1), whole("seed", seed, 0)
    least = max(whole("done", done, 0), EARLY * problem.arms.rank)
    most = FURTHER * least if cap is None else whole("cap", cap, 1)
    if problem.capacity is not None:
        most = min(most, max(problem.capacity - done, 0))
    if run.verdict.decided:
        return Forecast(np.zeros(number), most)
    scale = _known_scale(problem, estimate)
    sigma = problem.sigmas if isinstance(problem.noise.sigma, tuple) else scale
    pulls, cost = np.full((2, number), np.inf)
    made = undecided = 0
    for i in range(number):
        if brief and undecided > number / 2:
            break
        for_parameter, for_rewards = np.random.SeedSequence(start, spawn_key=(i,)).spawn(2)
        means = _possible_means(estimate, scale, np.random.default_rng(for_parameter))
        means = np.clip(problem.mean.expected(means), *problem.noise.range)
        rng = np.random.default_rng(for_rewards)
        rewards = DrawnRewards(means, sigma, problem.noise.rewards, rng)
        twin = twin_of(run, problem)
        counts, _ = finish(twin, rewards, len(means), most)
        made += 1
        undecided += not twin.verdict.decided
        if twin.verdict.decided:
            pulls[i], cost[i] = counts.sum(), counts @ problem.costs
    pulls, cost = pulls[:made], cost[:made]
    remedy = _remedy(problem, quantile(pulls, 0.5), most, done, least)
    return Forecast(pulls, most, None if problem.cost == 1.0 else cost, remedy)


def _remedy(problem: Problem, median: float, cap: int, done: int, least: int) -> str | None:
    """Say what helps where candidates stay tied; None if an end is in sight or a budget sets it."""
    if median <= FAR * least or cap < FAR * least or problem.budget is not None or done == 0:
        return None
    times = int(min(median, cap) / done)
    wider = "a wider margin" if problem.epsilon > 0.0 else "a margin"
    helps = f"{wider} (a difference that does not matter to you), or " if problem.top == 1 else ""
    return (
        "The candidates in front are nearly tied: telling which is better would take about "
        f"{times:,} times as many measurements as have been made so far, or more. What helps is "
        f"{helps}a budget, after which the best estimate is recommended."
    )


def twin_of(run: Run, problem: Problem) -> Run:
    """Return a copy of a run; arms and problem never change and can be huge: both share them."""
    shared = (problem, problem.arms, problem.arms.coordinates)
    return copy.deepcopy(run, {id(one): one for one in shared})


def _known_scale(problem: Problem, estimate: Estimate) -> float:
    """Return the scale of the widths, from the residuals if sigma is unknown.

    An estimate for other arms is refused.
    """
    arms = batch_arms(problem)
    if estimate.arms is not arms and estimate.arms != arms:
        raise EstimateError(
            "the estimate is for other candidates than the problem; compute it for these."
        )
    return math.sqrt(estimate.residual_variance) if problem.scale is None else problem.scale


def _possible_means(
    estimate: Estimate, sigma: float, rng: np.random.Generator
) -> Float[np.ndarray, " K"]:
    """Draw expected rewards of the arms that are consistent with the rewards so far."""
    info, Z = estimate.information, estimate.arms.coordinates
    phi = estimate.phi + sigma * (rng.standard_normal(info.rank) @ info.inverse_root)
    unknown = estimate.dimension - info.rank
    if unknown > 0:
        pulled = estimate.statistics.count > 0
        if np.count_nonzero(pulled) < 2:
            raise EstimateError(
                f"{counted(int(pulled.sum()), 'candidate has', 'candidates have')} results, which "
                "does not say how far apart candidates are. Record results of two or more, or use "
                "plan, which needs none."
            )
        means = Z[pulled] @ phi
        # In span coordinates arms vary by 1 in every direction: the spread is shared equally.
        scale = float(means.std()) / math.sqrt(info.rank)
        level = float(means.mean()) * Z.mean(axis=0)  # as equal as the features allow
        outside = np.linalg.qr(info.basis, mode="complete")[0][:, info.rank :]
        phi = phi + outside @ (outside.T @ level + scale * rng.standard_normal(unknown))
    return np.asarray(Z @ phi)
