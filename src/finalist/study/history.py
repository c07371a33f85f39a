"""What was measured before a study: what it says of sigma and of the model, before the first pull.

Old results are never evidence: no test of a strategy is touched by them, they only steer. So they
may be wrong without making a winner wrong, and what they say here is a warning and no more. A check
that fails on them does not take "certain" away (`checks.promised` does not ask): the guarantee is
about the new results, and old ones come from other days, hands and instruments, whose shifts look
like a model that does not fit. A study that could never be certain because of an old spreadsheet
would teach people to leave it out. The warning stays beside every verdict until the study's own
test of the same assumption has something to say: until it fails, or has as many degrees of freedom
as the old results had (`unanswered`).

The two tests here have a level of their own, `checks.ALARM` each, apart from the levels that the
study shares among its batches: with all as it should be, a study with old results gets a false
warning of them with probability at most 2 ALARM (and 2 ALARM from each of its own checks, as ever).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from finalist.arms import Arms
from finalist.errors import ProblemError, UnknownArmError
from finalist.inference.least_squares import Estimate, estimate
from finalist.inference.pooling import batch_arms
from finalist.inference.replicates import SigmaEstimate, pooled_sigma
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.settings import ProblemWords
from finalist.study.check import Check
from finalist.study.checks import ALARM, _p_value_within, _shown
from finalist.study.results import Results
from finalist.text import counted, first_few, show

Kind = Literal["noise", "fit"]
#: Models that explain more than another does, as parts of a sentence.
_MORE = {
    "given": "with squares (bending), or ",
    "straight": "with a model that bends (bending), or ",
    "bending": "with products too (surface), or ",
}
#: What can be done about names that no candidate has, as a part of a sentence.
REMEDY = (
    "Correct the names, say which column has them (--candidate-column), or leave these rows out "
    "(--known-only)"
)


@dataclass(frozen=True)
class History:
    """What old results say.

    Attributes
    ----------
    measurements, candidates : int
        How many there are, and of how many candidates.
    sigma : SigmaEstimate or None
        From repeated measurements; None if there are none, or if results are 0 or 1.
    noise, fit : str
        What they say of the noise and of the model, as parts of a sentence; empty for nothing.
    fits : bool or None
        Whether the model fits them; None if they cannot tell.
    warnings : dict
        What they speak against, in words.
    freedom : dict
        Degrees of freedom of the tests behind `warnings`: of residuals, and of repeats.
    """

    measurements: int
    candidates: int
    sigma: SigmaEstimate | None
    noise: str
    fit: str = ""
    fits: bool | None = None
    warnings: dict[Kind, str] = field(default_factory=dict)
    freedom: dict[Kind, tuple[int, int]] = field(default_factory=dict)

    def __str__(self) -> str:
        """Say all of it in one line."""
        what = f"{counted(self.measurements, 'measurement')} of "
        parts = [what + counted(self.candidates, "candidate"), self.noise, self.fit]
        remark = "" if self.sigma is None or not self.sigma.remark else f" {self.sigma.remark}"
        return f"Old results: {'; '.join(filter(None, parts))}.{remark}"

    def unanswered(self, checks: Sequence[Check], fit: Estimate) -> list[str]:
        """Return the warnings on which the study's own rewards have nothing to say yet.

        `checks` are what its own tests have found, and `fit` is its estimate.
        """
        spoken = {check.kind for check in checks}
        return [
            words
            for kind, words in self.warnings.items()
            if kind not in spoken and not _as_good(_freedom(kind, fit), self.freedom[kind])
        ]


def _freedom(kind: Kind, fit: Estimate) -> tuple[int, int]:
    """Return the degrees of freedom of the study's own test."""
    if fit.statistics.pulls == 0:
        return 0, 0
    if kind == "noise":
        return 0, fit.degrees_of_freedom
    test = fit.lack_of_fit()
    return (0, 0) if test is None else (test.df_fit, test.df_pure)


def _as_good(own: tuple[int, int], old: tuple[int, int]) -> bool:
    return own[0] >= old[0] and own[1] >= old[1]


