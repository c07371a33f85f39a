"""The gauntlet: our own strategy. `run` is the loop of its theorem."""

from finalist.strategies.gauntlet.run import GauntletRun
from finalist.strategies.gauntlet.strategy import Gauntlet

__all__ = ["Gauntlet", "GauntletRun"]
