"""Simulation: many runs of a strategy, their statistics, and a store of results."""

from finalist.simulation.binomial import exact_interval, exact_lower_bound, exact_upper_bound
from finalist.simulation.engine import simulate
from finalist.simulation.result import Simulation
from finalist.simulation.store import Store
from finalist.simulation.summary import Summary

__all__ = [
    "Simulation",
    "Store",
    "Summary",
    "exact_interval",
    "exact_lower_bound",
    "exact_upper_bound",
    "simulate",
]
