"""What is asked: arms, candidates, noise, goal, confidence and costs, as one value.

Every later layer takes a `Problem`. It is the setting of Soare 2014, Sect. 2 (find the best arm
with probability at least 1 - delta) and more: arms to measure that differ from the candidates,
unequal noise, costs, shifts between batches, a model that is not quite linear, top-m. Not every
strategy carries out all of it. Each declares which of these words it supports and calls
`Problem.refuse_unsupported`, so that nothing is ignored silently.
"""

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
from jaxtyping import Float

from finalist.arms import Arms
from finalist.errors import NotYetSupportedError, OutsideSpanError, ProblemError
from finalist.problem.noise import (
    UNSET,
    Bernoulli,
    Best,
    EpsilonBest,
    Goal,
    Noise,
    PerArm,
    SubGaussian,
    TopM,
    Unset,
    as_noise,
    checked_number,
    missing_sigma,
    store_positive,
)
from finalist.problem.rules import NEWEST, Rules
from finalist.text import counted

if TYPE_CHECKING:
    GivenArms = Arms
    GivenNoise = Noise
else:
    GivenArms = Arms | None  # None, which means those of the arms, becomes them
    GivenNoise = Noise | Unset  # UNSET is refused

Feature = Literal[
    "unknown sigma",
    "sigma per arm",
    "sub-gaussian",
    "bernoulli",
    "other candidates",
    "epsilon-best",
    "top-m",
    "minimise",
    "cost",
    "batch intercept",
    "misspecification",
    "limited pulls",
]

#: Every word that `Problem.needs` can contain.
FEATURES: frozenset[Feature] = frozenset(get_args(Feature))

#: Sizes of the noise: squares of smaller and larger ones are no numbers.
SIGMAS = (1e-150, 1e150)
#: How much larger the noise of one arm may be than that of another: squares are compared.
LARGEST_RATIO = 1e6


