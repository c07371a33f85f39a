"""What a strategy says of itself, read in one place, and what its settings may be.

Strategies of finalist inherit `protocol.Declared`; those of others may leave out what has a default
in `About`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeGuard, get_args

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.problem import Feature
from finalist.strategies.abilities import Sized
from finalist.strategies.protocol import Promise, Run, Strategy


class About(NamedTuple):
    """What a strategy declares.

    Attributes
    ----------
    promise : "confidence", "budget" or "zone"
        What a winner is.
    proven : bool
        Whether there is a proof that a promised probability of error is kept.
    supports : frozenset of Feature, or None
        What a problem may need; None if it does not say.
    knowing : callable or None
        Makes the strategy from the arms and the true parameter, of which it has to know something.
    suits : callable or None
        Tells whether it is for some arms; None if it is for all.
    """

    promise: Promise = "confidence"
    proven: bool = True
    supports: frozenset[Feature] | None = None
    knowing: Callable[..., Strategy] | None = None
    suits: Callable[[Arms], bool] | None = None


def about(strategy: Strategy | type[Strategy]) -> About:
    """Return what a strategy or its class declares; a class leaves open what settings decide.

    Examples
    --------
    >>> import finalist as fl
    >>> about(fl.LazyTS(threshold="heuristic")).proven, about(fl.LazyTS).promise
    (False, 'confidence')
    >>> about(fl.LinGapE).knowing is None, "top-m" in about(fl.Gauntlet()).supports
    (False, True)
    """
    said = {word: getattr(strategy, word) for word in About._fields if hasattr(strategy, word)}
    return About(**{word: one for word, one in said.items() if not isinstance(one, property)})


def promise_of(strategy: Strategy | type[Strategy]) -> Promise:
    """Return what a winner of the strategy is: its class attribute `promise`, or "confidence".

    Examples
    --------
    >>> import finalist as fl
    >>> promise_of(fl.Gauntlet()), promise_of(fl.ODLinBAI())
    ('confidence', 'budget')
    """
    return about(strategy).promise


def guaranteed(strategy: Strategy) -> bool:
    """Return whether it is proven that a winner is wrong with probability at most delta.

    A strategy whose threshold has no proof says so: its attribute `proven` is false. One with an
    indifference zone has a proof only if the best arm leads by epsilon or more.

    Examples
    --------
    >>> import finalist as fl
    >>> guaranteed(fl.Gauntlet()), guaranteed(fl.ODLinBAI()), guaranteed(fl.KN())
    (True, False, False)
    >>> guaranteed(fl.LazyTS(threshold="heuristic"))
    False
    """
    said = about(strategy)
    return said.promise == "confidence" and bool(said.proven)


def shown_name(strategy: Strategy) -> str:
    """Return the name for a table, marked if the strategy promises delta without a proof.

    Examples
    --------
    >>> import finalist as fl
    >>> shown_name(fl.LazyTS()), shown_name(fl.LazyTS(threshold="heuristic"))
    ('lazy-ts', 'lazy-ts (no proof)')
    """
    said = about(strategy)
    unproven = said.promise == "confidence" and not said.proven
    return f"{strategy.name} (no proof)" if unproven else strategy.name


def block_size(run: Run, size: int | None, *, whole: bool = False) -> int | None:
    """Return the size of the next batch when `size` pulls can be made at a time.

    A size that is large enough for a test is taken as it is. Otherwise, or if `whole`, it is the
    size that the strategy would choose, rounded up to a multiple of `size`.

    Examples
    --------
    >>> import finalist as fl
    >>> run = fl.Gauntlet().start(fl.Problem(fl.Arms.unstructured(8), noise=fl.Gaussian(1.0)))
    >>> block_size(run, 12), block_size(run, 12, whole=True)
    (12, 12)
    """
    if size is None or not isinstance(run, Sized) or not (whole or size < run.least_size):
        return size
    return size * math.ceil(max(run.own_size, size) / size)


def is_number(value: object) -> TypeGuard[float]:
    """Tell whether a setting is a number; bool does not count as one."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_between(name: str, value: object, ends: tuple[float, float]) -> None:
    """Reject a setting that is not a number between two ends."""
    if not (is_number(value) and ends[0] <= value <= ends[1]):
        raise ProblemError(f"{name} is {value!r}; it must be between {ends[0]:g} and {ends[1]:g}.")


def check_choice(name: str, value: object, choices: Any) -> None:
    """Reject a setting that is not one of the words of a Literal."""
    if value not in get_args(choices):
        words = " or ".join(map(repr, get_args(choices)))
        raise ProblemError(f"{name} is {value!r}; it must be {words}.")
