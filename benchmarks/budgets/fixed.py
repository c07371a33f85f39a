"""Fixed allocations in closed form: uniform, G, XY, and the oracle that knows theta.

Where pulls do not depend on rewards, a run is a draw of the least-squares estimate: r normal
variables, or K binomial ones for rewards 0 and 1. The best estimate wins, ties are broken at
random. That is what `fl.simulate` does with the same allocation and permuted arms, some thousand
times as fast. Where an allocation does not span (fewer pulls than arms), the estimate is the one
of least norm in the coordinates in which the arms are Z'Z / K = I.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from benchmarks.budgets.families import Truth
from finalist.arms import Arms
from finalist.design import optimal_design
from finalist.strategies.budget.eliminations import rounded

#: Runs drawn at once.
CHUNK = 1000
#: Estimates closer than this, relatively, are tied.
TIE = 1e-9
#: Eigenvalues below this part of the largest are 0.
SINGULAR = 1e-9
#: Multiplicative steps from each start of the oracle, and draws for the choice among its ends.
STEPS, DRAWS = 400, 20_000
#: Share of the design for all arms mixed in at every step of the oracle.
MIXED = 1e-3

Counts = Callable[[int, np.random.Generator], np.ndarray]


@dataclass(frozen=True, eq=False)
class Tally:
    """What came out: winners, and how much worse they are than the best arm."""

    wrong: np.ndarray
    regret: np.ndarray

    @classmethod
    def of(cls, truth: Truth, winners: np.ndarray) -> "Tally":
        """Return it for the winner of each run."""
        regret = truth.gaps[winners]
        return cls(regret > 0.0, regret)


def draw(truth: Truth, counts: Counts, runs: int, seed: int) -> Tally:
    """Simulate runs of an allocation that does not depend on rewards.

    Parameters
    ----------
    truth : Truth
    counts : function
        Called with a number of runs and a generator; returns (runs, K) pulls, or (1, K) if they
        are the same in all runs.
    runs, seed : int
    """
    rng = np.random.default_rng(seed)
    winners = [_winners(truth, counts, n, rng) for n in _parts(runs)]
    return Tally.of(truth, np.concatenate(winners))


def _parts(runs: int) -> Iterator[int]:
    for first in range(0, runs, CHUNK):
        yield min(CHUNK, runs - first)


def _winners(truth: Truth, counts: Counts, n: int, rng: np.random.Generator) -> np.ndarray:
    Z, pulls = truth.arms.coordinates, counts(n, rng)
    r = Z.shape[1]
    outer = np.einsum("ki,kj->kij", Z, Z).reshape(len(Z), r * r)
    values, vectors = np.linalg.eigh((pulls @ outer).reshape(-1, r, r))
    usable = values > SINGULAR * values[:, -1:]
    inverse = np.where(usable, 1.0 / np.where(usable, values, 1.0), 0.0)
    if truth.binary:
        totals = rng.binomial(np.broadcast_to(pulls, (n, len(Z))), truth.means)
        moments = totals @ Z
    else:  # A theta + A^(1/2) noise, in the coordinates of the eigenvectors
        theta = truth.arms.parameter_to_span(truth.theta)
        noise = rng.standard_normal((n, r)) * np.sqrt(np.where(usable, values, 0.0))
        moments = np.einsum("nij,j->ni", (pulls @ outer).reshape(-1, r, r), theta)
        moments = moments + np.einsum("nij,nj->ni", np.broadcast_to(vectors, (n, r, r)), noise)
    turned = np.einsum("nij,ni->nj", np.broadcast_to(vectors, (n, r, r)), moments)
    theta_hat = np.einsum("nij,nj->ni", np.broadcast_to(vectors, (n, r, r)), inverse * turned)
    scores = theta_hat @ Z.T
    size = np.abs(scores).max(axis=1, keepdims=True)
    best = scores >= scores.max(axis=1, keepdims=True) - TIE * size
    return np.asarray(np.where(best, rng.random(scores.shape), -1.0).argmax(axis=1))


# --- allocations ------------------------------------------------------------------------------


def uniform(arms: Arms, budget: int) -> Counts:
    """Return equal shares; which arms have a pull more changes from run to run."""
    K = len(arms)
    whole, rest = divmod(budget, K)

    def counts(n: int, rng: np.random.Generator) -> np.ndarray:
        if rest == 0:
            return np.full((1, K), whole)
        places = rng.random((n, K)).argsort(axis=1).argsort(axis=1)
        return whole + (places < rest)

    return counts


def fixed(pulls: np.ndarray) -> Counts:
    """Return the same allocation for all runs."""
    return lambda n, rng: pulls[None, :]  # noqa: ARG005


def designed(arms: Arms, criterion: str, budget: int) -> np.ndarray:
    """Return the pulls of a G- or XY-optimal design, rounded."""
    return rounded(arms, optimal_design(arms, criterion, 1e-3), budget)  # type: ignore[arg-type]


# --- the oracle -------------------------------------------------------------------------------


def expected_errors(truth: Truth, weights: np.ndarray, budget: float) -> float:
    """Return sum_j Phi(-z_j), a bound on the error of an allocation (normal approximation).

    z_j is the gap of arm j over the standard error of its difference to the best arm.
    """
    Y, gaps = _rivals(truth)
    Z = truth.arms.coordinates
    A = (Z * weights[:, None]).T @ Z * budget
    S = (Z * (weights * truth.variances)[:, None]).T @ Z * budget
    solved = np.linalg.solve(A, Y.T)
    v = np.einsum("im,ij,jm->m", solved, S, solved)
    return float(ndtr(-gaps / np.sqrt(v)).sum())


def _rivals(truth: Truth) -> tuple[np.ndarray, np.ndarray]:
    """Return the differences of the best arm to the others, and their gaps."""
    Z, best = truth.arms.coordinates, int(truth.gaps.argmin())
    others = np.delete(np.arange(len(Z)), best)
    return Z[best] - Z[others], truth.gaps[others]


def improved(truth: Truth, start: np.ndarray, base: np.ndarray, budget: float) -> np.ndarray:
    """Return the best weights on the way of multiplicative steps from a start.

    The derivative of Phi(-gap / s) by the variance v = s^2 is c = phi(gap / s) gap / (2 s^3), so
    that of the sum by the weight of an arm x is minus x'A^-1 (sum_j c_j y_j y_j') A^-1 x. Each
    weight is multiplied by its square root, as in Silvey, Titterington and Torsney 1978; the sum is
    not convex, so this need not end in its minimum.
    """
    Y, gaps = _rivals(truth)
    Z, s2 = truth.arms.coordinates, truth.sigma**2
    w, best, least = start, start, np.inf
    for _ in range(STEPS):
        w = (1.0 - MIXED) * w + MIXED * base
        value = expected_errors(truth, w, budget)
        if value < least:
            best, least = w, value
        A = (Z * w[:, None]).T @ Z * budget
        solved = np.linalg.solve(A, Y.T)  # (r, M)
        v = s2 * np.einsum("mi,im->m", Y, solved)
        log_c = -0.5 * gaps**2 / v + np.log(gaps) - 1.5 * np.log(v)
        c = np.exp(log_c - log_c.max())
        gradient = ((Z @ solved) ** 2) @ c
        w = w * np.sqrt(gradient)
        w = w / w.sum()
    return best


def oracle(truth: Truth, budget: int) -> np.ndarray:
    """Return the best fixed allocation that is found when theta is known.

    Multiplicative steps from three starts; of their ends and the starts the one with the fewest
    errors in `DRAWS` draws, the same for all.
    """
    arms = truth.arms
    base = optimal_design(arms, "g", 1e-3).weights
    starts = [base, np.full(len(arms), 1.0 / len(arms)), optimal_design(arms, "xy", 1e-3).weights]
    ends = [improved(truth, 0.9 * start + 0.1 * base, base, budget) for start in starts]
    found = [_whole(arms, weights, budget) for weights in (*ends, *starts)]
    errors = [draw(truth, fixed(pulls), DRAWS, seed=1).wrong.sum() for pulls in found]
    return found[int(np.argmin(errors))]


def _whole(arms: Arms, weights: np.ndarray, budget: int) -> np.ndarray:
    """Round weights; those too small for half a pull are left out where the others span."""
    from finalist.design.result import Design

    heavy = np.where(weights * budget >= 0.5, weights, 0.0)
    Z = arms.coordinates
    if np.linalg.matrix_rank(Z[heavy > 0.0]) == arms.rank:
        weights = heavy / heavy.sum()
    return rounded(arms, Design(weights, 0.0, 0.0, "g", "optimal", 0), budget)
