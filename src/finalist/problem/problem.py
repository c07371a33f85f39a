"""What is asked: arms, candidates, noise, goal, confidence and costs, as one value.

Every later layer takes a `Problem`. It is the setting of Soare 2014, Sect. 2 (find the best arm
with probability at least 1 - delta) and more: arms to measure that differ from the candidates,
unequal noise, costs, shifts between batches, a model that is not quite linear, top-m. Not every
strategy supports all of it: each declares what it supports and calls
`Problem.refuse_unsupported`, so that nothing is ignored silently.
"""

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.problem.candidates import check_comparable, joined
from finalist.problem.features import Feature, refuse_missing
from finalist.problem.goals import Best, Goal
from finalist.problem.mean import Identity, MeanModel
from finalist.problem.noise import Noise, missing_sigma
from finalist.problem.rules import NEWEST, Rules
from finalist.problem.shown import Shown
from finalist.problem.values import (
    UNSET,
    PerArm,
    Unset,
    as_array,
    check_text,
    checked_bias,
    checked_chance,
    checked_delta,
    checked_limit,
    one_per_arm,
    store_positive,
)
from finalist.settings import SETTINGS
from finalist.shapes import Float

if TYPE_CHECKING:
    GivenArms = Arms
    GivenNoise = Noise
else:
    GivenArms = Arms | None  # None means those of the arms, and becomes them
    GivenNoise = Noise | Unset  # UNSET is refused

#: Sizes of the noise whose squares neither vanish nor overflow.
SIGMAS = (1e-150, 1e150)
#: How much larger the noise of one arm may be than that of another: squares are compared.
LARGEST_RATIO = 1e6


