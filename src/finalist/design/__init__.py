"""Optimal designs with certificates, rounding and the greedy rules (Soare 2014, Sect. 4)."""

from finalist.design.greedy import Greedy, greedy, greedy_allocation
from finalist.design.optimal import design_value, optimal_design
from finalist.design.result import Design
from finalist.design.rough import rough_design
from finalist.design.rounding import Rounded, round_design
from finalist.design.support import reduce_support

__all__ = [
    "Design",
    "Greedy",
    "Rounded",
    "design_value",
    "greedy",
    "greedy_allocation",
    "optimal_design",
    "reduce_support",
    "rough_design",
    "round_design",
]