def event_body(problem: Problem, history: Results) -> dict[str, Any]:
    """Return what the log keeps of old results; refuse unknown names and impossible values."""
    refuse_unknown(problem.arms, history)
    problem.noise.refuse(history.value, lambda i: f"row {i + 1}")
    return {
        "arms": [problem.arms.index(str(name)) for name in history.arm],
        "rewards": history.value.tolist(),
    }


def of_known(arms: Arms, history: Results) -> tuple[Results, str]:
    """Leave out results of candidates that there are not; return what that was, in words."""
    known = {name for names in arms.aliases for name in names}
    there = np.array([name in known for name in history.arm])
    if not there.any():
        refuse_unknown(arms, history)
    count = counted(int((~there).sum()), "old result")
    gone = first_few([show(name) for name in dict.fromkeys(history.arm) if name not in known])
    words = f"{count} of other candidates left out: {gone}" if gone else ""
    return history.taken(there), words


def refuse_unknown(arms: Arms, history: Results) -> None:
    """Raise if results are of candidates that there are not; the first five are named."""
    known = {name for names in arms.aliases for name in names}
    unknown = [*dict.fromkeys(str(name) for name in history.arm if name not in known)]
    if not unknown:
        return
    named = first_few([show(name) for name in unknown])
    what = "candidate" if len(unknown) == 1 else "candidates"
    raise UnknownArmError(
        f"old results are of {counted(len(unknown), what, what)} that this study does not have: "
        f"{named}. {REMEDY}."
    )


def with_sigma(words: ProblemWords, arms: Arms | Problem, history: Results | None) -> ProblemWords:
    """Take a sigma that is left out as unknown, where there are old results that tell it.

    An estimate is not knowledge: it is shown, and the study takes sigma from its own results.
    """
    if history is None or isinstance(arms, Problem) or "sigma" in words:
        return words
    return {**words, "sigma": None} if tells_sigma(words.get("noise"), history) else words


def tells_sigma(noise: object, history: Results) -> bool:
    """Return whether sigma may be left out, so that it is unknown; refuse results 0 and 1."""
    if not (noise is None or noise == "gaussian"):
        return False
    if np.isin(history.value, (0.0, 1.0)).all():
        raise ProblemError(
            f"sigma is not given, and all {len(history):,} old results are 0 or 1. Such results, "
            "no or yes, need the noise 'bernoulli' (--noise bernoulli) and no sigma."
        )
    return True


def examine(problem: Problem, results: Statistics) -> History:
    """Test the assumptions of a study on old results, as if they were one batch of it.

    Examples
    --------
    >>> import finalist as fl
    >>> arms = fl.Arms([[-1.0], [0.0], [1.0]], list("abc")).with_intercept()
    >>> problem = fl.Problem(arms, noise=fl.Gaussian(None))
    >>> sums = Statistics.of_batch([2, 2, 2], [0.0, 2.0, 4.1], [0.1, 0.2, 0.1])
    >>> print(examine(problem, sums))
    Old results: 6 measurements of 3 candidates; sigma about 0.37 (3 degrees of freedom; 0.21 to 1.4
    with 95 % confidence); the model fits them (lack of fit, F = 0.00625, p = 0.9).
    """
    binary = problem.noise.name == "bernoulli"  # then the size of the noise is not in question
    names = [show(name) for name in problem.arms.names]
    found = None if binary else pooled_sigma(results, names, problem.precisions)
    noise, contradicted = ("", False) if found is None else _noise(problem, found)
    test = _model_test(problem, results, None if contradicted else problem.scale, found)
    candidates = int(np.count_nonzero(results.count))
    history = History(results.pulls, candidates, found, _noise_words(problem, found))
    if noise and found is not None:
        history.warnings["noise"] = noise
        history.freedom["noise"] = (0, found.degrees_of_freedom)
    if test is None:
        return replace(history, fit=_untested(problem))
    fits = not test.p_value < ALARM
    words = f"the model {'fits' if fits else 'does not fit'} them (lack of fit, {test.words})"
    if not fits:
        history.warnings["fit"] = _misfit(problem, test)
        history.freedom["fit"] = test.freedom
    return replace(history, fit=words, fits=fits)


