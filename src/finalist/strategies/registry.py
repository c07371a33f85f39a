"""Every strategy by its name."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.strategies.fully_adaptive import FullyAdaptive
from finalist.strategies.g import GAllocation
from finalist.strategies.g_budget import GBudget
from finalist.strategies.gauntlet import Gauntlet
from finalist.strategies.gse import GSE
from finalist.strategies.lazy_ts import LazyTS
from finalist.strategies.lingame import LinGame
from finalist.strategies.lingape import LinGapE
from finalist.strategies.od_linbai import ODLinBAI
from finalist.strategies.peace import Peace
from finalist.strategies.protocol import Strategy
from finalist.strategies.rage import RAGE
from finalist.strategies.track_and_stop import TrackAndStop
from finalist.strategies.uniform import Uniform
from finalist.strategies.v import VAllocation
from finalist.strategies.xy import XYAllocation
from finalist.strategies.xy_adaptive import XYAdaptive
from finalist.strategies.xy_oracle import XYOracle

#: Every strategy by its name; the contract suite runs on all of them.
STRATEGIES: dict[str, type[Strategy]] = {
    cls.name: cls
    for cls in (
        Gauntlet,
        Uniform,
        GAllocation,
        XYAllocation,
        VAllocation,
        XYOracle,
        XYAdaptive,
        FullyAdaptive,
        ODLinBAI,
        GSE,
        Peace,
        GBudget,
        RAGE,
        LinGapE,
        LinGame,
        LazyTS,
        TrackAndStop,
    )
}


def named(name: str, arms: Arms, theta: Float[np.ndarray, " d"] | None = None) -> Strategy:
    """Return the strategy of that name with its default settings.

    Parameters
    ----------
    name : str
    arms : Arms
    theta : (d,) array, optional
        The true parameter. Some strategies have to know something of it, and take it from here
        through their class method `knowing(arms, theta)`.

    Examples
    --------
    >>> import finalist as fl
    >>> named("xy-adaptive", fl.Arms.unstructured(3)).alpha
    0.4
    """
    strategy = STRATEGIES.get(name)
    if strategy is None:
        raise ProblemError(f"strategy is {name!r}; it is one of {', '.join(sorted(STRATEGIES))}.")
    knowing = getattr(strategy, "knowing", None)
    if knowing is None:
        return strategy()
    if theta is None:
        raise ProblemError(
            f"strategy {name!r} has to know the true parameter, so it exists in simulations only "
            "(or give it what it needs yourself: " + strategy.__name__ + "(...))."
        )
    known: Strategy = knowing(arms, theta)
    return known


def settings_of(name: str) -> tuple[str, ...]:
    """Return the names of a strategy's settings; none if there is no such strategy.

    Examples
    --------
    >>> settings_of("gauntlet"), settings_of("peace")
    (('growth',), ())
    """
    strategy: Any = STRATEGIES.get(name)
    return tuple(field.name for field in fields(strategy)) if is_dataclass(strategy) else ()


def configured(
    name: str,
    settings: Mapping[str, Any],
    arms: Arms,
    theta: Float[np.ndarray, " d"] | None = None,
) -> Strategy:
    """Return the strategy of that name with some settings that are not as usual.

    One that has to know the size of the true parameter is told by theta, or by its setting.

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
