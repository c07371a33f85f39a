"""Do the rewards contradict what the guarantee assumes? Tests on everything measured so far.

Each gives a p-value after a batch, the k-th one compared with 2 ALARM / (k (k + 1)). That sums to
2 ALARM over all batches, so a study in which all is well rarely gets a warning, and a warning that
an assumption fails stays even if later batches hide it again. Where the tests take long, the replay
of a study skips batches (`is_look`); a status then adds what they find at that moment.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from finalist.arms import Arms
from finalist.errors import EstimateError
from finalist.inference.intervals import leader
from finalist.inference.least_squares import Estimate, LackOfFit
from finalist.inference.pooling import BatchSums
from finalist.inference.tails import is_usual, is_usual_ratio
from finalist.problem import Problem
from finalist.shapes import Float
from finalist.strategies import guaranteed
from finalist.study.bends import bend_checks, findings_of
from finalist.study.check import Check

if TYPE_CHECKING:
    from finalist.study.state import State

ALARM = 1e-3
#: Degrees of freedom that a test of batches needs: with fewer it says too little about rewards that
#: are integers, or 0 and 1.
LEAST_FREEDOM = 10
#: Cells times the square of the rank up to which the tests take about a millisecond.
CHEAP = 300_000
#: Relative size of what is rounding error.
ROUNDING = 1e-12


def work_of(state: "State") -> int:
    """Return how much there is to compute: the means of all batches, in all dimensions."""
    return state.cells * state.arms.rank**2


def is_look(batches: int, work: int) -> bool:
    """Return whether to test after so many batches: ever more rarely where it is expensive.

    Examples
    --------
    >>> all(is_look(k, work=CHEAP) for k in range(1, 60))
    True
    >>> [k for k in range(1, 60) if is_look(k, work=10**9)][19:]
    [20, 22, 24, 26, 28, 30, 33, 36, 39, 42, 46, 50, 55]
    """
    if work <= CHEAP:
        return True
    k = 20
    while k < batches:
        k += max(k // 10, 1)
    return batches <= 20 or k == batches


def checks_of(state: "State") -> list[Check]:
    """Return what the tests of a study have found: what has failed before, and what is so now."""
    moment = (len(state.measured), state.stage, state.end)
    if state.checked is None or state.checked[0] != moment:
        now = found(state.problem, state.pooled.estimate(), state.measured, state.since)
        bent = bend_checks(findings_of(state), state.problem, state.verdict.pulls, state.end)
        checks = {check.kind: check for check in [*bent, *now]} | state.failed
        if "bend" in checks and checks["bend"].fails:
            checks.pop("fit", None)  # it would say the same again, without saying how they bend
        state.checked = (moment, [*checks.values()])
    return list(state.checked[1])


def promised(state: "State") -> bool:
    """Return whether what was decided is wrong with probability at most delta.

    This is the one place that says so: without it nothing is called certain anywhere.
    """
    return guaranteed(state.settings.strategy) and not doubts_of(state)


def doubts_of(state: "State") -> list[str]:
    """Return why nothing is certain, whatever was decided: checks that fail come after the log."""
    return [*state.doubts, *(check.reason for check in checks_of(state) if check.fails)]


def risk_of(state: "State") -> float | None:
    """Return the probability with which the winner is wrong, at most; None without a guarantee."""
    return sum(state.levels) if promised(state) else None


def found(
    problem: Problem, fit: Estimate, measured: Sequence[BatchSums], since: int
) -> list[Check]:
    """Return what the tests have found; `fit` is the estimate from all rewards.

    Of the batches, `since` were measured before the arms last changed.
    """
    if fit.statistics.pulls == 0:
        return []
    looks = max(len(measured), 1)
    level = 2.0 * ALARM / (looks * (looks + 1))
    checks = [_noise(problem, fit, level), _fit(problem, fit, level)]
    if not problem.batch_intercept:
        checks.append(_shift(problem, measured[since:], level))
    return [check for check in checks if check is not None]


def _noise(problem: Problem, fit: Estimate, level: float) -> Check | None:
    """Compare the scatter of the rewards with sigma."""
    sigma, freedom = problem.scale, fit.degrees_of_freedom
    if sigma is None or freedom < 1:
        return None
    try:
        variance = fit.residual_variance
    except EstimateError:
        return None
    scatter = math.sqrt(variance)
    ratio = scatter / sigma
    score = freedom * (ratio * ratio)  # infinite, not an error, for a sigma that is next to nothing
    given = f"sigma = {sigma:.3g} says"
    seen = f"The results scatter by {scatter:.3g} around the model"
    if problem.precisions is not None:
        seen, given = f"The results scatter {scatter:.3g} times as much", "their sigmas say"
    # A model that may be wrong by c adds up to c^2 for every pull to the squares.
    beyond = float(fit._weights().sum()) * (problem.misspecification / sigma) ** 2
    if beyond == 0.0 and is_usual(freedom, score):
        return None
    from scipy.special import chdtr, chdtrc, chndtr

    above = chdtrc(freedom, score) if beyond == 0.0 else 1.0 - chndtr(score, freedom, beyond)
    if above < level:
        return Check(
            "noise",
            f"{seen}, more than {given}",
            True,
            "Either sigma is larger: begin a new study with a larger one, or sigma=None. Or the "
            "model is wrong.",
        )
    if problem.noise.normal and chdtr(freedom, score) < level:
        return Check(
            "noise",
            f"{seen}, less than {given}",
            False,
            "The guarantee holds, but a smaller sigma would need fewer measurements.",
        )
    return None


def _fit(problem: Problem, fit: Estimate, level: float) -> Check | None:
    """Compare the means of arms with the linear model, by the scatter within arms."""
    try:
        test = fit.lack_of_fit()
    except EstimateError:
        return None
    if test is None:
        return None
    c = problem.misspecification
    if c == 0.0 and is_usual_ratio(test.df_fit, test.df_pure, test.f):
        return None
    most = c * c * float(fit._weights().sum())
    p_value = test.p_value if c == 0.0 else _p_value_within(test, most)
    if not p_value < level:
        return None
    more = "" if c == 0.0 else f", also if they are off by {c:g}"
    missing = "squares, interactions" if problem.arms.has_intercept else "a constant, squares"
    return Check(
        "fit",
        f"The means of the candidates are not linear in their features{more} (lack of fit, "
        f"F = {test.f:.3g}, {_shown(p_value)})",
        True,
        f"Begin a new study with more features ({missing}), allow for it (misspecification), or "
        f"use candidates without features.",
    )


def _shown(p: float) -> str:
    return f"p = {p:.1g}" if p >= 1e-16 else "p < 1e-16"


def _p_value_within(test: LackOfFit, most: float) -> float:
    """Return the p-value of a model that is off, with squares of at most `most` in all.

    The ratio then has a noncentral F distribution; its noncentrality, in units of the variance of
    the noise, is taken from the scatter within arms.
    """
    from scipy.special import ncfdtr

    variance = test.ss_pure / test.df_pure
    if variance == 0.0:
        return 1.0 if test.ss_fit <= most else 0.0
    return float(1.0 - ncfdtr(test.df_fit, test.df_pure, most / variance, test.f))


def _shift(problem: Problem, measured: Sequence[BatchSums], level: float) -> Check | None:
    """Compare batches: their rewards may be shifted against each other, each by a constant."""
    p = shift_p_value(problem.arms, measured, problem.precisions, False)
    if p is None or not p < level:
        return None
    return Check(
        "shift",
        f"Batches are shifted against each other ({_shown(p)}), as by plates or days",
        True,
        "Look for what changed between batches, or begin a new study that allows for such shifts "
        "(batch_intercept).",
    )


def shift_p_value(
    arms: Arms,
    measured: Sequence[BatchSums],
    precisions: Float[np.ndarray, " K"] | None = None,
    usual: bool = True,
) -> float | None:
    """Return the p-value of the F test of a constant for each batch; None if it has no meaning.

    If `usual` is False, None too where no test rejects.

    Residual means of (batch, arm) cells under the linear model, with and without the constants,
    by weighted least squares; the scatter between cells that is left is the measure.
    """
    batches = [m for m in measured if len(m.arms)]
    if len(batches) < 2:
        return None
    rows = np.concatenate([m.arms for m in batches])
    weight = np.sqrt(np.concatenate([m.count for m in batches]).astype(float))
    if precisions is not None:
        weight *= np.sqrt(precisions[rows])
    mean = np.concatenate([m.mean for m in batches])
    of = np.repeat(np.arange(len(batches)), [len(m.arms) for m in batches])
    Z, target = arms.coordinates[rows], mean - mean.mean()
    # A constant common to all batches is no shift, also where the features cannot express it.
    small, small_rank = _squares(
        np.column_stack([Z, np.ones(len(Z))]) * weight[:, None], target * weight
    )
    # With a constant for each batch: the same after centring within batches (Frisch and Waugh).
    total = np.bincount(of, weight**2)

    def centred(values: np.ndarray) -> np.ndarray:
        return np.asarray(values - (np.bincount(of, weight**2 * values) / total)[of])

    within = np.column_stack([centred(column) for column in Z.T])
    within[np.abs(within) < ROUNDING * np.abs(Z).max()] = 0.0
    large, rank = _squares(within * weight[:, None], centred(target) * weight)
    more, left = rank + len(batches) - small_rank, len(target) - rank - len(batches)
    scale = float(np.sum((target * weight) ** 2))
    if more < 1 or left < LEAST_FREEDOM or large <= ROUNDING**2 * scale:
        return None
    ratio = max(small - large, 0.0) / more / (large / left)
    if not usual and is_usual_ratio(more, left, ratio):
        return None
    from scipy.special import fdtrc

    return float(fdtrc(more, left, ratio))


def _squares(X: np.ndarray, y: np.ndarray) -> tuple[float, int]:
    """Return the residual sum of squares and the rank."""
    solution, _, rank, _ = np.linalg.lstsq(X, y, rcond=None)
    return float(np.sum((y - X @ solution) ** 2)), int(rank)


def better_by_all(
    problem: Problem, fit: Estimate, arm: int | None, error: float | None
) -> int | None:
    """Return the arm that all rewards together speak for, if they speak against this one.

    Strategies for a fixed budget rank by their last phase alone, as their papers have it.
    """
    if arm is None or error is None or error <= 0.5:
        return None
    best = leader(fit, problem.sign, range(len(problem.arms)))
    return None if best == arm else best
