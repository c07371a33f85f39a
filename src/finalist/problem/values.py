"""Numbers of a problem: one for all arms or one per arm, checked when they are given."""

from collections.abc import Sequence
from enum import Enum
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.text import counted, show

#: One number for all arms, or one per arm; stored as a float or a tuple of floats.
PerArm = float | Sequence[float] | np.ndarray

#: Characters of a setting that is a text.
MAX_TEXT = 40


class Unset(Enum):
    """Tells an argument left out from one that is None."""

    UNSET = "unset"


UNSET = Unset.UNSET
if TYPE_CHECKING:
    Sigma = PerArm | None
    KnownSigma = PerArm
else:  # UNSET is refused
    Sigma = PerArm | Unset | None
    KnownSigma = PerArm | Unset


def checked_number(value: object, what: str) -> float:
    """Return a number as a float; text and bools are refused."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ProblemError(f"{what} is {value!r}, which is not a number.")
    return float(value)


def checked_delta(value: object) -> float:
    """Return a probability of error, between 0 and 1."""
    delta = checked_number(value, "delta")
    if not 0 < delta < 1:
        raise ProblemError(
            f"delta is {delta}; it is the probability of a wrong answer, between 0 and 1, "
            "for example 0.05."
        )
    return delta


def checked_bias(value: object) -> float:
    """Return a misspecification, 0 or more."""
    bias = checked_number(value, "misspecification")
    if not (0 <= bias < float("inf")):
        raise ProblemError(
            f"misspecification is {bias}; it is how far a mean may be from the linear model, in "
            "units of the result, 0 or more."
        )
    return bias


def checked_chance(name: str, value: object) -> float:
    """Return a probability, 0 or more and below 1."""
    chance = checked_number(value, name)
    if not 0 <= chance < 1:
        raise ProblemError(
            f"{name} is {chance}; it is a probability below 1, such as 0.03, or 0 for none."
        )
    return chance


def checked_limit(name: str, value: object) -> int | None:
    """Return a limit on pulls: None, or a positive integer below 2**63."""
    if value is None:
        return None
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (whole and 1 <= int(value) < 2**63):  # type: ignore[call-overload]
        raise ProblemError(
            f"{name} is {value!r}; it is a number of measurements, 1 or more, or None."
        )
    return int(value)  # type: ignore[call-overload, no-any-return]


def check_text(name: str, text: object) -> None:
    """Refuse anything but None and a short text on one line."""
    short = isinstance(text, str) and text.isprintable() and 0 < len(text.strip()) <= MAX_TEXT
    if text is not None and not short:
        raise ProblemError(
            f"{name} is {show(text)}; it is a text of at most {MAX_TEXT} characters on one line, "
            "or None."
        )


def store_positive(owner: object, name: str, value: object, remedy: str) -> None:
    """Set a positive number, or one per arm as a tuple, on a frozen dataclass."""
    try:
        array = np.asarray(value)
    except ValueError:  # sequences of unequal length
        array = np.asarray(None)
    if array.dtype.kind not in "iuf" or array.ndim > 1:
        raise ProblemError(f"{name} is {value!r}; it is a number, or one per arm. {remedy}")
    bad = np.flatnonzero(~(np.isfinite(array) & (array > 0)))
    if len(bad):
        where = f" for candidate {bad[0]}" if array.ndim else ""
        shown = np.ravel(array)[bad[0]]
        raise ProblemError(f"{name}{where} is {shown}; it is positive and finite. {remedy}")
    stored = tuple(map(float, array)) if array.ndim else float(array)
    object.__setattr__(owner, name, stored)


def one_per_arm(name: str, values: tuple[float, ...], arms: Arms, given: int) -> tuple[float, ...]:
    """Return one value for each arm.

    Values of arms that cannot be pulled may be left out, and so may those of candidates that
    joined the `given` arms, which come first.
    """
    if len(values) == len(arms):
        return values
    pulled, all_of = int(arms.measurable.sum()), np.ones(len(arms))
    if len(values) == pulled:
        all_of[arms.measurable] = values
    elif len(values) == given:
        all_of[:given] = values
    else:
        either = "" if pulled == len(arms) else f", or for the {pulled} that can be measured"
        raise ProblemError(
            f"{name} has {counted(len(values), 'value')} for {len(arms)} candidates; give one per "
            f"candidate{either}, in the order of arms.names (candidates with identical "
            f"features are one candidate)."
        )
    return tuple(all_of.tolist())


def as_array(value: PerArm, arms: Arms) -> Float[np.ndarray, " K"]:
    """Return one number for each arm, read-only."""
    array = np.array(np.broadcast_to(np.asarray(value, dtype=float), len(arms)))
    array.setflags(write=False)
    return array
