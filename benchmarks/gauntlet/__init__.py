"""How many pulls the gauntlet needs, over a lower bound on their mean: `make bench-gauntlet`."""

from benchmarks.gauntlet.families import HELD_OUT, TUNED

__all__ = ["HELD_OUT", "TUNED"]
