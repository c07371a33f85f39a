"""Pulls that would show a bend: chosen where a bend could change the winner, from the past alone.

An optimal design for straight lines measures corners, where bends cannot be seen. A probe is the
arm that would tell most about the differences between the leader and its rivals in a model with all
bends, given all that was measured: greedily the largest u'CVCu / (1 + u'Cu), u a row of that model,
C its posterior covariance (bends have the prior of `hidden`), V = sum_j y_j y_j' / g_j^2 over
rivals j, y_j the difference of the leader's row and theirs, g_j its expected size, at least half of
its standard error. Any choice from the past leaves all tests as they are.
"""

import numpy as np

from finalist.design.linalg import spanning_arms
from finalist.inference.bends import Bends
from finalist.inference.residuals import Cells, centred_rows
from finalist.problem import Problem
from finalist.shapes import Float, Int

#: Gaps count as at least so many standard errors.
LEAST_GAP = 0.5
#: Among so many arms at most probes are looked for, and among so many rivals.
MANY = 1000
#: Of more than twice as many probes several at a time are chosen.
STEPS = 32
#: What was not measured is as uncertain as this part of the largest precision says.
UNKNOWN = 1e-6


def probes(
    problem: Problem,
    bends: Bends,
    cells: Cells,
    planned: Int[np.ndarray, " K"],
    leader: int,
    count: int,
    h: float,
    room: Int[np.ndarray, " K"],
) -> Int[np.ndarray, " K"]:
    """Return how often arms are probed.

    Parameters
    ----------
    cells : Cells
        Means of all results so far, in units of sigma.
    planned : (K,) array of int
        Pulls that are made beside the probes.
    count : int
        How many probes.
    h : float
        How large bends may be.
    room : (K,) array of int
        How often arms can still be pulled.
    """
    rows = np.column_stack([problem.arms.coordinates, bends.columns])
    p = problem.precisions
    weighted = rows if p is None else rows * np.sqrt(p)[:, None]
    C, mean = _posterior(rows, weighted, bends.count, cells, planned, h)
    V = _differences(problem, rows, C, mean, leader)
    left, chosen = room - planned, np.zeros(len(rows), dtype=np.int64)
    usable = _usable(problem, left)
    U, cost = weighted[usable], problem.costs[usable]
    UC = U @ C
    UCV = UC @ V
    while (rest := count - int(chosen.sum())) > 0:
        free = left[usable] - chosen[usable]
        if not (free > 0).any():
            break
        gain = (UCV * UC).sum(axis=1) / (1.0 + (UC * U).sum(axis=1)) / cost
        best = int(np.argmax(np.where(free > 0, np.nan_to_num(gain), -1.0)))
        times = min(max(rest // STEPS, 1), int(free[best]))
        chosen[usable[best]] += times
        # C - times Cu u'C / (1 + times u'Cu), in both products.
        uC, parts = UC[best].copy(), UC @ U[best]
        parts = times * parts / (1.0 + times * parts[best])
        UC -= parts[:, None] * uC
        UCV -= parts[:, None] * (uC @ V)
    return chosen


def _posterior(
    rows: Float[np.ndarray, "K s"],
    weighted: Float[np.ndarray, "K s"],
    extra: int,
    cells: Cells,
    planned: Int[np.ndarray, " K"],
    h: float,
) -> tuple[Float[np.ndarray, "s s"], Float[np.ndarray, " s"]]:
    """Return the covariance after the planned pulls, and the mean before them."""
    X, y = centred_rows(rows, cells)
    s = rows.shape[1]
    precision = X.T @ X
    floor = UNKNOWN * max(float(np.trace(precision)) / s, 1.0)
    prior = np.append(np.full(s - extra, floor), np.full(extra, h**-2.0))
    mean = np.linalg.solve(precision + np.diag(prior), X.T @ y)
    some = np.flatnonzero(planned)
    after = precision + (weighted[some] * planned[some, None]).T @ weighted[some]
    C = np.linalg.inv(after + np.diag(prior))
    return (C + C.T) / 2.0, mean


def _differences(
    problem: Problem,
    rows: Float[np.ndarray, "K s"],
    C: Float[np.ndarray, "s s"],
    mean: Float[np.ndarray, " s"],
    leader: int,
) -> Float[np.ndarray, "s s"]:
    """Return V: which differences matter."""
    rivals = np.flatnonzero(problem.arms.candidate)
    rivals = rivals[rivals != leader]
    Y = rows[leader] - rows[rivals]
    gaps, errors = problem.sign * (Y @ mean), np.sqrt(np.einsum("ij,jk,ik->i", Y, C, Y))
    size = np.maximum(gaps, LEAST_GAP * errors)
    near = np.argsort(size / np.maximum(errors, 1e-300), kind="stable")[:MANY]
    Y = Y[near] / np.maximum(size[near], 1e-300)[:, None]
    return np.asarray(Y.T @ Y)


def _usable(problem: Problem, left: Int[np.ndarray, " K"]) -> Int[np.ndarray, " n"]:
    """Return arms to look for probes among: all, or of many a spanning set and an even choice."""
    usable = np.flatnonzero((left > 0) & problem.arms.measurable)
    if len(usable) <= MANY:
        return usable
    Z = problem.arms.coordinates[usable]
    even = usable[:: -(-len(usable) // MANY)]
    return np.union1d(even, usable[spanning_arms(Z)])
