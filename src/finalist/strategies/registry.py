"""Every strategy by its name: those of finalist (`table`), of other packages, and your own.

`register` makes a class known in this process, an entry point does so for an installed package:

    [project.entry-points."finalist.strategies"]
    doubling = "my_package:Doubling"

Entry points are loaded once, when a name is not found or when all names are asked for.
"""

import re
import warnings
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.shapes import Float
from finalist.strategies import table
from finalist.strategies.about import about, check_choice
from finalist.strategies.protocol import Promise, Strategy

#: The strategies that are loaded, by name; `all_strategies` has those of other packages too.
STRATEGIES: dict[str, type[Strategy]] = {
    cast(Any, cls).name: cls for cls in vars(table).values() if isinstance(cls, type)
}
#: Entry points of other packages.
GROUP = "finalist.strategies"

if TYPE_CHECKING:
    StrategyClass = type[Strategy]
else:  # at run time a protocol with attributes cannot tell whether a class has them
    StrategyClass = type
_Class = TypeVar("_Class", bound=StrategyClass)
_loading, _loaded = RLock(), False


def register(cls: _Class) -> _Class:
    """Make a strategy class known by its name in this process; a decorator.

    From then on `simulate`, `plan`, `Study.create`, `Study.open` and the benchmark accept the name.
    A class that is defined again, as when a notebook cell is run twice, replaces the one before.

    Parameters
    ----------
    cls : class
        A frozen dataclass with a `name`, a method `start`, and a default for each setting.

    Returns
    -------
    class
        The same one.

    Examples
    --------
    >>> register(table.Gauntlet).name
    'gauntlet'
    >>> register("gauntlet")
    Traceback (most recent call last):
    finalist.errors.ProblemError: 'gauntlet' is not a strategy class; ...
    """
    _check_class(cls)
    other = STRATEGIES.get(cls.name, cls)
    if _full_name(other) != _full_name(cls):
        raise ProblemError(
            f"strategy name {cls.name!r} of {_full_name(cls)} is taken by {_full_name(other)}; "
            "give it another name."
        )
    STRATEGIES[cls.name] = cls
    return cls


def all_strategies() -> Mapping[str, StrategyClass]:
    """Return every strategy by its name, including those that installed packages declare.

    Examples
    --------
    >>> all_strategies()["gauntlet"]
    <class 'finalist.strategies.gauntlet.strategy.Gauntlet'>
    """
    _load_entry_points()
    return dict(STRATEGIES)


def strategy_class(name: str) -> StrategyClass | None:
    """Return the strategy of that name, or None if it is unknown.

    Examples
    --------
    >>> strategy_class("gauntlet"), strategy_class("guess")
    (<class 'finalist.strategies.gauntlet.strategy.Gauntlet'>, None)
    """
    if name not in STRATEGIES:
        _load_entry_points()
    return STRATEGIES.get(name)


def named(name: str, arms: Arms, theta: Float[np.ndarray, " d"] | None = None) -> Strategy:
    """Return the strategy of that name with its default settings.

    Parameters
    ----------
    theta : (d,) array, optional
        The true parameter. Some strategies have to know something of it, and take it from here
        through their class method `knowing(arms, theta)`.

    Examples
    --------
    >>> import finalist as fl
    >>> named("xy-adaptive", fl.Arms.unstructured(3)).alpha
    0.4
    """
    strategy = strategy_class(name)
    if strategy is None:
        raise ProblemError(f"strategy is {name!r}; it is one of {', '.join(sorted(STRATEGIES))}.")
    knowing = about(strategy).knowing
    if knowing is None:
        return strategy()
    if theta is None:
        raise ProblemError(
            f"strategy {name!r} has to know the true parameter, so it works in simulations only "
            "(or give it what it needs yourself: " + strategy.__name__ + "(...))."
        )
    return knowing(arms, theta)


def settings_of(name: str) -> tuple[str, ...]:
    """Return the names of a strategy's settings; none if there is no such strategy.

    Examples
    --------
    >>> settings_of("gauntlet"), settings_of("peace")
    (('growth',), ())
    """
    strategy: Any = strategy_class(name)
    return tuple(field.name for field in fields(strategy)) if is_dataclass(strategy) else ()


def configured(
    name: str,
    settings: Mapping[str, Any],
    arms: Arms,
    theta: Float[np.ndarray, " d"] | None = None,
) -> Strategy:
    """Return the strategy of that name with some settings other than their defaults.

    One that has to know the size of the true parameter takes it from theta, or from its setting.

    Examples
    --------
    >>> import finalist as fl
    >>> configured("lingape", {"theta_norm": 2.0}, fl.Arms.unstructured(3)).ridge
    1.0
    """
    known = settings_of(name)
    unknown = [word for word in settings if word not in known]
    if unknown and name in STRATEGIES:
        raise ProblemError(
            f"{name} has no setting {unknown[0]!r}; it has {', '.join(known) or 'none'}."
        )
    if theta is None and "theta_norm" in settings and name in STRATEGIES:
        return STRATEGIES[name](**settings)
    changed: Strategy = replace(named(name, arms, theta), **settings)  # type: ignore[type-var]
    return changed


def _check_class(cls: Any) -> None:
    """Reject what cannot be a strategy, and settings that a study could not keep."""
    if not isinstance(cls, type):
        raise ProblemError(f"{cls!r} is not a strategy class; put @fl.register above one.")
    full, name = _full_name(cls), getattr(cls, "name", None)
    if not (isinstance(name, str) and re.fullmatch(r"[^\s:,=]+", name)):
        raise ProblemError(
            f"{full} has the name {name!r}; write name: ClassVar[str] = 'some-name' in it, without "
            "spaces, commas, colons and equals signs."
        )
    if not callable(getattr(cls, "start", None)):
        raise ProblemError(f"{full} has no method start(problem, seed=0) that returns a run.")
    said = about(cls)
    check_choice(f"{full}: promise", said.promise, Promise)
    if not (is_dataclass(cls) and cls.__dataclass_params__.frozen):  # type: ignore[attr-defined]
        raise ProblemError(
            f"{full} is not a frozen dataclass, so its settings cannot be stored; put "
            "@dataclass(frozen=True) between @fl.register and the class."
        )
    if "name" in (field.name for field in fields(cls)):
        raise ProblemError(f"{full} has its name as a setting; write name: ClassVar[str].")
    bare = [f.name for f in fields(cls) if f.default is f.default_factory is MISSING and f.init]
    if bare and said.knowing is None:
        raise ProblemError(
            f"{full} has no default for its setting {bare[0]!r}; give one, or a class method "
            "knowing(arms, theta) if it has to know the truth."
        )


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _load_entry_points() -> None:
    """Register what installed packages declare, once; skip broken ones with a warning."""
    global _loaded
    with _loading:  # by one thread; a module may ask for a name while it is being loaded
        if _loaded:
            return
        _loaded = True
        from importlib.metadata import entry_points

        broken = []
        for point in entry_points(group=GROUP):
            try:
                register(point.load())
            except Exception as error:
                broken.append(f"{point.name} = {point.value!r} ({type(error).__name__}: {error})")
    for words in broken:
        warnings.warn(
            f"the strategy {words} of an installed package cannot be used and is left out; "
            "upgrade or remove that package.",
            RuntimeWarning,
            stacklevel=3,
        )
