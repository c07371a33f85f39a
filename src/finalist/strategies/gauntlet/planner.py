"""Where the gauntlet measures, and against whom each arm is tested; both from the past alone."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import qr

from finalist.arms import Arms
from finalist.arms.span import SPAN_TOLERANCE
from finalist.design import rough_design, round_design
from finalist.design.linalg import spanning_arms
from finalist.inference.information import Information, information, row_norms
from finalist.inference.least_squares import weights_of
from finalist.inference.misspecification import Bias
from finalist.problem import Problem
from finalist.strategies.phased.phase import share
from finalist.strategies.static.static import static_design

#: Directions are weighted by the root of the missing evidence, at least this.
LEAST_MISSING = 0.05
#: Gaps count as at least this many standard errors, and at most this many times the smallest.
LEAST_GAP, MAX_GAP = 0.5, 8.0
#: How close to optimal a design is, and how close with many arms.
TOLERANCE, ROUGH, MANY = 2e-2, 5e-2, 256
#: A rejected arm is looked at again if its pooled gap to the leader is below so many standard
#: errors when the pulls have become so many times those at its rejection, with this part of the
#: pulls; and below `MORE` standard errors more with each further doubling.
DOUBT, LATER, MORE, AGAIN = 3.0, 3.0, 0.5, 0.1
#: Rivals are the leader and so many of the best arms.
RIVALS = 64
#: Survivors whose rivals are looked for at once.
BLOCK = 512
#: Up to so many survivors may be compared without the model, where it may be wrong.
FEW = 200


@dataclass(frozen=True, eq=False)
class Aim:
    """What a batch is planned from.

    Attributes
    ----------
    Z : (K, r) array
        The arms.
    root : (s, r) array
        R with R'R the inverse of the design matrix of all pulls.
    sigma : float
    thetas : (S, r) array
        Plausible parameters, the estimate first, such that large means are good.
    leader : int
    first, second : (n,) arrays of int
        Pairs of arms to tell apart, the better ones first: the leader and each survivor.
    missing : (n,) array
        The part of the evidence against each second arm that is still missing: 0 when it is
        rejected, above 1 where the bets have lost.
    epsilon : float
    last : (K,) array of int
        The counts of the batch before, to start from.
    age : (K,) array
        All pulls so far over those when an arm was rejected; 0 for survivors.
    room : (K,) array of int
        How often each arm can still be pulled.
    precisions, costs : (K,) arrays or None
        1 / sigma^2 and the cost of a pull, where they differ between arms.
    bias : float
        How far a mean may be from the linear model.
    off : (K,) array or None
        How far the means seem to be from it; None for not at all.
    """

    Z: Float[np.ndarray, "K r"]
    root: Float[np.ndarray, "s r"]
    sigma: float
    thetas: Float[np.ndarray, "S r"]
    leader: int
    first: Int[np.ndarray, " n"]
    second: Int[np.ndarray, " n"]
    missing: Float[np.ndarray, " n"]
    epsilon: float
    last: Int[np.ndarray, " K"]
    age: Float[np.ndarray, " K"]
    room: Int[np.ndarray, " K"]
    precisions: Float[np.ndarray, " K"] | None = None
    costs: Float[np.ndarray, " K"] | None = None
    bias: float = 0.0
    off: Float[np.ndarray, " K"] | None = None

    @cached_property
    def needed(self) -> Float[np.ndarray, "n r"]:
        """What the batch has to estimate."""
        return np.asarray(self.Z[self.first] - self.Z[self.second])

    def gaps(self) -> Float[np.ndarray, "S n"]:
        """Return by how much each first arm is better, for each parameter."""
        gaps = np.asarray(self.thetas @ self.needed.T)
        if self.off is not None:
            gaps += self.off[self.first] - self.off[self.second]
        return gaps

    def directions(self) -> Float[np.ndarray, "S n r"]:
        """Return, for each parameter, (first - second) / gap with the weight of each pair."""
        Y = self.needed
        widths = self._errors(Y)
        gaps = np.maximum(self.gaps(), LEAST_GAP * widths) + self.epsilon
        gaps = np.minimum(gaps, MAX_GAP * gaps.min(axis=1, keepdims=True))
        weights = np.sqrt(np.maximum(LEAST_MISSING, self.missing))
        scale = gaps.min() * weights / gaps
        return np.asarray(Y[None] * scale[:, :, None])

    def doubtful(self) -> Float[np.ndarray, "n r"]:
        """Return (leader - j) / gap_j for rejected arms j that may be better than the leader.

        The best arm is among them in a part of the runs, at most delta. It then is the rival that
        ends the run soon, if it is found again; otherwise near ties among the rest are fought out.
        """
        old = (self.age >= LATER).nonzero()[0]
        if len(old) == 0:
            return np.empty((0, self.Z.shape[1]))
        Y = self.Z[self.leader] - self.Z[old]
        widths = self._errors(Y)
        gaps = Y @ self.thetas[0]
        doubt = DOUBT + MORE * np.log2(self.age[old] / LATER)
        some = (gaps < doubt * widths) & (widths > 0.0)
        return np.asarray(Y[some] / np.maximum(gaps, LEAST_GAP * widths)[some][:, None])

    def _errors(self, Y: Float[np.ndarray, "n r"]) -> Float[np.ndarray, " n"]:
        """Return the standard errors of estimated gaps."""
        return np.asarray(self.sigma * np.sqrt(row_norms(Y, self.root)))


def allocate(aim: Aim, size: int) -> tuple[Int[np.ndarray, " K"], Information]:
    """Return the counts of a batch: the mean of the designs for plausible parameters, rounded.

    Beside them what they can estimate.
    """
    designer = Designer(aim)
    designs = [designer.design(Y) for Y in aim.directions()]
    weights = np.add.reduce(designs) / len(designs)
    doubtful = aim.doubtful()
    if len(doubtful) > 0:
        weights = (1.0 - AGAIN) * weights + AGAIN * designer.design(doubtful)
    weights = np.where(weights < min(0.2 / size, 0.3 * weights.max()), 0.0, weights)
    counts = within(_round_heaviest(weights, size), aim.room)
    linear = estimable(aim.Z, counts, aim.needed, aim.room, aim.precisions)
    direct = _compare_directly(aim, size) if aim.bias > 0.0 else None
    if direct is None or _worst_score(aim, *linear) > _worst_score(aim, *direct):
        return linear
    return direct


def _compare_directly(aim: Aim, size: int) -> tuple[Int[np.ndarray, " K"], Information] | None:
    """Return a batch of the arms of all pairs alone, as if arms had nothing in common.

    None if they are too many, or cannot all be pulled.
    """
    some = np.union1d(aim.first, aim.second)
    if len(some) > min(FEW, size) or not aim.room[some].all():
        return None
    lengths = np.linalg.norm(aim.directions()[0], axis=1) / np.linalg.norm(aim.needed, axis=1)
    Y = np.zeros((len(lengths), len(some)))
    row = np.arange(len(Y))
    Y[row, np.searchsorted(some, aim.first)] = lengths
    Y[row, np.searchsorted(some, aim.second)] = -lengths
    unit = np.ones(len(some))
    if aim.precisions is not None:
        unit *= np.sqrt(aim.precisions[some])
    if aim.costs is not None:
        unit /= np.sqrt(aim.costs[some])
    weights = np.zeros(len(aim.Z))
    weights[some] = rough_design(np.diag(unit), Y, TOLERANCE)[0]
    if aim.costs is not None:
        weights /= aim.costs
    counts = np.zeros(len(aim.Z), dtype=np.int64)
    counts[some] = 1
    counts += _round_heaviest(weights / weights.sum(), size - len(some)) if size > len(some) else 0
    counts = within(counts, aim.room)
    return counts, information(aim.Z, weights_of(counts, aim.precisions))


def _worst_score(aim: Aim, counts: Int[np.ndarray, " K"], info: Information) -> float:
    """Return the smallest score of a pair that a batch is expected to give.

    In units of the root of the evidence that is missing.
    """
    bias = Bias.of(aim.bias, aim.precisions, aim.Z, counts, info)
    assert bias is not None
    gaps = aim.gaps()[0] + aim.epsilon
    linear = gaps - bias.of_pairs(aim.first, aim.second)
    score = np.maximum(
        linear / np.sqrt(info.variances(aim.needed)),
        gaps / bias.direct_errors(aim.first, aim.second),
    )
    return float((score / np.sqrt(np.maximum(LEAST_MISSING, aim.missing))).min())


def within(counts: Int[np.ndarray, " K"], room: Int[np.ndarray, " K"]) -> Int[np.ndarray, " K"]:
    """Give pulls that there is no room for to other arms, as far as they have room."""
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
    return round_design(kept / kept.sum(), size)


class Designer:
    """Designs for directions, with the arms that can still be pulled."""

    def __init__(self, aim: Aim) -> None:
        self._usable, self._costs, self._K = aim.room.nonzero()[0], aim.costs, len(aim.Z)
        last, self._Z = aim.last.astype(float), aim.Z
        if aim.precisions is not None:
            self._Z = self._Z * np.sqrt(aim.precisions)[:, None]
        if aim.costs is not None:  # weights are shares of the cost: a share buys share / cost pulls
            self._Z = self._Z / np.sqrt(aim.costs)[:, None]
            last = last * aim.costs
        if 0 < len(self._usable) < self._K:
            Z = self._Z[self._usable]
            left = information(Z, np.ones(len(Z)))
            if left.rank == Z.shape[1]:  # else plan as if all could be pulled, then make it fit
                self._Z, last = Z, last[self._usable]
        self._start = last if last.any() else None
        self._tolerance = TOLERANCE if len(self._Z) <= MANY else ROUGH

    def design(self, Y: Float[np.ndarray, "n r"]) -> Float[np.ndarray, " K"]:
        """Return a design for some directions."""
        weights = rough_design(self._Z, Y, self._tolerance, self._start)[0]
        if len(weights) < self._K:
            found, weights = weights, np.zeros(self._K)
            weights[self._usable] = found
        if self._costs is not None:
            weights = weights / self._costs
            weights /= weights.sum()
        return weights


def estimable(
    Z: Float[np.ndarray, "K r"],
    counts: Int[np.ndarray, " K"],
    needed: Float[np.ndarray, "n r"],
    room: Int[np.ndarray, " K"],
    precisions: Float[np.ndarray, " K"] | None = None,
) -> tuple[Int[np.ndarray, " K"], Information]:
    """Move pulls until the batch can estimate the needed directions, or has no pull to spare."""
    counts = counts.copy()
    while True:
        info = information(Z, weights_of(counts, precisions))
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
    unit = Z[pulled] / np.linalg.norm(Z[pulled], axis=1, keepdims=True)
    order = qr(unit.T, mode="r", pivoting=True, check_finite=False)[1]
    return int(pulled[order[-1]])


def choose_rivals(
    Z: Float[np.ndarray, "K r"],
    means: Float[np.ndarray, " K"],
    survivors: Int[np.ndarray, " m"],
    info: Information,
    bias: Bias | None = None,
) -> Int[np.ndarray, " m"]:
    """Return for each survivor the arm that the batch is expected to show best above it.

    The largest (a - x)'theta_hat / ||a - x||_{A_k^+} over the leader and the best other arms
    whose difference the batch can estimate; -1 where there is none. What a model that is not
    quite linear can feign is taken off the difference.
    """
    rivals = np.sort(np.argsort(-means, kind="stable")[: RIVALS + 1])  # the leader is the first
    W = Z @ info.inverse_root.T  # ||w_a - w_x|| = ||a - x||_{A_k^+}
    chosen = np.empty(len(survivors), dtype=np.int64)
    partial = info.rank < Z.shape[1]
    outside = Z - (Z @ info.basis) @ info.basis.T if partial else Z
    for start in range(0, len(survivors), BLOCK):
        some = survivors[start : start + BLOCK]
        width = _distances(W[rivals], W[some])
        usable = width > 0.0
        if partial:
            length = _distances(Z[rivals], Z[some])
            usable &= _distances(outside[rivals], outside[some]) <= SPAN_TOLERANCE * length
        gaps = means[rivals][:, None] - means[some]
        if bias is not None:
            gaps -= bias.between(rivals, some)
        score = np.where(usable, gaps / np.where(usable, width, 1.0), -np.inf)
        if bias is not None:
            score = np.maximum(score, bias.direct_scores(means, rivals, some))
        best = score.argmax(axis=0)
        found = score[best, np.arange(len(some))] > -np.inf
        chosen[start : start + BLOCK] = np.where(found, rivals[best], -1)
    return chosen


def _distances(
    first: Float[np.ndarray, "a r"], second: Float[np.ndarray, "b r"]
) -> Float[np.ndarray, "a b"]:
    difference = first[:, None] - second
    return np.asarray(np.sqrt(np.einsum("abr,abr->ab", difference, difference)))
