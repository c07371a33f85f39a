"""finalist: find the best of K candidates when every measurement is costly and noisy.

Names load on first use, so that `import finalist` stays fast.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from finalist._moved import Finder

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from finalist.arms import Arms
    from finalist.arms.table import ArmsTable, read_table
    from finalist.client import connect
    from finalist.complexity import Complexity, complexity
    from finalist.design import Design, optimal_design, round_design
    from finalist.planning import Plan, plan
    from finalist.problem import Problem
    from finalist.problem.noise import Bernoulli, Best, EpsilonBest, Gaussian, SubGaussian, TopM
    from finalist.region import Region
    from finalist.simulation import Simulation, simulate
    from finalist.strategies import (
        GSE,
        RAGE,
        FullyAdaptive,
        GAllocation,
        Gauntlet,
        GBudget,
        LazyTS,
        LinGame,
        LinGapE,
        ODLinBAI,
        Peace,
        TrackAndStop,
        Uniform,
        VAllocation,
        XYAdaptive,
        XYAllocation,
        XYOracle,
        register,
    )
    from finalist.study import Study, studies

_HOME = {
    "RAGE": "strategies",
    "Arms": "arms",
    "ArmsTable": "arms.table",
    "Bernoulli": "problem.noise",
    "Best": "problem.noise",
    "Complexity": "complexity",
    "Design": "design",
    "EpsilonBest": "problem.noise",
    "FullyAdaptive": "strategies",
    "GAllocation": "strategies",
    "GBudget": "strategies",
    "GSE": "strategies",
    "Gauntlet": "strategies",
    "Gaussian": "problem.noise",
    "LinGapE": "strategies",
    "ODLinBAI": "strategies",
    "Peace": "strategies",
    "LazyTS": "strategies",
    "LinGame": "strategies",
    "Plan": "planning",
    "Problem": "problem",
    "Region": "region",
    "Simulation": "simulation",
    "Study": "study",
    "SubGaussian": "problem.noise",
    "TopM": "problem.noise",
    "TrackAndStop": "strategies",
    "Uniform": "strategies",
    "VAllocation": "strategies",
    "XYAdaptive": "strategies",
    "XYAllocation": "strategies",
    "XYOracle": "strategies",
    "complexity": "complexity",
    "connect": "client",
    "optimal_design": "design",
    "plan": "planning",
    "read_table": "arms.table",
    "register": "strategies",
    "round_design": "design",
    "simulate": "simulation",
    "studies": "study",
}

__all__ = [
    "GSE",
    "RAGE",
    "Arms",
    "ArmsTable",
    "Bernoulli",
    "Best",
    "Complexity",
    "Design",
    "EpsilonBest",
    "FullyAdaptive",
    "GAllocation",
    "GBudget",
    "Gauntlet",
    "Gaussian",
    "LazyTS",
    "LinGame",
    "LinGapE",
    "ODLinBAI",
    "Peace",
    "Plan",
    "Problem",
    "Region",
    "Simulation",
    "Study",
    "SubGaussian",
    "TopM",
    "TrackAndStop",
    "Uniform",
    "VAllocation",
    "XYAdaptive",
    "XYAllocation",
    "XYOracle",
    "__version__",
    "complexity",
    "connect",
    "optimal_design",
    "plan",
    "read_table",
    "register",
    "round_design",
    "simulate",
    "studies",
]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'finalist' has no attribute {name!r}")
    return getattr(import_module(f"finalist.{home}"), name)


def __dir__() -> list[str]:
    return __all__


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
