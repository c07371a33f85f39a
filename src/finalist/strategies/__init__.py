"""Strategies: one a file, one protocol for all."""

from finalist.strategies.fully_adaptive import FullyAdaptive
from finalist.strategies.g import GAllocation
from finalist.strategies.gauntlet import Gauntlet
from finalist.strategies.protocol import Batch, Playable, Run, Strategy, Verdict
from finalist.strategies.registry import STRATEGIES, named
from finalist.strategies.uniform import Uniform
from finalist.strategies.xy import XYAllocation
from finalist.strategies.xy_adaptive import XYAdaptive
from finalist.strategies.xy_oracle import XYOracle

__all__ = [
    "STRATEGIES",
    "Batch",
    "FullyAdaptive",
    "GAllocation",
    "Gauntlet",
    "Playable",
    "Run",
    "Strategy",
    "Uniform",
    "Verdict",
    "XYAdaptive",
    "XYAllocation",
    "XYOracle",
    "named",
]