@dataclass(frozen=True)
class Problem(Shown):
    """A question about arms, with everything a guarantee depends on.

    Parameters
    ----------
    arms : Arms
        What can be measured. The problem keeps one set of K arms with the candidates among them;
        `arms.measurable` and `arms.candidate` say which can be pulled and which can win.
    candidates : Arms, optional
        What the winner is chosen from; by default the arms marked `arms.candidate`, that is all.
        Differences of candidates must lie in the span of the arms that can be measured.
    noise : Gaussian, SubGaussian or Bernoulli
        Required: no sigma is assumed. `Gaussian(None)` is noise of unknown size.
    goal : Best, EpsilonBest or TopM
    delta : float
        The accepted probability of a wrong answer, between 0 and 1.
    objective : "max" or "min"
        Whether a large or a small reward is good.
    cost : float or (K,) sequence
        Cost of a pull. Here and in sigma the arms that cannot be pulled may be left out.
    batch_intercept : bool
        Whether each batch is shifted by an unknown constant of its own: plates, days.
    misspecification : float
        How far the mean of an arm may be from a linear function of its features, at most.
    max_pulls_per_arm : int, optional
        The most pulls of one arm, where material is limited.
    budget : int, optional
        The most pulls in all; with costs, the highest total cost. The gauntlet and strategies for
        a fixed budget plan with it; the others ignore it, and studies and simulations stop there.
    check : float
        The largest chance that a bend of the means hides a better arm with which a winner is still
        called certain; 0 for no check. The gauntlet probes for bends.
    unit : str, optional
        The unit of the rewards, for people: "kg".
    mean : MeanModel
        What turns x'theta into the mean reward of an arm; by default it is the mean.
    rules : Rules
        The rules by which decisions are taken: the newest, or those that a study began with.

    Examples
    --------
    >>> import numpy as np
    >>> from finalist.problem import Gaussian, TopM
    >>> problem = Problem(Arms(np.eye(3)), noise=Gaussian(1.0), goal=TopM(2))
    >>> sorted(problem.needs)
    ['top-m']
    """

    arms: Arms
    _: KW_ONLY
    candidates: GivenArms = None  # type: ignore[assignment]
    noise: GivenNoise = UNSET  # type: ignore[assignment]
    goal: Goal = field(default_factory=Best)
    delta: float = 0.05
    objective: Literal["max", "min"] = "max"
    cost: PerArm = 1.0
    batch_intercept: bool = False
    misspecification: float = 0.0
    max_pulls_per_arm: int | None = None
    budget: int | None = None
    check: float = 0.0
    mean: MeanModel = field(default_factory=Identity)
    rules: Rules = NEWEST

    def __post_init__(self) -> None:
        check_arms(self.arms)
        given = len(self.arms)  # before the candidates join them
        arms, candidates = joined(self.arms, self.candidates)
        self._store(arms=arms, candidates=candidates)
        store_positive(self, "cost", self.cost, "Use cost=1 if all measurements cost the same.")
        self._store(delta=checked_delta(self.delta))
        _check_choices(self)
        for name in ("budget", "max_pulls_per_arm"):
            self._store(**{name: checked_limit(name, getattr(self, name))})
        for name, one in SETTINGS.items():
            if one.kind == "text":
                check_text(name, getattr(self, name))
        check_comparable(arms, candidates, self.batch_intercept)
        if isinstance(self.noise.sigma, tuple):
            sigma = one_per_arm("sigma", self.noise.sigma, arms, given)
            self._store(noise=replace(self.noise, sigma=sigma))
        _check_sizes(self)
        if isinstance(self.cost, tuple):
            self._store(cost=one_per_arm("cost", self.cost, arms, given))
        self._store(misspecification=checked_bias(self.misspecification))
        self._store(check=checked_chance("check", self.check))
        if self.top >= len(candidates) and self.top > 1:
            raise ProblemError(
                f"m is {self.top} and there are {len(candidates)} candidates; m must be smaller "
                "than their number."
            )

    def _store(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @cached_property
    def sign(self) -> int:
        """+1 when large rewards are good, -1 when small ones are."""
        return 1 if self.objective == "max" else -1

    @cached_property
    def epsilon(self) -> float:
        """How far the answer may be from the best; 0 unless the goal is `EpsilonBest`."""
        return self.goal.epsilon

    @property
    def top(self) -> int:
        """How many of the best are asked for; 1 unless the goal is `TopM`."""
        return self.goal.top

    @property
    def sigma(self) -> float:
        """The one sigma of all arms; refused when it is unknown or differs between arms."""
        sigma = self.noise.sigma
        if sigma is None:
            raise ProblemError("sigma is unknown; give sigma=, or estimate it from the residuals.")
        if not isinstance(sigma, float):
            raise ProblemError(
                "sigma differs between candidates; use `sigmas`, or give one number."
            )
        return sigma

    @property
    def sigmas(self) -> Float[np.ndarray, " K"]:
        """Sigma of each arm, read-only."""
        return as_array(self.sigma if self.noise.sigma is None else self.noise.sigma, self.arms)

    @cached_property
    def scale(self) -> float | None:
        """What standard errors are multiplied by: sigma, 1 if it differs between arms, or None.

        In the second case `precisions` carry the noise; None means unknown.
        """
        sigma = self.noise.sigma
        return 1.0 if isinstance(sigma, tuple) else cast(float | None, sigma)

    @cached_property
    def precisions(self) -> Float[np.ndarray, " K"] | None:
        """1 / sigma^2 of each arm if it differs between arms, else None."""
        sigma = self.noise.sigma
        precisions = 1.0 / np.square(sigma) if isinstance(sigma, tuple) else None
        if precisions is not None:
            precisions.flags.writeable = False
        return precisions

    @property
    def costs(self) -> Float[np.ndarray, " K"]:
        """Cost of one pull of each arm, read-only."""
        return as_array(self.cost, self.arms)

    @property
    def capacity(self) -> int | None:
        """The pulls after which no arm can be pulled any more; None if there is no such limit."""
        limit = self.max_pulls_per_arm
        return None if limit is None else limit * int(self.arms.measurable.sum())

    @property
    def needs(self) -> frozenset[Feature]:
        """What a consumer must support to answer this problem, beyond the paper's setting."""
        own: set[Feature] = {
            one.needs
            for name, one in SETTINGS.items()
            if one.needs is not None and getattr(self, name) != one.default
        }
        if not (self.arms.measurable.all() and self.arms.candidate.all()):
            own.add("other candidates")
        return self.noise.needs | self.mean.needs | own

    def means(self, theta: ArrayLike) -> Float[np.ndarray, " K"]:
        """Return the mean reward of each arm under a parameter."""
        return self.mean.expected(self.arms.means(theta))

    def refuse_unsupported(self, consumer: str, supported: frozenset[Feature]) -> None:
        """Raise `NotYetSupportedError` if the problem needs more than a consumer supports.

        Parameters
        ----------
        consumer : str
            Who asks, as the message should call it: "optimal designs".
        supported : frozenset of str
            Words from `FEATURES`.

        Examples
        --------
        >>> import numpy as np
        >>> from finalist.problem import Gaussian
        >>> problem = Problem(Arms(np.eye(3)), noise=Gaussian(1.0), cost=2.0)
        >>> problem.refuse_unsupported("optimal designs", frozenset({"cost"}))
        >>> problem.refuse_unsupported("simulation", frozenset({"minimise"}))
        Traceback (most recent call last):
        finalist.errors.NotYetSupportedError: not yet supported by simulation: 'cost'. It takes ...
        """
        refuse_missing(consumer, self.needs, supported)

    def words(self) -> dict[str, Any]:
        """Return the settings as JSON keeps them, by their names in `SETTINGS`.

        Examples
        --------
        >>> from finalist.problem import Gaussian
        >>> problem = Problem(Arms.unstructured(2), noise=Gaussian([1.0, 2.0]))
        >>> problem.words()["sigma"], problem.words()["noise"]
        ([1.0, 2.0], 'gaussian')
        """
        noise = {"sigma": self.noise.sigma, "noise": self.noise.name}
        values = {name: noise[name] if name in noise else getattr(self, name) for name in SETTINGS}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    def with_(self, **changes: Any) -> "Problem":
        """Return the problem with some fields changed; new arms bring their own candidates."""
        changes.setdefault("candidates", None)  # the arms know their candidates
        return replace(self, **changes)


def check_arms(arms: object) -> None:
    """Refuse arms of another type."""
    if not isinstance(arms, Arms):
        raise ProblemError(f"arms is of type {type(arms).__name__}; use Arms(features).")


def _check_sizes(problem: Problem) -> None:
    """Refuse noise whose square over- or underflows, or that differs too much between arms."""
    if problem.noise.sigma is None:
        return
    each = problem.sigmas[problem.arms.measurable]
    least, most = float(each.min()), float(each.max())
    if not (SIGMAS[0] <= least and most <= SIGMAS[1]):
        wrong = least if least < SIGMAS[0] else most
        raise ProblemError(
            f"sigma is {wrong:g}; it lies between {SIGMAS[0]:g} and {SIGMAS[1]:g}, so that its "
            "square is a number. Give results and sigma in another unit."
        )
    if not most / least <= LARGEST_RATIO:
        raise ProblemError(
            f"sigma goes from {least:g} to {most:g}; the largest may be {LARGEST_RATIO:g} times "
            "the smallest. Leave out candidates whose noise says nothing."
        )


def _check_choices(problem: Problem) -> None:
    if isinstance(problem.noise, Unset):
        raise missing_sigma(
            sigma="noise=Gaussian(sigma), with sigma", binary=": noise=Bernoulli() needs no other"
        )
    if not isinstance(problem.noise, Noise):
        raise ProblemError(
            f"noise is {problem.noise!r}; use Gaussian(sigma), SubGaussian(sigma) or Bernoulli()."
        )
    if not isinstance(problem.goal, Goal):
        raise ProblemError(f"goal is {problem.goal!r}; use Best(), EpsilonBest(...) or TopM(...).")
    if not isinstance(problem.mean, MeanModel):
        raise ProblemError(f"mean is {problem.mean!r}; use Identity().")
    if problem.objective not in ("max", "min"):
        raise ProblemError(f"objective is {problem.objective!r}; it is 'max' or 'min'.")
    if not isinstance(problem.batch_intercept, bool):
        raise ProblemError(f"batch_intercept is {problem.batch_intercept!r}; it is True or False.")
    if not isinstance(problem.rules, Rules):
        raise ProblemError(
            f"rules is {problem.rules!r}; use finalist.problem.rules.rules_of(number)."
        )
