"""Results from Python: checks of pulls and rewards, and each pull once."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

from finalist.errors import RewardError
from finalist.inference.statistics import LARGEST_REWARD
from finalist.text import show

#: The range of the numbers of pulls.
INT64 = np.iinfo(np.int64)
#: Up to here a float holds every whole number.
LARGEST_EXACT = 2**53


@dataclass(frozen=True, eq=False)
class Results:
    """Rewards of pulls, in the order given; each pull once.

    Attributes
    ----------
    pulls : (n,) array
        The numbers of the pulls.
    rewards : (n,) array
        Finite, at most 1e150 in size.
    notes : tuple of str or None
        What other columns of a table say of each pull, as the JSON text {column: value}.
    arms : tuple of str or None
        The arm named beside each pull, if any: the study checks that it is that pull's arm.
    """

    pulls: Int64[np.ndarray, " n"]
    rewards: Float[np.ndarray, " n"]
    notes: tuple[str | None, ...]
    arms: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.pulls)


def from_pairs(pairs: Any) -> Results:
    """Read (pull, reward) pairs; reject anything else."""
    pulls: list[int] = []
    rewards: list[float] = []
    if not isinstance(pairs, Iterable) or isinstance(pairs, bytes | bytearray):
        raise RewardError(f"results are {show(pairs)}; give {{pull: reward}}, pairs or a table.")
    for pair in pairs:
        try:
            pull, reward = pair
        except (TypeError, ValueError):
            raise RewardError(f"{show(pair)} is not a pair; give (pull, reward).") from None
        problem = pull_problem(pull)
        if problem is not None:
            raise RewardError(f"pull {show(pull)} {problem}.")
        problem = reward_problem(reward)
        if problem is not None:
            raise RewardError(
                f"reward for pull {pull} is {show(reward)}, which {problem}. "
                "Leave out a pull that is not measured."
            )
        pulls.append(int(pull))
        rewards.append(float(reward))
    nothing = (None,) * len(pulls)
    numbers = np.array(pulls, dtype=np.int64)
    return once(numbers, np.array(rewards, dtype=float), nothing, nothing, "", None)


def pull_problem(pull: object) -> str | None:
    """Say why a value is not the number of a pull, or None."""
    if type(pull) is int and 0 <= pull <= LARGEST_EXACT:  # the usual one, fast
        return None
    if pull is None:
        return "is not given; the number of a pull is an int"
    if isinstance(pull, str | bytes):
        return "is text; the number of a pull is an int. Use int(...)"
    if isinstance(pull, bool | np.bool_) or not isinstance(pull, Integral):
        return "is not a whole number; the number of a pull is an int"
    return None if INT64.min <= int(pull) <= INT64.max else "is too large for a pull"


def reward_problem(reward: object) -> str | None:
    """Say why a value is not a reward, or None."""
    if type(reward) is float:  # the usual one, fast
        return size_problem(reward)
    if isinstance(reward, str | bytes):
        return "is text; a reward is a finite number"
    if isinstance(reward, bool | np.bool_) or not isinstance(reward, Real):
        return "is not a number; a reward is a finite number"
    try:
        value = float(reward)
    except OverflowError:
        value = math.inf
    return size_problem(value)


def size_problem(value: float) -> str | None:
    """Say why a float is not a reward, or None."""
    if not math.isfinite(value):
        return "is not a finite number"
    if abs(value) > LARGEST_REWARD:
        return f"is beyond {LARGEST_REWARD:g}, the largest reward; rescale"
    return None


def once(
    pulls: Int64[np.ndarray, " n"],
    rewards: Float[np.ndarray, " n"],
    notes: tuple[str | None, ...],
    arms: tuple[str | None, ...],
    source: str,
    place: Callable[[int], str] | None,
) -> Results:
    """Merge repeated results of a pull; refuse two different rewards or arms."""
    distinct, first, inverse = np.unique(pulls, return_index=True, return_inverse=True)
    if len(distinct) == len(pulls):
        return Results(pulls, rewards, notes, arms)
    kept_notes, kept_arms = list(notes), list(arms)
    owner = first[inverse]
    for i in np.flatnonzero(owner != np.arange(len(pulls))).tolist():
        j = int(owner[i])
        at = ("", "") if place is None else (f" ({place(j)})", f" ({place(i)})")
        if rewards[i] != rewards[j]:
            raise RewardError(
                f"{source}pull {pulls[i]} has two rewards: {rewards[j]}{at[0]} and "
                f"{rewards[i]}{at[1]}. Give the right one only."
            )
        if None not in (arms[i], kept_arms[j]) and arms[i] != kept_arms[j]:
            raise RewardError(
                f"{source}pull {pulls[i]} has two arms: {show(kept_arms[j])}{at[0]} and "
                f"{show(arms[i])}{at[1]}. Give the right one only."
            )
        kept_arms[j] = arms[i] if kept_arms[j] is None else kept_arms[j]
        kept_notes[j] = notes[i] if kept_notes[j] is None else kept_notes[j]
    rows = np.sort(first)
    return Results(
        pulls[rows],
        rewards[rows],
        tuple(kept_notes[i] for i in rows),
        tuple(kept_arms[i] for i in rows),
    )
