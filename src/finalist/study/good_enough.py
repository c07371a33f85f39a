"""What is good enough, in words: what is within a margin, and what a margin would change."""

import math
from collections.abc import Sequence

import numpy as np

from finalist.errors import EstimateError
from finalist.planning import Forecast
from finalist.planning.figures import about, expected
from finalist.planning.forecasts import EARLY, FAR
from finalist.study.forecasts import MarginForecast
from finalist.study.snapshot import Snapshot
from finalist.text import first_few, quoted

#: So few standard errors tell two candidates apart in no test that holds whenever one looks.
_APART = 2.2


def at_most(value: float) -> str:
    """Return a bound with two digits, rounded up.

    Examples
    --------
    >>> at_most(0.3712), at_most(0.38), at_most(12.3), at_most(0.0), at_most(123.0)
    ('0.38', '0.38', '13', '0', '130')
    """
    if value == 0.0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / step - 1e-9) * step:.6g}"


def standing(snapshot: Snapshot) -> str | None:
    """Say how close to the best the arm in front is, and with a margin what else is in reach."""
    found = snapshot.standing
    if found is None:
        return None
    sentences = _within(snapshot)
    if found.reach is not None and snapshot.end is not None:
        sentences.append(_reach(snapshot, found.reach))
    return " ".join(sentences) or None


def _within(snapshot: Snapshot) -> list[str]:
    """Say how far the arm in front is behind the best at most, if that says something."""
    found, problem = snapshot.standing, snapshot.problem
    if found is None or found.within is None or not found.within < _worth_saying(snapshot):
        return []
    name = quoted(snapshot.arms.names[found.arm])
    known = f"Known now: {name} is within {at_most(found.within)} of the best"
    if problem.noise.sigma is None:
        sure = f"{100.0 * (1.0 - problem.delta):.4g} %"
        words = [f"{known}, by a {sure} interval that takes sigma from the results."]
    else:
        words = [
            f"{known}; this is wrong with probability at most {problem.delta:.3g}, whenever you "
            "look. It comes from intervals, whose risk comes on top of that of the tests."
        ]
    if problem.epsilon == 0.0 and snapshot.end is None:
        words.append("If a difference of that size does not matter to you, stop and take it.")
    return words


def _worth_saying(snapshot: Snapshot) -> float:
    """Return what a bound must be below: how much the estimates differ, or sigma if that is more.

    Early on a bound is larger than that, and says nothing.
    """
    means = snapshot.means[snapshot.arms.candidate]
    spread = float(np.ptp(means[np.isfinite(means)], axis=0)) if np.isfinite(means).any() else 0.0
    if snapshot.problem.noise.sigma is None:
        return spread
    return max(spread, float(snapshot.problem.sigmas[snapshot.arms.measurable].max()))


def _reach(snapshot: Snapshot, reach: Sequence[int]) -> str:
    """Say which others may be within the margin too."""
    names, margin = snapshot.arms.names, f"{snapshot.problem.epsilon:g}"
    others = len(snapshot.problem.candidates) - 1
    on = "by 95 % intervals that hold for all candidates together and at all times"
    if not reach:
        what = "The other candidate is" if others == 1 else "All others are"
        return f"{what} shown to be more than {margin} worse, {on}."
    some = first_few([f"{quoted(names[i])} ({_behind(snapshot, i)})" for i in reach])
    verb = "is" if len(reach) == 1 else "are"
    words = f"Perhaps good enough too: {some} {verb} not shown to be more than {margin} worse."
    rest = others - len(reach)
    if rest == 0:
        return words
    what = "The other candidate is" if rest == 1 else f"The other {rest:,} are"
    return f"{words} {what}, {on}."


def _behind(snapshot: Snapshot, arm: int) -> str:
    """Say how far an arm is behind the one in front by the estimates."""
    assert snapshot.standing is not None
    lead = snapshot.means[snapshot.standing.arm] - snapshot.means[arm]
    lead *= snapshot.problem.sign
    if np.isnan(lead):
        return "not estimated"
    return f"about {abs(lead):.2g} {'behind' if lead >= 0.0 else 'ahead'}"


def nearly_tied(snapshot: Snapshot) -> bool:
    """Return whether the two in front would still be close after many more measurements.

    By ordinary standard errors: after FAR times the measurements so far their difference would be
    less than `_APART` of them. With fewer than EARLY measurements per dimension nothing is said.
    """
    problem, verdict, fit = snapshot.problem, snapshot.verdict, snapshot.fit
    asked = problem.top == 1 and problem.epsilon == 0.0 and problem.budget is None
    early = verdict.pulls < EARLY * snapshot.arms.rank
    if not asked or early or snapshot.end is not None or not snapshot.certain:
        return False
    front = sorted(verdict.survivors, key=lambda i: -problem.sign * snapshot.means[i])[:2]
    sigma = _noise(snapshot)
    if len(front) < 2 or np.isnan(snapshot.means[front]).any() or sigma is None:
        return False
    Z = fit.arms.coordinates[front]
    error = sigma * float(fit.widths(Z[:1] - Z[1:])[0])
    lead = abs(snapshot.means[front[0]] - snapshot.means[front[1]])
    return bool(lead * math.sqrt(FAR) < _APART * error)


def _noise(snapshot: Snapshot) -> float | None:
    """Return the scale of the widths, from the residuals if sigma is unknown; None without any."""
    if snapshot.problem.scale is not None:
        return snapshot.problem.scale
    try:
        return math.sqrt(snapshot.fit.residual_variance)
    except EstimateError:
        return None


def saving(margins: Sequence[MarginForecast], soon: Forecast | None) -> str | None:
    """Say what a margin would change, where it would save much.

    Examples
    --------
    >>> found = [MarginForecast(0.2, 60.0, 40.0, 90.0, 450)]
    >>> text = saving(found, Forecast(np.array([900.0]), cap=4000))
    >>> text.split(", ")[0]
    'With a margin of 0.2 a new study would need about 60 measurements'
    """
    some = [(one.epsilon, one.median) for one in margins if one.median is not None]
    if not some:
        return None
    (first, pulls), *others = some
    words = f"With a margin of {first:g} a new study would need {_measurements(pulls)}"
    words += "".join(f", with {epsilon:g} {expected(n, 0)}" for epsilon, n in others)
    if soon is not None:
        words += f", instead of {expected(soon.median, soon.cap)} more here"
    return (
        f"{words}. This is a forecast from the results so far. They would guide the new study, "
        "which starts with fresh evidence and a delta of its own: begin it as a fork with that "
        "margin. Choose the margin by what does not matter to you, not by what it saves."
    )


def _measurements(pulls: float) -> str:
    return f"about {about(pulls)} {'measurement' if pulls == 1 else 'measurements'}"
