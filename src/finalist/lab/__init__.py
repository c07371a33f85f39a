"""The research side: the paper, the benchmark, the store of results, their report."""

from finalist.lab.store import Store

__all__ = ["Store"]
