"""Imported by the process that others are forked from: what is compiled is loaded once."""

from finalist.problem import as_problem
from finalist.strategies import Gauntlet
from tests.study.lab import ARMS, Lab

_RUN = Gauntlet().start(as_problem(ARMS, sigma=1.0))
for _ in range(3):
    _BATCH = _RUN.next()
    _RUN.record(_BATCH, Lab().draw(_BATCH.counts))
