"""Strategies: one a file, one protocol for all."""

from finalist.strategies.protocol import Batch, Playable, Run, Strategy, Verdict
from finalist.strategies.registry import STRATEGIES, named
from finalist.strategies.xy_adaptive import XYAdaptive

__all__ = [
    "STRATEGIES",
    "Batch",
    "Playable",
    "Run",
    "Strategy",
    "Verdict",
    "XYAdaptive",
    "named",
]
