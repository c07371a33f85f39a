"""Strategies with settings in one word: `xy-adaptive:alpha=0.1:bound=soare`."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from finalist.errors import ProblemError
from finalist.simulation.instances import Instance
from finalist.strategies import (
    Strategy,
    about,
    all_strategies,
    configured,
    named,
    promise_of,
    strategy_class,
)

Value = bool | int | float | str | None
#: Marks a strategy that is told the parameter.
KNOWS = "knows theta"
#: Relative tolerance when norms are compared.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Spec:
    """A strategy by name, with the settings that differ from its defaults."""

    name: str
    settings: tuple[tuple[str, Value], ...] = ()

    @property
    def label(self) -> str:
        """The word it is written as."""
        return ":".join([self.name, *(f"{word}={_written(v)}" for word, v in self.settings)])

    def strategy(self, instance: Instance) -> Strategy:
        """Return the configured strategy; one that needs theta is told."""
        return configured(self.name, dict(self.settings), instance.arms, instance.theta)


def parse_spec(text: str) -> Spec:
    """Parse a strategy with settings; values are numbers, true, false, null, or otherwise text.

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
    if promise_of(strategy) == "zone":
        raise ProblemError(
            f"strategy {name!r} promises delta only where the best arm leads by epsilon or more, "
            f"and these problems have no epsilon; this benchmark compares {', '.join(confident())}."
        )
    settings: dict[str, Value] = {}
    for part in parts:
        word, equals, value = part.partition("=")
        if not (equals and word.isidentifier()) or word in settings:
            raise ProblemError(
                f"strategy {text!r}: {part!r} is not a setting, or appears twice; write "
                "NAME:SETTING=VALUE:SETTING=VALUE, for example xy-adaptive:alpha=0.1."
            )
        settings[word] = _value(text, value)
    return Spec(name, tuple(settings.items()))


def parse_specs(texts: Iterable[str]) -> tuple[Spec, ...]:
    """Parse comma-separated strategies, without repeats; by default all of them."""
    return tuple(dict.fromkeys(map(parse_spec, split_words(texts) or confident())))


def split_words(texts: Iterable[str]) -> tuple[str, ...]:
    """Split texts at commas and drop empty words; refuse texts that leave nothing.

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
    """Return the names of all strategies that keep an error probability, whatever the means are."""
    known = all_strategies().items()
    return [name for name, strategy in known if promise_of(strategy) == "confidence"]


def marks(spec: Spec, instance: Instance) -> tuple[str, ...]:
    """Return what a reader must know about a strategy besides its name; usually nothing.

    A given `theta_norm` is a claim about theta, and the proof holds only if the claim is true.
    """
    strategy: Any = spec.strategy(instance)
    told: Any = named(spec.name, instance.arms, instance.theta)
    proven = about(strategy).proven
    words = []
    if "theta_norm" in dict(spec.settings):
        words.append("theta_norm given")
        proven = proven and strategy.theta_norm >= (1 - _ROUNDING) * told.theta_norm
    elif hasattr(told, "theta"):
        words.append(KNOWS)
    elif hasattr(told, "theta_norm"):
        words.append("knows |theta|")
    elif about(told).knowing is not None:
        words.append("knows something of theta")
    return (*words, *([] if proven else ["no proof"]))


def _value(text: str, value: str) -> Value:
    """Parse a JSON number, true, false or null; anything else is text."""
    try:
        found = json.loads(value)
    except ValueError:
        return value
    if isinstance(found, list | dict):
        raise ProblemError(
            f"strategy {text!r}: {value!r} is not a number, true, false, null or a word."
        )
    checked: Value = found
    return checked


def _written(value: Value) -> str:
    return value if isinstance(value, str) else json.dumps(value)
