"""Soare, Lazaric and Munos (NIPS 2014), reproduced: table, figures, appendix, as one report."""

from finalist.lab.paper.cells import Plan
from finalist.lab.paper.experiment import instance
from finalist.lab.paper.report import PARTS, Reproduction, quick, reproduce, write

__all__ = ["PARTS", "Plan", "Reproduction", "instance", "quick", "reproduce", "write"]
