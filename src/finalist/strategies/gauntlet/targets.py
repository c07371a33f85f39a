"""What a batch is planned for: pairs of arms to tell apart, and what the past says of them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from finalist.compiled.arrays import read_only
from finalist.inference.information import Information, row_norms

#: Directions are weighted by the root of the missing evidence, at least this.
LEAST_MISSING = 0.05
#: Gaps count as at least this many standard errors, and at most this many times the smallest.
LEAST_GAP, MAX_GAP = 0.5, 8.0
#: A rejected arm is looked at again if its pooled gap to the leader is below so many standard
#: errors when the pulls have become so many times those at its rejection; and below `MORE`
#: standard errors more with each further doubling.
DOUBT, LATER, MORE = 3.0, 3.0, 0.5


@dataclass(frozen=True, eq=False)
class Comparisons:
    """What the claims that are still open want to know.

    Attributes
    ----------
    first, second : (n,) arrays of int
        Pairs of arms to tell apart, the better ones first: the leader and each survivor.
    missing : (n,) array
        The part of the evidence against each second arm that is still missing: 0 when it is
        rejected, above 1 where the bets have lost.
    age : (K,) array
        All pulls so far over those when an arm was rejected; 0 for survivors.
    """

    leader: int
    first: Int[np.ndarray, " n"]
    second: Int[np.ndarray, " n"]
    missing: Float[np.ndarray, " n"]
    age: Float[np.ndarray, " K"]

    def spanned(self, Z: Float[np.ndarray, "K r"], info: Information) -> Bool[np.ndarray, " n"]:
        """Return which pairs of arms some pulls can compare."""
        if info.rank == Z.shape[1]:
            return np.ones(len(self.first), dtype=bool)
        return info.spans(Z[self.first] - Z[self.second])

    def of_leader(self) -> "Comparisons":
        """Return those of the leader alone."""
        own = self.first == self.leader
        first, second, missing = (a[own] for a in (self.first, self.second, self.missing))
        return Comparisons(self.leader, first, second, missing, self.age)


@dataclass(frozen=True, eq=False)
class Targets(Comparisons):
    """The same with what the past says of the arms: all that a batch is planned from.

    Attributes
    ----------
    Z : (K, r) array
        The arms.
    root : (s, r) array
        R with R'R the inverse of the design matrix of all pulls.
    thetas : (S, r) array
        Plausible parameters, the estimate first, such that large means are good.
    last : (K,) array of int
        The counts of the batch before, to start from.
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
    epsilon: float
    last: Int[np.ndarray, " K"]
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
        import finalist.strategies.gauntlet.choice_kernels as kernels

        out = np.empty((len(self.thetas), len(self.first), self.Z.shape[1]))
        off = np.zeros(len(self.Z)) if self.off is None else self.off
        pairs = read_only(self.first), read_only(self.second), self.missing, self.thetas, off
        rule = LEAST_GAP, MAX_GAP, LEAST_MISSING
        words = read_only(self.root), self.sigma, self.epsilon, rule
        kernels.aim(read_only(self.Z), *pairs, *words, out)
        return out

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