@dataclass(frozen=True)
class Problem:
    """A question about arms, with everything a guarantee depends on.

    Parameters
    ----------
    arms : Arms
        What can be measured. Kept is one set of K arms with the candidates among them; which of
        them can be pulled and which can win, `arms.measurable` and `arms.candidate` say.
    candidates : Arms, optional
        What the winner is chosen from; those that `arms.candidate` says unless given, that is all.
        Differences of candidates must lie in the span of the arms that can be measured.
    noise : Gaussian, SubGaussian or Bernoulli
        Has to be given: no sigma is assumed. `Gaussian(None)` is noise of unknown size.
    goal : Best, EpsilonBest or TopM
    delta : float
        Probability with which the answer may be wrong, between 0 and 1.
    objective : "max" or "min"
        Whether a large or a small reward is good.
    cost : float or (K,) sequence
        Cost of a pull. Here and in sigma the arms that cannot be pulled may be left out.
    batch_intercept : bool
        Whether each batch is shifted by a constant of its own, unknown: plates, days.
    misspecification : float
        How far the mean of an arm may be from a linear function of its features, at most.
    most_pulls : int, optional
        How often each arm can be pulled at most: there is no more material.
    budget : int, optional
        The pulls there are in all. Strategies for a fixed budget plan with it. It changes no
        question, so the others need not know of it: whoever runs them stops there.
    rules : Rules
        By which decisions are taken: the newest, or those that a study began with.

    Examples
    --------
    >>> import numpy as np
    >>> from finalist.problem.noise import Gaussian
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
    most_pulls: int | None = None
    budget: int | None = None
    rules: Rules = NEWEST

    def __post_init__(self) -> None:
        if not isinstance(self.arms, Arms):
            raise ProblemError(f"arms is of type {_type(self.arms)}; use Arms(features).")
        given = len(self.arms)  # before the candidates join them
        _join_candidates(self)
        store_positive(self, "cost", self.cost, "Use cost=1 if all pulls cost the same.")
        object.__setattr__(self, "delta", _checked_delta(self.delta))
        _check_choices(self)
        if not isinstance(self.rules, Rules):
            raise ProblemError(
                f"rules is {self.rules!r}; use finalist.problem.rules.rules_of(number)."
            )
        _check_candidates(self)
        if isinstance(self.noise.sigma, tuple):
            sigma = _of_all("sigma", self.noise.sigma, self.arms, given)
            object.__setattr__(self, "noise", replace(self.noise, sigma=sigma))
        _check_sizes(self)
        if isinstance(self.cost, tuple):
            cost = _of_all("cost", self.cost, self.arms, given)
            object.__setattr__(self, "cost", cost)
        object.__setattr__(self, "misspecification", _checked_bias(self.misspecification))
        if isinstance(self.goal, TopM) and self.goal.m >= len(self.candidates):
            raise ProblemError(
                f"m is {self.goal.m} and there are {len(self.candidates)} candidates; "
                "m must be smaller than their number."
            )

    @property
    def sign(self) -> int:
        """+1 when large rewards are good, -1 when small ones are."""
        return 1 if self.objective == "max" else -1

    @property
    def epsilon(self) -> float:
        """How far the answer may be from the best; 0 unless the goal is `EpsilonBest`."""
        return self.goal.epsilon if isinstance(self.goal, EpsilonBest) else 0.0

    @property
    def top(self) -> int:
        """How many of the best are asked for; 1 unless the goal is `TopM`."""
        return self.goal.m if isinstance(self.goal, TopM) else 1

    @property
    def sigma(self) -> float:
        """The one sigma of all arms; refused when it is unknown or differs between arms."""
        sigma = self.noise.sigma
        if sigma is None:
            raise ProblemError("sigma is unknown; give sigma=, or estimate it from the residuals.")
        if not isinstance(sigma, float):
            raise ProblemError("sigma differs between arms; use `sigmas`, or give one number.")
        return sigma

    @property
    def sigmas(self) -> Float[np.ndarray, " K"]:
        """Sigma of each arm, read-only."""
        return _per_arm(self.sigma if self.noise.sigma is None else self.noise.sigma, self.arms)

    @property
    def scale(self) -> float | None:
        """What standard errors are multiplied by: sigma, 1 if it differs between arms, or None.

        In the second case `precisions` carry the noise; None means unknown.
        """
        sigma = self.noise.sigma
        return 1.0 if isinstance(sigma, tuple) else cast(float | None, sigma)

    @property
    def precisions(self) -> Float[np.ndarray, " K"] | None:
        """1 / sigma^2 of each arm if it differs between arms, else None."""
        sigma = self.noise.sigma
        return 1.0 / np.square(sigma) if isinstance(sigma, tuple) else None

    @property
    def costs(self) -> Float[np.ndarray, " K"]:
        """Cost of one pull of each arm, read-only."""
        return _per_arm(self.cost, self.arms)

    @property
    def needs(self) -> frozenset[Feature]:
        """What a consumer must support to answer this problem, beyond the paper's setting."""
        noise, goal = self.noise, self.goal
        present: dict[Feature, bool] = {
            "unknown sigma": noise.sigma is None,
            "sigma per arm": isinstance(noise.sigma, tuple),
            "sub-gaussian": isinstance(noise, SubGaussian),
            "bernoulli": isinstance(noise, Bernoulli),
            "other candidates": not (self.arms.measurable.all() and self.arms.candidate.all()),
            "epsilon-best": isinstance(goal, EpsilonBest),
            "top-m": self.top > 1,
            "minimise": self.objective == "min",
            "cost": self.cost != 1.0,
            "batch intercept": self.batch_intercept,
            "misspecification": self.misspecification > 0,
            "limited pulls": self.most_pulls is not None,
        }
        return frozenset(word for word, needed in present.items() if needed)

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
        >>> from finalist.problem.noise import Gaussian
        >>> problem = Problem(Arms(np.eye(3)), noise=Gaussian(1.0), cost=2.0)
        >>> problem.refuse_unsupported("optimal designs", frozenset({"cost"}))
        >>> problem.refuse_unsupported("simulation", frozenset({"minimise"}))
        Traceback (most recent call last):
        finalist.errors.NotYetSupportedError: not yet supported by simulation: 'cost'. It takes ...
        """
        unknown = supported - FEATURES
        if unknown:
            raise ProblemError(f"{sorted(unknown)} are no features; known: {sorted(FEATURES)}.")
        missing = sorted(self.needs - supported)
        if missing:
            words = ", ".join(repr(word) for word in missing)
            beyond = ", ".join(sorted(supported)) or "nothing else"
            remedy = ""
            if "unknown sigma" in missing:
                remedy = " Give sigma=, or use the strategy 'gauntlet', which works without."
            raise NotYetSupportedError(
                f"not yet supported by {consumer}: {words}. It takes the best arm, the largest "
                f"mean, one known sigma, cost 1, and beyond that: {beyond}.{remedy}"
            )

    def with_(self, **changes: Any) -> "Problem":
        """Return the problem with some fields changed; new arms bring their own candidates."""
        changes.setdefault("candidates", None)  # the arms know their candidates
        return replace(self, **changes)


def as_problem(
    arms: Arms,
    *,
    sigma: PerArm | Unset | None = UNSET,
    noise: Noise | str | None = None,
    epsilon: float = 0.0,
    top: int = 1,
    goal: Goal | None = None,
    **settings: Any,
) -> Problem:
    """Make a `Problem` from the arguments that public functions take.

    Parameters
    ----------
    arms : Arms
    sigma : float, (K,) sequence or None
        Size of the noise, Gaussian unless `noise` names another; None if unknown. Has to be given
        unless `noise` has its own.
    noise : Noise or "gaussian", "sub-gaussian", "bernoulli", optional
        Model of the noise. A `Noise` object and "bernoulli" have their own sigma.
    epsilon : float, default 0.0
        Positive: an arm less than `epsilon` away from the best one is good enough.
    top : int, default 1
        How many of the best are asked for.
    goal : Goal, optional
        Instead of `epsilon` and `top`.
    **settings
        `delta`, `objective`, `candidates`, `cost`, `batch_intercept`, `misspecification`,
        `most_pulls` and `budget` of `Problem`.

    Examples
    --------
    >>> import numpy as np
    >>> from finalist.arms import Arms
    >>> as_problem(Arms(np.eye(2)), sigma=2, epsilon=0.1, delta=0.01).goal
    EpsilonBest(epsilon=0.1)
    """
    if goal is not None and epsilon != 0:
        raise ProblemError(f"epsilon={epsilon!r} and goal={goal!r} are both given; give one.")
    if top != 1 and (goal is not None or epsilon != 0):
        other = f"goal={goal!r}" if goal is not None else f"epsilon={epsilon!r}"
        raise ProblemError(f"top={top!r} and {other} are both given; give one.")
    if goal is None and top != 1:
        goal = TopM(top)
    if goal is None:
        goal = Best() if epsilon == 0 else EpsilonBest(epsilon)
    problem = Problem(arms, noise=as_noise(sigma, noise), goal=goal, **settings)
    _check_told_apart(problem)
    return problem


def _check_told_apart(problem: Problem) -> None:
    """Refuse arms of one name for the model whose means may differ, as the model may be wrong."""
    if problem.misspecification == 0.0:
        return
    for names in problem.candidates.aliases:
        if len(names) > 1:
            raise ProblemError(
                f"{names[0]} and {names[1]} have the same features, so they count as one arm; but "
                f"with misspecification = {problem.misspecification:g} their means may differ. Add "
                "a feature that tells them apart, or leave one of them out."
            )


def _type(value: object) -> str:
    return type(value).__name__


def _checked_delta(value: object) -> float:
    delta = checked_number(value, "delta")
    if not 0 < delta < 1:
        raise ProblemError(
            f"delta is {delta}; it is the probability of a wrong answer, between 0 and 1, "
            "for example 0.05."
        )
    return delta


def _checked_bias(value: object) -> float:
    bias = checked_number(value, "misspecification")
    if not (0 <= bias < float("inf")):
        raise ProblemError(
            f"misspecification is {bias}; it is how far a mean may be from the linear model, in "
            "units of the reward, 0 or more."
        )
    return bias


def _of_all(name: str, values: tuple[float, ...], arms: Arms, given: int) -> tuple[float, ...]:
    """Return one value for each arm.

    Those that cannot be pulled may have been left out, or the candidates that joined the `given`
    arms, which come first.
    """
    if len(values) == len(arms):
        return values
    pulled, all_of = int(arms.measurable.sum()), np.ones(len(arms))
    if len(values) == pulled:
        all_of[arms.measurable] = values
    elif len(values) == given:
        all_of[:given] = values
    else:
        either = "" if pulled == len(arms) else f", or for the {pulled} that can be pulled"
        raise ProblemError(
            f"{name} has {counted(len(values), 'value')} for {len(arms)} arms; give one per "
            f"arm{either}, in the order of arms.names (arms with identical features are one arm)."
        )
    return tuple(all_of.tolist())


def _per_arm(value: PerArm, arms: Arms) -> Float[np.ndarray, " K"]:
    array = np.array(np.broadcast_to(np.asarray(value, dtype=float), len(arms)))
    array.setflags(write=False)
    return array


def _check_sizes(problem: Problem) -> None:
    """Refuse noise whose square is not a number, or which differs too much between arms."""
    if problem.noise.sigma is None:
        return
    each = problem.sigmas[problem.arms.measurable]
    least, most = float(each.min()), float(each.max())
    if not (SIGMAS[0] <= least and most <= SIGMAS[1]):
        wrong = least if least < SIGMAS[0] else most
        raise ProblemError(
            f"sigma is {wrong:g}; it lies between {SIGMAS[0]:g} and {SIGMAS[1]:g}, so that its "
            "square is a number. Give rewards and sigma in another unit."
        )
    if not most / least <= LARGEST_RATIO:
        raise ProblemError(
            f"sigma goes from {least:g} to {most:g}; the largest may be {LARGEST_RATIO:g} times "
            "the smallest. Leave out arms whose noise says nothing."
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
    if problem.objective not in ("max", "min"):
        raise ProblemError(f"objective is {problem.objective!r}; it is 'max' or 'min'.")
    if not isinstance(problem.batch_intercept, bool):
        raise ProblemError(f"batch_intercept is {problem.batch_intercept!r}; it is True or False.")
    for name in ("most_pulls", "budget"):
        most = getattr(problem, name)
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise ProblemError(f"{name} is {most!r}; it is a number of pulls, 1 or more, or None.")


def _join_candidates(problem: Problem) -> None:
    """Make one set of arms and candidates."""
    arms, candidates = problem.arms, cast(Arms | None, problem.candidates)
    if candidates is not None:
        if not isinstance(candidates, Arms):
            raise ProblemError(f"candidates is of type {_type(candidates)}; use Arms(features).")
        d, other = arms.features.shape[1], candidates.features.shape[1]
        if d != other:
            raise ProblemError(f"candidates have {other} features and arms {d}; use the same.")
        if candidates != arms:
            arms = arms.with_candidates(candidates)
            object.__setattr__(problem, "arms", arms)
    own = arms if arms.candidate.all() else arms.only(arms.candidate)
    object.__setattr__(problem, "candidates", own)


def _check_candidates(problem: Problem) -> None:
    """Refuse candidates whose differences the arms cannot estimate."""
    arms, candidates = problem.arms, problem.candidates
    if arms.measurable.all():
        return
    directions = candidates.features[1:] - candidates.features[0]
    if problem.batch_intercept:  # only what is free of the constant of a batch can be compared
        wider = np.column_stack([arms.features, np.ones(len(arms))])
        arms = Arms(wider, measurable=arms.measurable)
        directions = np.column_stack([directions, np.zeros(len(directions))])
    try:
        arms.to_span(directions)
    except OutsideSpanError as error:
        raise ProblemError(
            "candidates cannot be compared by measuring these arms (direction 1 is the second "
            f"candidate, {candidates.names[1]!r}, minus the first, {candidates.names[0]!r}, and so "
            f"on): {error} Or leave such candidates out."
        ) from error
