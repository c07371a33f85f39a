"""Research: the paper's reproduction, the benchmark, and the store that keeps their runs."""

from finalist.lab.store import Store

__all__ = ["Store"]
