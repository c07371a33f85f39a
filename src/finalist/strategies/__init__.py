"""Strategies: one a file, one protocol for all."""

from finalist.strategies.protocol import Batch, Run, Strategy, Verdict
from finalist.strategies.xy_adaptive import XYAdaptive

#: Every strategy by its name; the contract suite runs on all of them.
STRATEGIES: dict[str, type[Strategy]] = {XYAdaptive.name: XYAdaptive}

__all__ = ["STRATEGIES", "Batch", "Run", "Strategy", "Verdict", "XYAdaptive"]
