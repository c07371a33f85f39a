"""A small part of `gauntlet_validity` for every change; `make validate` runs all of it."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import finalist as fl
from finalist.problem import as_problem
from finalist.simulation.binomial import exact_lower_bound
from finalist.strategies import Gauntlet
from finalist.strategies.gauntlet import path_kernels
from finalist.strategies.gauntlet.bets import ODDS, Bets
from finalist.strategies.gauntlet.past import looks_inside
from tests.statistical.gauntlet_cases import CASES, TWINS
from tests.statistical.gauntlet_validity import CONFIDENCE, block

SHORT = (
    "four-way tie, mixed batches",
    "sphere, theta = 0, one by one",
    "unknown sigma, tied, mixed batches",
    "+-1, tied, mixed batches",
    "three tenths lost, sphere, mixed batches",
    "a margin, four arms, mixed batches",
    "a margin, unknown sigma, batches of 3",
    "a budget, four-way tie, mixed batches",
    "a budget raised near a verdict, tied",
)


@pytest.mark.parametrize("name", SHORT)
def test_a_best_arm_is_rejected_with_probability_delta_at_most(name):
    case = next(case for case in CASES if case.name == name and case.delta == 0.2)
    count = sum(block(replace(case, pulls=60), Gauntlet(), 0, 30))
    assert exact_lower_bound(count, 30, CONFIDENCE) <= case.delta, count


@pytest.mark.parametrize(
    ("case", "strategy", "honest"),
    [row for row in TWINS if "ending" not in row[1].name],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_what_breaks_the_proof_is_caught(case, strategy, honest):
    count = sum(block(case, strategy, 0, 60))
    assert (exact_lower_bound(count, 60, CONFIDENCE) <= case.delta) is honest, count


# ---- looks, by paths alone -------------------------------------------------------------------

PATHS, LOOKS, DELTA = 1000, 60, 0.2


def kept(bets: Bets) -> bool:
    """Return whether so many rejections are what may happen if every claim is true."""
    count = int(np.count_nonzero(bets.rejected))
    return exact_lower_bound(count, PATHS, CONFIDENCE) <= DELTA


def walks(seed: int) -> np.ndarray:
    """Return Brownian motion without drift at the times 1, 2, ..."""
    return np.cumsum(np.random.default_rng(seed).standard_normal((LOOKS, PATHS)), axis=0)


def after(bets: Bets, S: np.ndarray, n: list[int]) -> Bets:
    """Return bets after some more looks."""
    new, none = bets.copy(), np.zeros(PATHS)
    V = np.repeat(np.array(n, dtype=float)[:, None] + 1.0, PATHS, axis=1)
    new.place_along(S[n], V, np.arange(PATHS), (none, none), ODDS)
    return new


@pytest.mark.parametrize("untilted", [0.2, 1.0])
@pytest.mark.parametrize("capped", [True, False])
def test_looks_that_are_fixed(untilted, capped):
    bets = Bets.against(PATHS, DELTA, capped, untilted, ODDS)
    bets.scale[:] = 0.3
    assert kept(after(bets, walks(1), list(range(LOOKS))))


def test_looks_chosen_by_what_was_seen_are_caught():
    # Each look is merged with the next wherever that turns out to be worth more.
    bets, S = Bets.against(PATHS, DELTA, True, 1.0, ODDS), walks(1)
    bets.scale[:] = 0.3
    for n in range(0, LOOKS, 2):
        both, one = after(bets, S, [n, n + 1]), after(bets, S, [n + 1])
        better = one.log_m > both.log_m
        for name in ("log_m", "path", "wealth"):
            mine, other = getattr(both, name), getattr(one, name)
            where = better[:, None] if name == "wealth" else better
            getattr(bets, name)[:] = np.where(where, other, mine)
    assert not kept(bets)


# ---- epochs, by paths alone ------------------------------------------------------------------


def after_epochs(noise: np.random.Generator, ending: bool) -> Bets:
    """Return bets after some epochs, which end early where that seems to pay."""
    bets = Bets.against(PATHS, DELTA, True, 0.2, ODDS)
    bets.scale[:] = 1.0
    Z, y = np.random.default_rng(8).standard_normal((24, 6)), np.eye(6)[0]
    weights = [np.linalg.solve(Z[:n].T @ Z[:n], y) for n in range(6, 25)]
    V = np.array([1.0 / (y @ w) for w in weights])
    known = np.zeros(PATHS), np.zeros(PATHS)
    for _ in range(15):
        rewards = noise.standard_normal((PATHS, 24))
        S = np.array(
            [rewards[:, :n] @ (Z[:n] @ w) * v
             for n, w, v in zip(range(6, 25), weights, V, strict=True)]
        )  # fmt: skip
        # By all rewards so far, if all means are 0.
        end = np.array([rewards[:, :n] @ (Z[:n] @ weights[-1]) * V[-1] for n in range(6, 25)])
        falls = (end < S) & ending
        at = np.where(falls.any(axis=0), falls.argmax(axis=0), 18)
        looks = np.minimum(np.arange(19)[:, None], at)  # what comes after the end adds nothing
        S, times = np.take_along_axis(S, looks, axis=0), V[looks]
        bets.place_along(S, times, np.arange(PATHS), known, ODDS)
        bets.path[:] = 0.0
        known = known[0] + S[-1], known[1] + times[-1]
    return bets


def test_epochs_that_end_as_was_fixed():
    assert kept(after_epochs(np.random.default_rng(2), ending=False))


def test_epochs_that_end_by_what_was_seen_are_caught():
    assert not kept(after_epochs(np.random.default_rng(2), ending=True))


# ---- looks are for normal noise --------------------------------------------------------------

PULLS = 9


def paths_of(noise: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return S and V at all looks, and by how much S is expected to grow until the next.

    The last goes by all rewards so far, if all means are 0.
    """
    rng = np.random.default_rng(8)
    Z = rng.standard_normal((PULLS, 2))
    look, Y = np.arange(PULLS + 1) >= 2, Z[[1]] - Z[[0]]
    S, grown = np.zeros((2, len(noise), PULLS - 1))
    V, gaps = np.zeros((2, PULLS - 1, 1))
    for i, values in enumerate(noise):
        path_kernels.walk(np.zeros((2, 2)), np.zeros(2), Z, values, look, Y, V, gaps)
        S[i] = (V * gaps)[:, 0]
    for n in range(2, PULLS):
        A = Z[: n + 1].T @ Z[: n + 1]
        w = np.linalg.solve(A, Y[0])
        grown[:, n - 2] = noise[:, :n] @ Z[:n] @ w / (Y[0] @ w) - S[:, n - 2]
    return S, V[:, 0].copy(), grown


