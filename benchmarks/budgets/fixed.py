"""Fixed allocations in closed form: uniform, G, XY, and the oracle that knows theta.

Where pulls do not depend on rewards, a run is a draw of the least-squares estimate: r normal
variables, or K binomial ones for rewards 0 and 1. The best estimate wins, ties are broken at
random. That is what `fl.simulate` does with the same allocation and permuted arms, some thousand
times as fast. Where an allocation does not span (fewer pulls than arms), the estimate is the one
of least norm in the coordinates in which the arms are Z'Z / K = I.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr, logsumexp, softmax

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
#: Steps from each start of the oracle, and draws for the choice among their ends.
STEPS, DRAWS = 400, 20_000
#: Share of the design for all arms mixed in, so that everything is measured.
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


def log_errors(truth: Truth, weights: np.ndarray, budget: float) -> tuple[float, np.ndarray]:
    """Return log sum_j Phi(-z_j) and its derivative by the weights.

    The sum bounds the error of an allocation, z_j being the gap of arm j over the standard error
    s_j of its difference y_j to the best arm. With v = s^2 the derivative of log Phi(-gap / s) by v
    is h gap / (2 s^3), h = phi(z) / Phi(-z), and that of v by the weight of an arm x is
    -sigma^2 T (x'A^-1 y)^2. Rewards 0 and 1 count with the largest variance there is.
    """
    Y, gaps = _rivals(truth)
    Z = truth.arms.coordinates
    A = (Z * weights[:, None]).T @ Z * budget
    solved = np.linalg.solve(A, Y.T)  # (r, M)
    s = truth.sigma * np.sqrt(np.einsum("mi,im->m", Y, solved))
    z = gaps / s
    logs = log_ndtr(-z)
    value = float(logsumexp(logs))
    h = np.exp(-0.5 * z**2 - 0.5 * math.log(2.0 * math.pi) - logs)
    each = np.exp(logs - value) * h * gaps / (2.0 * s**3)
    return value, -(truth.sigma**2) * budget * ((Z @ solved) ** 2 @ each)


def _rivals(truth: Truth) -> tuple[np.ndarray, np.ndarray]:
    """Return the differences of the best arm to the others, and their gaps."""
    Z, best = truth.arms.coordinates, int(truth.gaps.argmin())
    others = np.delete(np.arange(len(Z)), best)
    return Z[best] - Z[others], truth.gaps[others]


def improved(truth: Truth, start: np.ndarray, base: np.ndarray, budget: float) -> np.ndarray:
    """Return weights with a smaller sum than a start, a local minimum: the sum is not convex."""

    def weights(u: np.ndarray) -> np.ndarray:
        return np.asarray((1.0 - MIXED) * softmax(u) + MIXED * base)

    def target(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = log_errors(truth, weights(u), budget)
        w = softmax(u)
        return value, (1.0 - MIXED) * w * (slope - w @ slope)

    found = minimize(target, np.log(start), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return weights(found.x)


def oracle(truth: Truth, budget: int) -> np.ndarray:
    """Return the best fixed allocation that is found when theta is known.

    Steps of L-BFGS from three starts; of their ends and the starts the one with the fewest
    errors in `DRAWS` draws, the same for all.
    """
    arms = truth.arms
    base = optimal_design(arms, "g", 1e-3).weights
    equal = np.full(len(arms), 1.0 / len(arms))
    starts = [equal, base, optimal_design(arms, "xy", 1e-3).weights]
    ends = [improved(truth, 0.5 * (start + equal), base, budget) for start in starts]
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
    return rounded(arms, Design(weights, 0.0, 0.0, "g", "solved", 0), budget)
