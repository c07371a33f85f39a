"""The candidates: their features, names, roles and the space they span."""

from finalist.arms.arms import Arms, _restore

__all__ = ["Arms", "_restore"]  # pickles of 0.1.0 name `finalist.arms._restore`
