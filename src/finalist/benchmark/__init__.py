"""The benchmark: every strategy on many instances, pulls beside a lower bound on their mean."""

from finalist.benchmark.engine import run
from finalist.benchmark.plan import Plan
from finalist.benchmark.report import Report, make_report, write
from finalist.benchmark.suites import SUITES

__all__ = ["SUITES", "Plan", "Report", "make_report", "run", "write"]
