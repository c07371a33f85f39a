"""Results that a person gives back, and sheets to fill in."""

from finalist.study.results.reading import as_history, as_results, read_results, results_of
from finalist.study.results.results import Results
from finalist.study.results.table import Table
from finalist.study.results.writing import write_pulls, write_table

__all__ = [
    "Results",
    "Table",
    "as_history",
    "as_results",
    "read_results",
    "results_of",
    "write_pulls",
    "write_table",
]
