"""Results that a person gives back, and sheets to fill in."""

from finalist.study.results.columns import OwnColumns
from finalist.study.results.earlier import as_history, estimate_sigma
from finalist.study.results.reading import as_results, read_results, results_of
from finalist.study.results.results import FAILED, Results
from finalist.study.results.writing import pulls_workbook, sheet_of, write_pulls
from finalist.tables.writer import write_table

__all__ = [
    "FAILED",
    "OwnColumns",
    "Results",
    "as_history",
    "as_results",
    "estimate_sigma",
    "pulls_workbook",
    "read_results",
    "results_of",
    "sheet_of",
    "write_pulls",
    "write_table",
]