def test_looks_at_noise_of_two_values_are_caught():
    # With noise of +1 and -1 the path of S tells every reward: whoever bets by it sees them all.
    every = np.array(list(product([-1.0, 1.0], repeat=PULLS)))
    paths = {tuple(row) for row in paths_of(every)[0][:, :-1].round(9).tolist()}
    assert len(paths) == len(every) / 2  # all rewards but the last one
    rng = np.random.default_rng(9)
    log_m, highest = np.zeros((2, PATHS))
    for _ in range(12):  # epochs
        S, V, grown = paths_of(np.where(rng.random((PATHS, PULLS)) < 0.5, -1.0, 1.0))
        more = np.diff(V)
        drift = np.maximum(grown[:, :-1] / np.sqrt(more), 0.0)
        factor = drift * np.diff(S, axis=1) / np.sqrt(more) - drift**2 / 2
        path = log_m[:, None] + np.cumsum(factor, axis=1)
        log_m, highest = path[:, -1], np.maximum(highest, path.max(axis=1))
    count = int(np.count_nonzero(highest >= -np.log(DELTA)))
    assert exact_lower_bound(count, PATHS, CONFIDENCE) > DELTA
    # So there the gauntlet keeps a whole pilot and looks at ends of epochs only.
    arms = fl.Arms(np.eye(3))
    assert looks_inside(as_problem(arms, sigma=1.0))
    assert not looks_inside(as_problem(arms, sigma=1.0, noise="sub-gaussian"))
    assert not looks_inside(as_problem(arms, sigma=None))
