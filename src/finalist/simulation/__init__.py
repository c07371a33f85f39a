"""Simulation: many runs of a strategy, and their statistics."""

from importlib import import_module

from finalist._moved import warn
from finalist.simulation.binomial import exact_interval, exact_lower_bound, exact_upper_bound
from finalist.simulation.engine import simulate
from finalist.simulation.result import Simulation
from finalist.simulation.summary import Summary

__all__ = [
    "Simulation",
    "Summary",
    "exact_interval",
    "exact_lower_bound",
    "exact_upper_bound",
    "simulate",
]


def __getattr__(name: str) -> object:
    if name != "Store":
        raise AttributeError(f"module 'finalist.simulation' has no attribute {name!r}")
    warn(__name__, name, "finalist.lab")
    return import_module("finalist.lab").Store
