"""Results that a person gives back, and sheets to fill in."""

from finalist.study.results.csv import read_results
from finalist.study.results.reading import as_results
from finalist.study.results.values import Results
from finalist.study.results.writing import write_pulls, write_table

__all__ = ["Results", "as_results", "read_results", "write_pulls", "write_table"]
