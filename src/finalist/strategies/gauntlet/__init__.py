"""The gauntlet: our own strategy. `run` is the loop of its theorem."""

from finalist.strategies.gauntlet.run import Gauntlet, GauntletRun

__all__ = ["Gauntlet", "GauntletRun"]
