"""Evidence against each arm, as the wealth of a bettor (the test of the gauntlet).

For one arm the claim "this arm is best" is bet against, batch after batch. Given the past, the
score Z of a batch is normal with variance 1 and, if the claim is true, a mean that is not
positive. The wealth is multiplied by f(Z), where f >= 0 is nondecreasing, chosen from the past,
and has mean at most 1 under N(0, 1). So under the claim the wealth is a nonnegative
supermartingale from 1, and exceeds 1/delta with probability at most delta (Ville 1939).

The factor is a mixture of likelihood ratios, LR(z) = sum_i w_i exp(l_i z - l_i^2 / 2), over drifts
l_i >= 0 of the score:

- a geometric grid of effect sizes: a slowly falling prior, made a posterior by what all earlier
  pulls say about the same direction (the method of mixtures, Robbins 1970, with the freedom to
  choose the weights anew for every batch);
- an expert, who takes the drifts from the estimate of all earlier pulls;
- the same grid with its prior, which no data tilt.

The first two may look at everything that was measured before the batch, also at pulls that were
not tested: weights chosen from the past change nothing in the proof. But the past may be wrong, and
then they bet on effects that are not there, or on none. The third bets on, whatever it says.
The wealth is never less than its share at the start (a fifth, by rules 2; 0 by rules 1) of what it
would have made alone. The shares of a bet are what each would have made of its share.

Wealth beyond 1/delta is worth nothing. For Gaussian noise the factor is therefore capped where
the wealth reaches 1/delta, and what that saves raises the factor below the cap, so that its mean
under N(0, 1) is 1 again: f(z) = b LR(z) below z_c, and the rest of the way above. For
sub-Gaussian noise only E exp(l Z) <= exp(l^2 / 2), l >= 0, is known: no cap.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Bool, Float, Int

#: The grid: lambda_m = 2.5 * 1.4^-m / sqrt(V1), m = 0..29, with prior weights 8/((m+8)(m+9)).
_M = np.arange(30)
GRID: Float[np.ndarray, " g"] = 2.5 * 1.4 ** -_M.astype(float)
PRIOR: Float[np.ndarray, " g"] = np.log(8.0 / ((_M + 8.0) * (_M + 9.0)))
PRIOR -= math.log(float(np.exp(PRIOR).sum()))


@dataclass(frozen=True, eq=False)
class Odds:
    """How the money of a bet is spread over drifts, before data tilt it.

    Attributes
    ----------
    grid : (g,) array
        Drifts in units of 1 / sqrt(V1).
    prior : (g,) array
        Logarithms of their weights.
    temper : float
        The part of what earlier pulls say by which weights are tilted: leader and rivals are maxima
        of estimates, so the gaps between them seem too large.
    expert : float
        The share of the expert, of what is tilted.
    """

    grid: Float[np.ndarray, " g"]
    prior: Float[np.ndarray, " g"]
    temper: float = 1.0
    expert: float = 0.5

    @cache  # noqa: B019 - odds are constants
    def shares(self, untilted: float) -> Float[np.ndarray, " 3"]:
        """Return the logarithms of what the tilted grid, the expert and the untilted grid have."""
        tilted = 1.0 - untilted
        with np.errstate(divide="ignore"):
            return np.log([(1.0 - self.expert) * tilted, self.expert * tilted, untilted])


def _flat_then_falling(first: int) -> Odds:
    """Return 1.8 * 1.4^-m / sqrt(V1), m = first..29, with weights that are flat up to m = 10.

    That is flat over three decades of pulls, and falls slowly, as 1 / m^2, for all that may be
    smaller. A flat prior on the logarithm of a gap that may be anything is within a percent of
    the best in one dimension.
    """
    m = np.arange(first, 30)
    beyond = np.maximum(m - 8.0, 1.0)
    weights = np.where(m <= 10, 0.9 / 11, 0.3 / (beyond * (beyond + 1.0)))
    return Odds(1.8 * 1.4 ** -m.astype(float), np.log(weights / weights.sum()), 0.7, 0.0)


#: The odds of rules 1 and 2, then of rules 3: for problems that dozens of pulls decide, the grid
#: begins with four larger drifts.
FIRST_ODDS = Odds(GRID, PRIOR)
ODDS, ODDS_OF_FEW = _flat_then_falling(0), _flat_then_falling(-4)
#: A look that adds less than this part to what an epoch tells is left out: it is rounding.
SMALLEST_STEP = 1e-9
#: Bets against more arms than this are placed by several threads, so many at a time.
MANY = 20_000


@dataclass(frozen=True, eq=False)
class Bets:
    """The bets against each of K arms; changed in place by `place`.

    Attributes
    ----------
    limit : (K,) array
        log(1 / delta): an arm whose `log_m` reaches it is rejected.
    capped : bool
        Whether the noise is Gaussian, which allows the cap.
    log_m : (K,) array
        Log of the wealth: the evidence against each arm.
    scale : (K,) array
        V1, that is 1 / v in the first tested batch.
    wealth : (K, 3) array
        Log of what the tilted grid, the expert and the untilted grid would have made alone of
        their shares at the start: their shares of a bet.
    path : (2, K) array
        S and V of the rewards of the open epoch that are bet on already; 0 at its start.
    untilted : float
        The share that no data tilt.
    """

    limit: Float[np.ndarray, " K"]
    capped: bool
    log_m: Float[np.ndarray, " K"]
    scale: Float[np.ndarray, " K"]
    wealth: Float[np.ndarray, "K 3"]
    path: Float[np.ndarray, "2 K"]
    untilted: float = 0.0
    odds: Odds = FIRST_ODDS

    @classmethod
    def against(
        cls,
        arms: int,
        delta: float | Float[np.ndarray, " K"],
        capped: bool,
        untilted: float = 0.0,
        odds: Odds = FIRST_ODDS,
    ) -> "Bets":
        """Return the bets against a number of arms before the first batch."""
        limit, shares = np.full(arms, -np.log(delta)), odds.shares(untilted)
        wealth, path = np.tile(shares, (arms, 1)), np.zeros((2, arms))
        return cls(limit, capped, np.zeros(arms), np.zeros(arms), wealth, path, untilted, odds)

    def copy(self) -> "Bets":
        """Return bets that change independently of these."""
        arrays = self.log_m.copy(), self.scale.copy(), self.wealth.copy(), self.path.copy()
        return Bets(self.limit, self.capped, *arrays, self.untilted, self.odds)

    def carried(self, kept: Int[np.ndarray, " n"], delta: float) -> "Bets":
        """Return these bets for other arms: old ones by number, new ones (-1) at level delta."""
        new = Bets.against(len(kept), delta, self.capped, self.untilted, self.odds)
        old = kept >= 0
        for name in ("limit", "log_m", "scale", "wealth"):
            getattr(new, name)[old] = getattr(self, name)[kept[old]]
        return new

    @property
    def rejected(self) -> Bool[np.ndarray, " K"]:
        """The arms whose evidence has reached the limit."""
        return np.asarray(self.log_m >= self.limit)

    def place(
        self,
        z: Float[np.ndarray, " K"],
        speed: Float[np.ndarray, " K"],
        tested: Bool[np.ndarray, " K"],
        past: tuple[Float[np.ndarray, " K"], Float[np.ndarray, " K"]],
        expert: Float[np.ndarray, "K q"] | None = None,
    ) -> Float[np.ndarray, " K"]:
        """Bet on the scores of a batch and settle.

        Parameters
        ----------
        z : (K,) array
            The scores; large ones speak against an arm.
        speed : (K,) array
            1 / sqrt(v): the drift of the score for a gap of one sigma.
        tested : (K,) array of bool
            Arms that have a score; the others, and rejected ones, are left alone.
        past : pair of (K,) arrays
            What earlier pulls say about the same directions, for a sigma of 1: V = 1 / variance
            of the estimated gap, and S = V times the gap.
        expert : (K, q) array, optional
            Drifts of the scores that the expert expects, from earlier batches only.

        Returns
        -------
        (K,) array
            The score from which on an arm was to be rejected; infinite without a cap, NaN for
            an arm that was not tested.
        """
        import finalist.strategies.gauntlet.kernels as kernels

        caps, odds = np.full(len(z), np.nan), self.odds
        drifts = np.zeros((len(z), 0)) if expert is None else expert
        rows = (z, speed, *past, drifts, tested, self.limit)
        state = (self.log_m, self.scale, self.wealth, caps)

        def settle(some: slice) -> None:
            z, speed, drift, time, expert, tested, limit = (a[some] for a in rows)
            rule = (tested, self.capped, limit, odds.grid, odds.prior, odds.temper)
            kernels.bet(z, speed, drift, time, expert, *rule, *(a[some] for a in state))

        if len(z) < MANY:
            settle(slice(None))
        else:  # each arm has a test of its own: threads need not know of each other
            with ThreadPoolExecutor() as pool:
                list(pool.map(settle, (slice(k, k + MANY) for k in range(0, len(z), MANY))))
        return caps

    def place_along(
        self,
        S: Float[np.ndarray, "L t"],
        V: Float[np.ndarray, "L t"],
        at: Int[np.ndarray, " t"],
        before: tuple[Float[np.ndarray, " K"], Float[np.ndarray, " K"]],
        odds: Odds,
    ) -> None:
        """Bet on the looks of an epoch, one after the other, and settle.

        Parameters
        ----------
        S, V : (L, t) arrays
            What the epoch says up to each look, for a sigma of 1.
        at : (t,) array of int
            Of which arms.
        before : pair of (K,) arrays
            What was known before the epoch: S and V.
        """
        import finalist.strategies.gauntlet.kernels as kernels

        rule = (self.capped, self.limit, odds.grid, odds.prior, odds.temper)
        state = (self.log_m, self.scale, self.wealth, self.path, SMALLEST_STEP)

        def settle(some: slice) -> None:
            kernels.bet_along(S[:, some], V[:, some], at[some], *before, *rule, *state)

        if len(at) < MANY:
            settle(slice(None))
        else:
            with ThreadPoolExecutor() as pool:
                list(pool.map(settle, (slice(k, k + MANY) for k in range(0, len(at), MANY))))

    def out_along(self, V: Float[np.ndarray, "L t"], at: Int[np.ndarray, " t"]) -> list[int]:
        """Return at which looks arms were rejected, after `place_along` with the same V.

        An arm that was out before counts as out at the first.
        """
        out = (self.log_m[at] >= self.limit[at]).nonzero()[0]
        # The path of an arm ends at the look that rejects it.
        return [int((V[:, i] == self.path[1, at[i]]).argmax()) for i in out.tolist()]