# ---- the noise ---------------------------------------------------------------------------


def _noise(problem: Problem, found: SigmaEstimate) -> tuple[str, bool]:
    """Compare repeated measurements with a stated sigma; return a warning, and if it is too small.

    The squares over sigma^2 are a chi-square variable, each side tested at the level ALARM.
    """
    sigma = problem.scale
    if sigma is None or not found.resolved:
        return "", False
    little, much = found.chances(sigma)
    times = problem.precisions is not None
    given = "their sigmas say" if times else f"sigma = {sigma:.3g} says"
    by = f"{found.shown(found.sigma)}{' times as much' if times else ''}"
    if much < ALARM:
        return (
            f"Old results of the same candidate scatter by {by}, more than {given} "
            f"({_shown(much)}, level {ALARM:g}). A sigma that is too small makes the answer "
            "worthless: state a larger one, or leave it unknown.",
            True,
        )
    if problem.noise.normal and little < ALARM:
        return (
            f"Old results of the same candidate scatter by {by}, less than {given} "
            f"({_shown(little)}, level {ALARM:g}). The guarantee holds; a smaller sigma, or an "
            "unknown one, would need fewer measurements.",
            False,
        )
    return "", False


def _noise_words(problem: Problem, found: SigmaEstimate | None) -> str:
    if found is not None:
        what = "sigma" if problem.precisions is None else "sigma, in units of those given,"
        return f"{what} {found.brief()}"
    if problem.noise.name == "bernoulli":
        return ""
    return "no candidate was measured twice, so they do not tell sigma"


# ---- the model ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Test:
    p_value: float
    words: str
    freedom: tuple[int, int]


def _model_test(
    problem: Problem, results: Statistics, sigma: float | None, found: SigmaEstimate | None
) -> _Test | None:
    """Test whether the means of candidates are as the model has them; None if nothing can tell.

    With sigma, their squares over sigma^2 are a chi-square variable; without, they are compared
    with repeated measurements by an F test (`Estimate.lack_of_fit`). Draper and Smith, Applied
    Regression Analysis, 3rd ed. 1998, Sect. 2.1. A constant of the batch that old results are is
    in the model where batches have one.
    """
    from scipy.special import chdtrc, chndtr

    arms, c = batch_arms(problem), problem.misspecification
    fit = estimate(arms, results, precisions=problem.precisions)
    distinct = int(np.count_nonzero(results.count))
    free = distinct - fit.information.rank
    if free < 1:
        return None
    most = c * c * float(fit._weights().sum())  # squares of a model that is off by c everywhere
    if sigma is None:
        test = fit.lack_of_fit()
        if test is None or found is None or not found.resolved:
            return None
        p = test.p_value if c == 0.0 else _p_value_within(test, most)
        return _Test(p, f"F = {test.f:.3g}, {_shown(p)}", (test.df_fit, test.df_pure))
    score = fit._fit_squares() / sigma**2
    p = float(chdtrc(free, score) if c == 0.0 else 1.0 - chndtr(score, free, most / sigma**2))
    return _Test(p, f"chi-square = {score:.3g}, {_shown(p)}", (free, results.pulls - distinct))


def _misfit(problem: Problem, test: _Test) -> str:
    c, name = problem.misspecification, problem.arms.recipe.name
    more = "" if c == 0.0 else f", also if it is off by {c:g}"
    next_ = _MORE.get(name, "")
    return (
        f"Old results speak against the model ({name}){more}: it does not explain the means of the "
        f"candidates (lack of fit, {test.words}, level {ALARM:g}). If new results are like them, "
        f"nothing will be certain. Begin {next_}without a model (separate); or look for what "
        "differed between the old measurements."
    )


def _untested(problem: Problem) -> str:
    """Say why the model cannot be tested; nothing if there is none."""
    if problem.arms.rank == len(problem.arms):
        return ""
    return (
        "they do not tell whether the model fits: that takes more candidates than the "
        f"{batch_arms(problem).rank} parameters of the model, some of them measured twice"
    )
