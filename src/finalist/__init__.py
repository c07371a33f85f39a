"""finalist: find the best of K candidates when every measurement is costly and noisy.

Names load on first use, so that `import finalist` stays fast.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from finalist._moved import Finder
from finalist.loading import loading

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from finalist.arms import Arms as Arms
    from finalist.arms.table import ArmsTable as ArmsTable
    from finalist.arms.table import read_table as read_table
    from finalist.client import connect as connect
    from finalist.complexity import Complexity as Complexity
    from finalist.complexity import PairLimit as PairLimit
    from finalist.complexity import complexity as complexity
    from finalist.complexity import pair_limit as pair_limit
    from finalist.design import Design as Design
    from finalist.design import optimal_design as optimal_design
    from finalist.design import round_design as round_design
    from finalist.planning import MarginPrices as MarginPrices
    from finalist.planning import ModelPrices as ModelPrices
    from finalist.planning import Plan as Plan
    from finalist.planning import margin_prices as margin_prices
    from finalist.planning import model_prices as model_prices
    from finalist.planning import plan as plan
    from finalist.problem import Bernoulli as Bernoulli
    from finalist.problem import Best as Best
    from finalist.problem import EpsilonBest as EpsilonBest
    from finalist.problem import Gaussian as Gaussian
    from finalist.problem import Problem as Problem
    from finalist.problem import SubGaussian as SubGaussian
    from finalist.problem import TopM as TopM
    from finalist.region import Region as Region
    from finalist.simulation import Simulation as Simulation
    from finalist.simulation import simulate as simulate
    from finalist.strategies import register as register
    from finalist.strategies.table import *  # noqa: F403
    from finalist.study import Study as Study
    from finalist.study import studies as studies
    from finalist.study.results import estimate_sigma as estimate_sigma

#: Where public names are. The strategies are those of `strategies.table`, whatever it has.
_HOME = {
    "Arms": "arms",
    "ArmsTable": "arms.table",
    "Bernoulli": "problem",
    "Best": "problem",
    "Complexity": "complexity",
    "Design": "design",
    "EpsilonBest": "problem",
    "Gaussian": "problem",
    "MarginPrices": "planning",
    "ModelPrices": "planning",
    "PairLimit": "complexity",
    "Plan": "planning",
    "Problem": "problem",
    "Region": "region",
    "Simulation": "simulation",
    "Study": "study",
    "SubGaussian": "problem",
    "TopM": "problem",
    "complexity": "complexity",
    "connect": "client",
    "estimate_sigma": "study.results",
    "margin_prices": "planning",
    "model_prices": "planning",
    "optimal_design": "design",
    "pair_limit": "complexity",
    "plan": "planning",
    "read_table": "arms.table",
    "register": "strategies",
    "round_design": "design",
    "simulate": "simulation",
    "studies": "study",
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted([*_HOME, *_strategies(), "__version__"])
    if name in _HOME:
        with loading():
            return getattr(import_module(f"finalist.{_HOME[name]}"), name)
    if name[:1].isupper() and name in _strategies():  # modules begin with small letters
        return _strategies()[name]
    raise AttributeError(f"module 'finalist' has no attribute {name!r}")


def __dir__() -> list[str]:
    names: list[str] = __getattr__("__all__")
    return names


def _strategies() -> dict[str, object]:
    table = vars(import_module("finalist.strategies.table"))
    return {name: cls for name, cls in table.items() if isinstance(cls, type)}


class _Package(ModuleType):
    """The package: importing the module `finalist.complexity` must not hide `fl.complexity`."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        # By name, as for any module: a user's function that names `fl` goes to other processes.
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package
sys.meta_path.append(Finder())
