"""Tables that people have: files, pasted cells and data frames, read in one way.

`read` returns `Cells`; `columns` says what each column is for. What the cells mean, arms or
results, is decided by whoever reads them.
"""

from finalist.tables.cells import Cell, Cells, Dialect
from finalist.tables.reader import Limits, read

__all__ = ["Cell", "Cells", "Dialect", "Limits", "read"]
