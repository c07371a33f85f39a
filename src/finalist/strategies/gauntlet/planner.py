"""Where the gauntlet measures: pilot, sizes and allocations of batches, from the past alone."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import qr

from finalist.arms import Arms
from finalist.arms.span import SPAN_TOLERANCE
from finalist.design import Rounded, rough_design, round_design
from finalist.design.exchange import exchange
from finalist.design.linalg import spanning_arms
from finalist.design.rough import rough_minimax
from finalist.design.rounding import rounded
from finalist.inference.information import Information, information
from finalist.inference.least_squares import weighted_rows, weights_of
from finalist.inference.misspecification import Bias
from finalist.inference.quick import quick_information
from finalist.problem import Problem
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.reserve import Reserve
from finalist.strategies.gauntlet.targets import LEAST_MISSING, Comparisons, Targets
from finalist.strategies.phased.phase import share
from finalist.strategies.static.static import static_design

#: How close to optimal a design is, and how close with many arms.
TOLERANCE, ROUGH, MANY = 2e-2, 5e-2, 256
#: The part of the pulls with which rejected arms are looked at again.
AGAIN = 0.1
#: Pulls are exchanged in epochs of up to so many times the rank; larger ones round well.
EXCHANGED = 40
#: Up to so many survivors may be compared without the model, where it may be wrong.
FEW = 200


@dataclass(frozen=True)
class Planner:
    """Plans batches until the winner is certain.

    Attributes
    ----------
    growth : float
        A batch is this part of all pulls so far, unless a size is asked for.
    seed : int
        Draws plausible parameters to plan for.
    """

    growth: float
    seed: int

    def size(self, past: Past) -> int:
        """Return the size of the next batch unless another is asked for."""
        r, done, rules = past.arms.rank, past.pooled.pulls, past.problem.rules
        if past.piloting:
            return max(rules.pilot * r - done, r)
        if past.batches == 0:
            return rules.first * r
        return max(rules.fewest * r, math.ceil(self.growth * done))

    def pilot(self, past: Past, size: int) -> Int[np.ndarray, " K"]:
        """Return pulls of the G-optimal design; they are not tested."""
        done = past.pooled.pulls
        weights = pilot_weights(past.arms, past.problem, past.problem.rules.pilot)
        picks = Rounded(weights).extend(done + size)[done:]
        return within(np.bincount(picks, minlength=len(past.Z)), past.room())

    def plan(
        self, past: Past, wanted: Comparisons, size: int
    ) -> tuple[Int[np.ndarray, " K"], Information]:
        """Return the counts of a batch for what claims want to know, and what it can estimate."""
        return allocate(self.targets(past, wanted), size)

    def plan_epoch(
        self, past: Past, wanted: Comparisons, size: int, reserve: Reserve | None
    ) -> tuple[Int[np.ndarray, " K"], Information, Float[np.ndarray, "r r"]]:
        """Return the counts of an epoch, what it can estimate with a reserve, and what it is for.

        The last is M: what the epoch should make small is tr(M A^-1).
        """
        return allocate_epoch(self.targets(past, wanted), size, reserve)

    def targets(self, past: Past, wanted: Comparisons) -> Targets:
        """Return what claims want to know, with what the past says of it."""
        fit, problem = past.estimate(), past.problem
        sigma, root = past.scale(fit), fit.information.inverse_root
        rng = np.random.default_rng([self.seed, past.batches])
        draws = fit.phi + sigma * (rng.standard_normal((2, len(root))) @ root)
        return Targets(
            **vars(wanted),
            Z=past.Z,
            root=root,
            sigma=sigma,
            thetas=problem.sign * np.vstack([fit.phi, draws]),
            epsilon=problem.epsilon,
            last=past.last,
            room=past.room(),
            precisions=problem.precisions,
            costs=None if problem.cost == 1.0 else problem.costs,
            bias=problem.misspecification,
            off=past.off(fit),
        )


def allocate(targets: Targets, size: int) -> tuple[Int[np.ndarray, " K"], Information]:
    """Return the counts of a batch: the mean of the designs for plausible parameters, rounded.

    Beside them what they can estimate.
    """
    designer = Designer(targets)
    designs = [designer.design(Y) for Y in targets.directions()]
    weights = np.add.reduce(designs) / len(designs)
    doubtful = targets.doubtful()
    if len(doubtful) > 0:
        weights = (1.0 - AGAIN) * weights + AGAIN * designer.design(doubtful)
    weights = np.where(weights < min(0.2 / size, 0.3 * weights.max()), 0.0, weights)
    counts = within(_round_heaviest(weights, size), targets.room)
    linear = estimable(targets.Z, counts, targets.needed, targets.room, targets.precisions)
    direct = _compare_directly(targets, size) if targets.bias > 0.0 else None
    if direct is None or _worst_score(targets, *linear) > _worst_score(targets, *direct):
        return linear
    return direct


def allocate_epoch(
    targets: Targets, size: int, reserve: Reserve | None
) -> tuple[Int[np.ndarray, " K"], Information, Float[np.ndarray, "r r"]]:
    """Return the counts of an epoch, what they can estimate, and M."""
    designer, r = Designer(targets), targets.Z.shape[1]
    weights, M = np.zeros(len(targets.Z)), np.zeros((r, r))
    directions = targets.directions()
    for Y in directions:
        design, m = designer.solve(Y)
        weights += design / len(directions)
        M += (Y * m[:, None]).T @ Y / len(directions)
    doubtful = targets.doubtful()
    if len(doubtful) > 0:
        design, m = designer.solve(doubtful)
        weights = (1.0 - AGAIN) * weights + AGAIN * design
        D = doubtful * (AGAIN * np.trace(M) / np.einsum("ij,ij,i->", doubtful, doubtful, m)) ** 0.5
        M += (D * m[:, None]).T @ D
    weights = np.where(weights < min(0.2 / size, 0.3 * weights.max()), 0.0, weights)
    counts = within(_round_heaviest(weights, size), targets.room)
    p, Z = targets.precisions, targets.Z
    start = None if reserve is None else weights_of(reserve.worth, p)
    if size <= EXCHANGED * r and targets.costs is None and targets.bias == 0.0:
        W = weighted_rows(Z, p)
        A = None if start is None else (Z * start[:, None]).T @ Z
        some = useful_arms(Z, weights, targets.room)
        if len(some) == len(Z):
            counts = exchange(W, counts, M, A, targets.room)
        else:
            counts[some] = exchange(W[some], counts[some], M, A, targets.room[some])
    counts, info = estimable(Z, counts, targets.needed, targets.room, p, start, targets.bias == 0.0)
    if targets.bias > 0.0:
        direct = _compare_directly(targets, size)
        if direct is not None and _worst_score(targets, counts, info) <= _worst_score(
            targets, *direct
        ):
            counts, info = direct
    return counts, info, M


def useful_arms(
    Z: Float[np.ndarray, "K r"], weights: Float[np.ndarray, " K"], room: Int[np.ndarray, " K"]
) -> Int[np.ndarray, " n"]:
    """Return the arms among which pulls are exchanged."""
    if len(Z) <= MANY:
        return (room > 0).nonzero()[0]
    return (weights > 0.0).nonzero()[0]


def _compare_directly(
    targets: Targets, size: int
) -> tuple[Int[np.ndarray, " K"], Information] | None:
    """Return a batch of the arms of all pairs alone, as if arms had nothing in common.

    None if they are too many, or cannot all be pulled.
    """
    some = np.union1d(targets.first, targets.second)
    if len(some) > min(FEW, size) or not targets.room[some].all():
        return None
    lengths = np.linalg.norm(targets.directions()[0], axis=1) / np.linalg.norm(
        targets.needed, axis=1
    )
    Y = np.zeros((len(lengths), len(some)))
    row = np.arange(len(Y))
    Y[row, np.searchsorted(some, targets.first)] = lengths
    Y[row, np.searchsorted(some, targets.second)] = -lengths
    unit = np.ones(len(some))
    if targets.precisions is not None:
        unit *= np.sqrt(targets.precisions[some])
    if targets.costs is not None:
        unit /= np.sqrt(targets.costs[some])
    weights = np.zeros(len(targets.Z))
    weights[some] = rough_design(np.diag(unit), Y, TOLERANCE)[0]
    if targets.costs is not None:
        weights /= targets.costs
    counts = np.zeros(len(targets.Z), dtype=np.int64)
    counts[some] = 1
    counts += _round_heaviest(weights / weights.sum(), size - len(some)) if size > len(some) else 0
    counts = within(counts, targets.room)
    return counts, information(targets.Z, weights_of(counts, targets.precisions))


def _worst_score(targets: Targets, counts: Int[np.ndarray, " K"], info: Information) -> float:
    """Return the smallest score of a pair that a batch is expected to give.

    In units of the root of the evidence that is missing.
    """
    bias = Bias.of(targets.bias, targets.precisions, targets.Z, counts, info)
    assert bias is not None
    gaps = targets.gaps()[0] + targets.epsilon
    linear = gaps - bias.of_pairs(targets.first, targets.second)
    score = np.maximum(
        linear / np.sqrt(info.variances(targets.needed)),
        gaps / bias.direct_errors(targets.first, targets.second),
    )
    return float((score / np.sqrt(np.maximum(LEAST_MISSING, targets.missing))).min())


def within(counts: Int[np.ndarray, " K"], room: Int[np.ndarray, " K"]) -> Int[np.ndarray, " K"]:
    """Give pulls that there is no room for to other arms, as far as they have room."""
    if (counts <= room).all():
        return counts
    fitting: Int[np.ndarray, " K"] = np.minimum(counts, room)
    left = int(counts.sum() - fitting.sum())
    free = room - fitting
    if left > 0 and free.any():
        fitting += share(free, min(left, int(free.sum())))
    return fitting


def pilot_weights(arms: Arms, problem: Problem, times: int) -> Float[np.ndarray, " K"]:
    """Return the shares of a pilot of `times` rank pulls: the G-optimal design, made to span."""
    sigma = problem.noise.sigma if isinstance(problem.noise.sigma, tuple) else 1.0
    design = static_design(arms, "g", sigma, problem.cost).weights  # type: ignore[arg-type]
    Z = arms.coordinates
    K, r = Z.shape
    counts = _round_heaviest(design, times * r)
    if information(Z, counts.astype(float)).rank < r:
        usable = np.flatnonzero(arms.measurable)
        once = np.bincount(usable[spanning_arms(Z[usable])], minlength=K)
        counts = once + _round_heaviest(design, (times - 1) * r)
    return np.asarray(counts / counts.sum())


def _round_heaviest(weights: Float[np.ndarray, " K"], size: int) -> Int[np.ndarray, " K"]:
    """Round a design to a number of pulls, with the heaviest arms if it has more than that."""
    kept = weights
    if np.count_nonzero(weights) > size:
        kept = weights.copy()
        kept[np.argsort(-weights, kind="stable")[size:]] = 0.0
    shares = kept / kept.sum()
    return rounded(shares, size) if math.isfinite(shares.sum()) else round_design(shares, size)


class Designer:
    """Designs for directions, with the arms that can still be pulled."""

    def __init__(self, targets: Targets) -> None:
        self._usable, self._costs, self._K = (
            targets.room.nonzero()[0],
            targets.costs,
            len(targets.Z),
        )
        last, self._Z = targets.last.astype(float), targets.Z
        if targets.precisions is not None:
            self._Z = self._Z * np.sqrt(targets.precisions)[:, None]
        if (
            targets.costs is not None
        ):  # weights are shares of the cost: a share buys share / cost pulls
            self._Z = self._Z / np.sqrt(targets.costs)[:, None]
            last = last * targets.costs
        if 0 < len(self._usable) < self._K:
            Z = self._Z[self._usable]
            left = information(Z, np.ones(len(Z)))
            if left.rank == Z.shape[1]:  # else plan as if all could be pulled, then make it fit
                self._Z, last = Z, last[self._usable]
        self._start = last if last.any() else None
        self._tolerance = TOLERANCE if len(self._Z) <= MANY else ROUGH

    def design(self, Y: Float[np.ndarray, "n r"]) -> Float[np.ndarray, " K"]:
        """Return a design for some directions."""
        return self.solve(Y)[0]

    def solve(
        self, Y: Float[np.ndarray, "n r"]
    ) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, " n"]]:
        """Return a design for some directions, and which of them it is for."""
        weights, m, _ = rough_minimax(self._Z, Y, self._tolerance, self._start)
        if len(weights) < self._K:
            found, weights = weights, np.zeros(self._K)
            weights[self._usable] = found
        if self._costs is not None:
            weights = weights / self._costs
            weights /= weights.sum()
        return weights, m


def estimable(
    Z: Float[np.ndarray, "K r"],
    counts: Int[np.ndarray, " K"],
    needed: Float[np.ndarray, "n r"],
    room: Int[np.ndarray, " K"],
    precisions: Float[np.ndarray, " K"] | None = None,
    start: Float[np.ndarray, " K"] | None = None,
    quick: bool = False,
) -> tuple[Int[np.ndarray, " K"], Information]:
    """Move pulls until the batch can estimate the needed directions, or has no pull to spare.

    `start` are weights of what is known beside it. With `quick` the last digits may differ: not
    where two batches that may be equal are compared.
    """
    counts = counts.copy()
    while True:
        weights = weights_of(counts, precisions)
        weights = weights if start is None else weights + start
        info = quick_information(Z, weights) if quick else information(Z, weights)
        outside = ~info.spans(needed)
        spare = _spare(Z, counts, info.rank) if outside.any() else None
        if spare is None:
            return counts, info
        y = needed[int(np.argmax(outside))]
        residual = y - (y @ info.basis) @ info.basis.T
        useful = np.where(counts < room, np.abs(Z @ residual), 0.0)
        if useful.max() <= SPAN_TOLERANCE * float(np.abs(Z @ y).max()):
            return counts, info  # no arm that can be pulled again would help
        counts[int(useful.argmax())] += 1
        counts[spare] -= 1


def _spare(Z: Float[np.ndarray, "K r"], counts: Int[np.ndarray, " K"], rank: int) -> int | None:
    """Return an arm that can give a pull away without narrowing what the batch can estimate."""
    most = int(counts.argmax())
    if counts[most] >= 2:
        return most
    pulled = np.flatnonzero(counts)
    if len(pulled) <= rank:
        return None
    norms = np.linalg.norm(Z[pulled], axis=1, keepdims=True)
    order = qr(
        (Z[pulled] / np.where(norms > 0.0, norms, 1.0)).T,
        mode="r",
        pivoting=True,
        check_finite=False,
    )[1]
    return int(pulled[order[-1]])
