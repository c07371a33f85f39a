"""Soare, Lazaric and Munos (NIPS 2014), reproduced: table, figures, appendix, as one report."""

from finalist.lab.paper.experiment import Extent, instance
from finalist.lab.paper.report import PARTS, Reproduction, quick, reproduce, write

__all__ = ["PARTS", "Extent", "Reproduction", "instance", "quick", "reproduce", "write"]
