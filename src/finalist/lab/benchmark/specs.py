"""Strategies with settings, written as a word: `xy-adaptive:alpha=0.1:bound=soare`."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from finalist.errors import ProblemError
from finalist.simulation.instances import Instance
from finalist.strategies import (
    Strategy,
    all_strategies,
    configured,
    named,
    promise_of,
    strategy_class,
)

Value = bool | int | float | str | None
#: The mark of a strategy that is told the parameter.
KNOWS = "knows theta"
#: A norm that is smaller by no more than this part is the same one.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Spec:
    """A strategy by its name, with the settings that differ from its own.

    Attributes
    ----------
    name : str
    settings : tuple of (str, value)
    """

    name: str
    settings: tuple[tuple[str, Value], ...] = ()

    @property
    def label(self) -> str:
        """The word it is written as."""
        return ":".join([self.name, *(f"{word}={_written(v)}" for word, v in self.settings)])

    def strategy(self, instance: Instance) -> Strategy:
        """Return the configured strategy; one that has to know theta is told."""
        return configured(self.name, dict(self.settings), instance.arms, instance.theta)


def parse_spec(text: str) -> Spec:
    """Read a strategy with settings; values are numbers, true, false, null, or else text.

    Examples
    --------
    >>> parse_spec("xy-adaptive:alpha=0.1:bound=soare")
    Spec(name='xy-adaptive', settings=(('alpha', 0.1), ('bound', 'soare')))
    """
    name, *parts = (part.strip() for part in text.split(":"))
    strategy = strategy_class(name)
    if strategy is None:
        raise ProblemError(f"strategy is {name!r}; it is one of {', '.join(confident())}.")
    if promise_of(strategy) == "budget":
        raise ProblemError(
            f"strategy {name!r} spends a fixed budget and has no error probability to keep; "
            f"this benchmark compares {', '.join(confident())}."
        )
    settings: dict[str, Value] = {}
    for part in parts:
        word, equals, value = part.partition("=")
        if not (equals and word.isidentifier()) or word in settings:
            raise ProblemError(
                f"strategy {text!r}: {part!r} is no setting, or there twice; write "
                "NAME:SETTING=VALUE:SETTING=VALUE, for example xy-adaptive:alpha=0.1."
            )
        settings[word] = _value(text, value)
    return Spec(name, tuple(settings.items()))


def parse_specs(texts: Iterable[str]) -> tuple[Spec, ...]:
    """Read strategies with commas between them, each once; none at all means every one."""
    return tuple(dict.fromkeys(map(parse_spec, split_words(texts) or confident())))


def split_words(texts: Iterable[str]) -> tuple[str, ...]:
    """Split texts at commas, without empty words; refuse texts of which nothing is left.

    Examples
    --------
    >>> split_words(["gauntlet,", "g, uniform"])
    ('gauntlet', 'g', 'uniform')
    """
    given = list(texts)
    words = tuple(word.strip() for text in given for word in text.split(",") if word.strip())
    if given and not words:
        raise ProblemError(
            f"strategy is {given[0]!r}; write names with commas between them, such as gauntlet,g."
        )
    return words


def confident() -> list[str]:
    """Return the names of all strategies that keep an error probability."""
    known = all_strategies().items()
    return [name for name, strategy in known if promise_of(strategy) != "budget"]


def marks(spec: Spec, instance: Instance) -> tuple[str, ...]:
    """Return what a reader has to know of a strategy besides its name; mostly nothing.

    A `theta_norm` that is given instead of the true one is a claim. The proof needs it to be true.
    """
    strategy: Any = spec.strategy(instance)
    told: Any = named(spec.name, instance.arms, instance.theta)
    proven = getattr(strategy, "proven", True)
    words = []
    if "theta_norm" in dict(spec.settings):
        words.append("theta_norm given")
        proven = proven and strategy.theta_norm >= (1 - _ROUNDING) * told.theta_norm
    elif hasattr(told, "theta"):
        words.append(KNOWS)
    elif hasattr(told, "theta_norm"):
        words.append("knows |theta|")
    elif hasattr(type(told), "knowing"):
        words.append("knows something of theta")
    return (*words, *([] if proven else ["no proof"]))


def _value(text: str, value: str) -> Value:
    """Read a number, true, false or null as JSON has them; anything else is text."""
    try:
        found = json.loads(value)
    except ValueError:
        return value
    if isinstance(found, list | dict):
        raise ProblemError(f"strategy {text!r}: {value!r} is no number, true, false, null or word.")
    checked: Value = found
    return checked


def _written(value: Value) -> str:
    return value if isinstance(value, str) else json.dumps(value)
