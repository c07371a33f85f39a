"""What tests of the gauntlet share: scores of a batch, and bets on one."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from finalist.inference.least_squares import Estimate
from finalist.problem import Problem
from finalist.strategies.gauntlet import GauntletRun
from finalist.strategies.gauntlet.batches import Batches
from finalist.strategies.gauntlet.claims import Wager
from finalist.strategies.gauntlet.contrasts import Pairs, contrasts_of
from finalist.strategies.gauntlet.scores import scores_of


def scored(problem: Problem, fit: Estimate, pairs: Pairs, epsilon: float) -> Any:
    """Return scores, speeds and bias of pairs in a batch, and which of them are tested."""
    Z, counts = fit.arms.coordinates, fit.statistics.count
    contrasts = contrasts_of(problem, Z, counts, fit.information, pairs)
    z = scores_of(problem, fit, contrasts, epsilon)
    some = contrasts.tested if z is not None else np.empty(0, dtype=int)
    speed = np.zeros(len(contrasts.width))
    speed[some] = 1.0 / contrasts.width[some]
    return SimpleNamespace(z=z, speed=speed, bias=contrasts.bias, tested=some)


def bet(
    run: GauntletRun,
    bets: Any,
    at: Any,
    pairs: Pairs,
    fit: Estimate,
    past: Estimate,
    epsilon: float,
) -> None:
    """Bet on a batch whose estimate is `fit`, where `past` is that of all before."""
    run._past.estimate = lambda: past  # type: ignore[method-assign]
    course = Batches(run._past, run._planner, run._claims)
    course._bet(Wager(bets, np.asarray(at), pairs, epsilon), fit)
