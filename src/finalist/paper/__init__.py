"""Soare, Lazaric and Munos (NIPS 2014), reproduced: table, figures, appendix, as one report."""

from finalist.paper.cells import Plan
from finalist.paper.experiment import instance
from finalist.paper.report import PARTS, Reproduction, quick, reproduce, write

__all__ = ["PARTS", "Plan", "Reproduction", "instance", "quick", "reproduce", "write"]
