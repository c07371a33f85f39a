"""The bets on the looks of an epoch while they are interpreted: many looks at once, with NumPy.

What each drift says at a look does not depend on the wealth, so it is computed for all looks of
some arms together, a row for each; only what the wealth goes through is done look by look. Every
number has the bits that `kernels.bet_along` gives it: sums run from the first drift to the last
(`numpy.cumsum`), and exponentials and logarithms are those of `math`, which NumPy's need not equal.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from finalist.shapes import Float
from finalist.strategies.gauntlet import cap_kernels, kernels
from finalist.strategies.gauntlet.kernels import LARGEST_DRIFT, LARGEST_SCORE, NEAR, SMALLEST

#: With fewer looks the loops are as fast.
FEW = 4
#: About so many rows are computed together: they stay in the processor's cache.
MANY = 1000
#: Where the logarithm of a sum of exponentials by NumPy is further than this from a bound, so is
#: the sum by `math`.
CLEAR = 1e-9


class _Path(NamedTuple):
    """The looks of an arm that add something: S and V before each, and at it."""

    arm: int
    steps: list[tuple[float, float, float, float]]
    rates: Float[np.ndarray, " g"]
    past: tuple[float, float]


class _Rows(NamedTuple):
    """What the looks say, one entry for each look.

    `parts` and `learnt` are the likelihood ratios of the drifts and their weights; `most` is the
    logarithm of the largest ratio, by which all are divided, and `near` that of the largest at
    `NEAR`, with all of them in `at_near`.
    """

    scores: list[float]
    drifts: Float[np.ndarray, "n g"]
    able: list[bool]
    parts: Float[np.ndarray, "n g"]
    most: list[float]
    at_near: Float[np.ndarray, "n g"]
    near: list[float]
    learnt: Float[np.ndarray, "n g"]


class _Mixed(NamedTuple):
    """The weights that are bet on; sums of ratios by them, and logarithms of these at `NEAR`."""

    weights: Float[np.ndarray, "n g"]
    factors: list[float]
    at_near: list[float]


def bet_along(
    S: Any,
    V: Any,
    at: Any,
    drift: Any,
    time: Any,
    capped: bool,
    limit: Any,
    grid: Any,
    prior: Any,
    temper: float,
    log_m: Any,
    scale: Any,
    wealth: Any,
    path: Any,
    smallest: float,
) -> None:
    """Do what `kernels.bet_along` does, with arrays or views of their memory."""
    state = log_m, scale, wealth, path
    if len(S) < FEW:
        rule = capped, limit, grid, prior, temper
        kernels.bet_along.looped(S, V, at, drift, time, *rule, *state, smallest)
        return
    columns = zip(at, np.asarray(S).T.tolist(), np.asarray(V).T.tolist(), strict=True)
    grid, prior = np.asarray(grid), np.asarray(prior)
    paths: list[_Path] = []
    for k, s, v in columns:
        if not scale[k] > 0.0 or log_m[k] >= limit[k]:
            continue
        past = temper * drift[k], temper * time[k]
        steps = _steps(s, v, (path[0, k], path[1, k]), smallest)
        if steps:
            paths.append(_Path(k, steps, grid / math.sqrt(scale[k]), past))
        if sum(len(one.steps) for one in paths) >= MANY:
            _bet(paths, prior, capped, limit, state)
            paths = []
    if paths:
        _bet(paths, prior, capped, limit, state)


def _steps(
    S: list[float], V: list[float], last: tuple[float, float], smallest: float
) -> list[tuple[float, float, float, float]]:
    found = []
    for s, v in zip(S, V, strict=True):
        if v - last[1] > smallest * v:
            found.append((*last, s, v))
            last = s, v
    return found


def _bet(
    paths: list[_Path],
    prior: Float[np.ndarray, " g"],
    capped: bool,
    limit: Any,
    state: tuple[Any, Any, Any, Any],
) -> None:
    """Bet on the looks of some arms, and write down what becomes of them."""
    log_m, _, wealth, path = state
    with np.errstate(all="ignore"):
        rows, plain = _rows(paths, prior), _exp(prior)
        sums = _sums(rows.learnt * rows.parts), _sums(plain * rows.parts)
        shares: list[float] = []
        wealths: list[tuple[float, float]] = []
        for one in paths:
            before = float(wealth[one.arm, 0]), float(wealth[one.arm, 2])
            _grow(rows, *sums, len(one.steps), before, shares, wealths)
        share = np.array(shares)[:, None]
        weights = share * rows.learnt + (1.0 - share) * plain
        near = np.array(rows.near)
        ratios = np.exp(rows.at_near - near[:, None])
        at_near = near + np.log((weights * ratios).sum(axis=1))
        mixed = _Mixed(weights, _sums(weights * rows.parts), at_near.tolist())
    begin = 0
    for arm, steps, _, _ in paths:
        end = begin + len(steps)
        level = float(log_m[arm]), float(limit[arm])
        made, log_m[arm] = _settle(rows, mixed, range(begin, end), capped, *level)
        _, _, path[0, arm], path[1, arm] = steps[made - begin - 1]
        wealth[arm, 0], wealth[arm, 2] = wealths[made - 1]
        begin = end


def _rows(paths: list[_Path], prior: Float[np.ndarray, " g"]) -> _Rows:
    """Return what all drifts say at all looks of some arms."""
    counts = [len(one.steps) for one in paths]
    s_then, v_then, s_now, v_now = np.array([step for one in paths for step in one.steps]).T
    rates = np.repeat(np.array([one.rates for one in paths]), counts, axis=0)
    drift, time = np.repeat(np.array([one.past for one in paths]), counts, axis=0).T
    speed = np.sqrt(v_now - v_then)
    z = (s_now - s_then) / speed
    cut = np.minimum(np.maximum(z, -LARGEST_SCORE), LARGEST_SCORE)
    scores = np.where(np.isnan(z), -LARGEST_SCORE, cut)
    drifts = rates * speed[:, None]
    drifts = np.where(drifts > LARGEST_DRIFT, LARGEST_DRIFT, drifts)
    ratios, at_near = (drifts * (x - 0.5 * drifts) for x in (scores[:, None], NEAR))
    before, known = drift + s_then, time + v_then
    tilted = prior + rates * (before[:, None] - 0.5 * rates * known[:, None])
    most, near, top = (_largest(x) for x in (ratios, at_near, tilted))
    tilted = _exp(tilted - top[:, None])
    total = np.cumsum(tilted, axis=1)[:, -1]
    parts, learnt = _exp(ratios - most[:, None]), tilted / total[:, None]
    able = (drifts >= 0.0).all(axis=1) & np.isfinite(total)
    figures = able.tolist(), parts, most.tolist(), at_near, near.tolist()
    return _Rows(scores.tolist(), drifts, *figures, learnt)


def _grow(
    rows: _Rows,
    learns: list[float],
    stays: list[float],
    looks: int,
    before: tuple[float, float],
    shares: list[float],
    wealths: list[tuple[float, float]],
) -> None:
    """Append the share of what is learnt at each look of the next arm, and both wealths after it.

    Where the past gives nothing to bet on, the wealth stays.
    """
    learnt, first = before
    for n in range(len(shares), len(shares) + looks):
        try:
            share = 1.0 / (1.0 + math.exp(first - learnt))
        except OverflowError:  # maybe after the look that rejects it
            share = 0.0
        rows.able[n] = rows.able[n] and math.isfinite(share)
        if rows.able[n]:
            learnt += rows.most[n] + math.log(learns[n])
            first += rows.most[n] + math.log(stays[n])
        shares.append(share)
        wealths.append((learnt, first))


def _settle(
    rows: _Rows, mixed: _Mixed, looks: range, capped: bool, log_m: float, limit: float
) -> tuple[int, float]:
    """Return the look before which an arm is rejected, or the end of its looks, and log M."""
    for n in looks:
        if log_m >= limit:
            return n, log_m
        if not rows.able[n]:
            continue
        room, cap, score = limit - log_m, math.inf, rows.scores[n]
        if capped and rows.near[n] >= room and not mixed.at_near[n] < room - CLEAR:
            drifts, weights = rows.drifts[n].tolist(), mixed.weights[n].tolist()
            clear = mixed.at_near[n] > room + CLEAR
            if clear or kernels.reaches.interpreted(room, drifts, weights):
                logs = list(map(math.log, weights))
                cap = cap_kernels.find_cap.interpreted(room, drifts, logs)
        if score >= cap:
            log_m = limit
        elif cap < math.inf:
            growth = kernels.log_growth.interpreted(score, cap, drifts, logs)
            log_m = limit + min(growth, 0.0)
        else:
            log_m = min(log_m + rows.most[n] + math.log(mixed.factors[n]), limit)
    return looks.stop, log_m


def _largest(values: Float[np.ndarray, "n g"]) -> Float[np.ndarray, " n"]:
    """Return the largest number in each row."""
    found: Float[np.ndarray, " n"] = np.fmax.reduce(values, axis=1, initial=-math.inf)
    return found


def _sums(terms: Float[np.ndarray, "n g"]) -> list[float]:
    """Return the sum of each row from the first term to the last, beginning with `SMALLEST`."""
    terms[:, 0] += SMALLEST
    sums: list[float] = np.cumsum(terms, axis=1)[:, -1].tolist()
    return sums


def _exp(values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Return exponentials with the bits of `math.exp`."""
    found = np.fromiter(map(math.exp, values.ravel().tolist()), dtype=float, count=values.size)
    return found.reshape(values.shape)
