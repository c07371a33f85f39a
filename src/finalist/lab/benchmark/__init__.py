"""The benchmark: every strategy on many instances, pulls beside a lower bound on their mean."""

from finalist.lab.benchmark.engine import run
from finalist.lab.benchmark.plan import SUITES, Plan
from finalist.lab.benchmark.report import Report, make_report, write

__all__ = ["SUITES", "Plan", "Report", "make_report", "run", "write"]
