"""Infinitely many arms: the best point of a box or a ball, to within a certified distance."""

from finalist.region.belief import Belief, Found, Record
from finalist.region.net import Net
from finalist.region.optimum import Spread, spread_over
from finalist.region.region import Region
from finalist.region.space import Space

__all__ = ["Belief", "Found", "Net", "Record", "Region", "Space", "Spread", "spread_over"]
