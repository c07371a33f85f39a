"""Evidence that results bend away from a linear model: valid at any time, block after block.

**Blocks.** The rows X (arms in the model) and B (the columns of `bends`) of a block are fixed by
the past. Let R be the projection onto the complement of the columns of X, e = R r the residuals of
its rewards, nu its degrees of freedom. Under the model e is N(0, sigma^2 R), whatever theta is, and
however X and B came from the past. With G = B'RB, g = B'e / sigma, and a prior N(m, S) of the bends
beta / sigma that is fixed by the past, the likelihood ratio of e under the mixture is

    E = integral of exp(beta'g - beta'G beta / 2) dN(m, S)(beta)
      = det(I + S G)^-1/2 exp(m'g - m'Gm / 2 + v'(S^-1 + G)^-1 v / 2),   v = g - Gm.

For each beta, beta'g is a linear function of the rewards with weights that are orthogonal to the
columns of X, so that exp(...) has mean 1 under normal noise, and at most 1 under noise that is
sub-Gaussian with this sigma: E is an e-value for both. With sigma unknown and normal noise the
ratio of the densities of e / |e| is taken, the integral of both over d sigma / sigma: with a = e'(I
+ BSB')^-1 e, b = e'(I + BSB')^-1 Bm, d = m'B'(I + BSB')^-1 Bm (all in the complement),

    E = det(I + S G)^-1/2 exp(-d / 2) (a / |e|^2)^(-nu / 2) G_nu(b / sqrt(a)),
    G_nu(t) = E exp(t chi_nu).

Given the past E has mean 1, or at most 1. So products over blocks, and weighted sums of such
products, are nonnegative (super)martingales from 1, and by Ville's inequality (1939) ever reach 1 /
alpha with probability at most alpha. `BendEvidence` is the sum over bends one by one and all at
once (`Bends.weights`); m and S are the posterior by what was known before the block.

**The posterior.** With a flat prior of theta, and beta ~ N(0, h^2 sigma^2), everything follows from
the same G, g and |e|^2 of all results together: the Bayes factor of a bend is det(I + h^2 G)^-1/2
exp(g'(G + I/h^2)^-1 g / 2), for unknown sigma (|e|^2 / (|e|^2 - sigma^2 g'(G + I/h^2)^-1 g))^(nu /
2). Under any design and any stopping a posterior is what it says, on average over its prior. It is
no bound for each bend.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from finalist.inference.bends import Bends
from finalist.inference.residuals import Cells, Residuals, centred_rows
from finalist.problem import Problem
from finalist.shapes import Float

#: The probability with which a model that is right is called wrong, at most.
ALARM = 0.05

#: Nodes of the integral over chi.
NODES = 200


@dataclass(eq=False)
class BendEvidence:
    """The evidence that a model is wrong, block after block.

    Attributes
    ----------
    log_m : (c,) array
        The log of the evidence of each bend alone, and last of all at once.
    alarm : bool
        Whether the model has been shown to be wrong; that stays.
    """

    problem: Problem
    bends: Bends
    log_m: Float[np.ndarray, " c"]
    alarm: bool = False

    @classmethod
    def of(cls, problem: Problem, before: "BendEvidence | None" = None) -> "BendEvidence | None":
        """Begin; None if nothing is checked, or there is nothing to check.

        With other arms there are other bends; they begin with the evidence that there was.
        """
        if problem.check == 0.0:
            return None
        bends = Bends.of(problem.arms)
        if bends.count == 0:
            return None
        start = 0.0 if before is None else before.log_total
        alarm = before is not None and before.alarm
        return cls(problem, bends, np.full(bends.count + 1, start), alarm)

    def copy(self) -> "BendEvidence":
        """Return one that changes independently."""
        return replace(self, log_m=self.log_m.copy())

    def add(self, block: Cells, before: Cells) -> None:
        """Take a block, whose rows were fixed by what was known before it."""
        problem, Z = self.problem, self.problem.arms.coordinates
        h, scale = self.size(before)
        found, known = (Residuals.of(Z, self.bends, cells) for cells in (block, before))
        self.log_m = self.log_m + log_e(found, known, h, problem.scale, scale)
        self.alarm = self.alarm or (self.strong and problem.misspecification == 0.0)

    @property
    def log_total(self) -> float:
        """The log of M, which a model that is right rarely lets reach 1 / `ALARM`."""
        top = float(self.log_m.max())
        return top + float(np.log(self.bends.weights @ np.exp(self.log_m - top)))

    @property
    def strong(self) -> bool:
        """Whether there is as much evidence as an alarm takes.

        Where means may be off the model, a model that is right within that may reach it too: then
        there is no alarm.
        """
        return bool(self.log_total >= -np.log(ALARM))

    @property
    def strongest(self) -> str:
        """The bend for which there is most evidence."""
        alone = self.log_m[:-1]
        return self.bends.names[int(alone.argmax())]

    def size(self, cells: Cells) -> tuple[float, float]:
        """Return how large bends may be by some results, in sigma, and sigma."""
        problem, Z = self.problem, self.problem.arms.coordinates
        scale = problem.scale
        if scale is None:
            scale = Residuals.of(Z, self.bends, cells).scale() or 1.0
        if len(cells.arms) == 0:
            return 1.0, scale
        X, y = centred_rows(Z, cells)
        means = Z @ np.linalg.lstsq(X, y, rcond=None)[0]
        return self.bends.size(means, scale, problem.epsilon), scale


def log_e(
    block: Residuals,
    before: Residuals,
    h: float,
    sigma: float | None,
    scale: float,
) -> Float[np.ndarray, " c"]:
    """Return the log of the e-value of a block, for each bend alone and last for all at once.

    Parameters
    ----------
    block, before : Residuals
        Of the block, and of what was known when it was fixed.
    h : float
        How large bends may be, by the past.
    sigma : float or None
        Known, or not; then the noise is normal.
    scale : float
        Sigma by the past, in which its bends are counted.
    """
    G, g = block.G, block.g
    words = block, h, sigma, scale
    parts = [slice(i, i + 1) for i in range(len(g))]
    alone = [_log_e(G[i, i], g[i], before.G[i, i], before.g[i], *words) for i in parts]
    return np.array([*alone, _log_e(G, g, before.G, before.g, *words)])


def _log_e(
    G: Float[np.ndarray, "q q"],
    g: Float[np.ndarray, " q"],
    G0: Float[np.ndarray, "q q"],
    g0: Float[np.ndarray, " q"],
    block: Residuals,
    h: float,
    sigma: float | None,
    scale: float,
) -> float:
    needed = 1 if sigma is not None else 2
    if block.freedom < needed or (sigma is None and not block.squares > 0.0):
        return 0.0
    prior = G0 + np.eye(len(g)) / h**2  # S^-1
    m = np.linalg.solve(prior, g0 / scale) if scale > 0.0 else np.zeros(len(g))
    both = prior + G
    half = 0.5 * (np.linalg.slogdet(both)[1] - np.linalg.slogdet(prior)[1])
    if sigma is not None:
        s = g / sigma
        v = s - G @ m
        found = float(m @ s - 0.5 * m @ G @ m + 0.5 * v @ np.linalg.solve(both, v) - half)
    else:
        unit = np.sqrt(block.squares)  # e / |e| alone counts
        s, Gm = g / unit, G @ m
        a = 1.0 - float(s @ np.linalg.solve(both, s))
        b = float(s @ m - s @ np.linalg.solve(both, Gm))
        d = float(m @ Gm - Gm @ np.linalg.solve(both, Gm))
        if not a > 0.0:
            return 0.0
        found = -half - 0.5 * d - 0.5 * block.freedom * np.log(a)
        found += log_mean_exp_chi(b / np.sqrt(a), block.freedom)
    return found if np.isfinite(found) else 0.0


def log_mean_exp_chi(t: float, nu: int) -> float:
    """Return log E exp(t chi_nu), by Gauss-Legendre quadrature around the largest part.

    Examples
    --------
    >>> round(log_mean_exp_chi(0.0, 5), 12)
    0.0
    >>> from scipy.stats import chi
    >>> mean = chi(4).expect(lambda c: np.exp(1.5 * c), ub=20.0)
    >>> bool(np.isclose(log_mean_exp_chi(1.5, 4), np.log(mean), rtol=1e-9))
    True
    """
    from scipy.special import gammaln

    # The log of the integrand, (nu - 1) log c - c^2 / 2 + t c, is largest at its only zero slope,
    # and at least as curved as c^2 / 2: beyond 12 from there it is below exp(-72) of that.
    top = 0.5 * (t + np.sqrt(t * t + 4.0 * max(nu - 1, 0)))
    low, high = max(top - 12.0, 0.0), max(top, 0.0) + 12.0
    nodes, weights = _legendre()
    c = low + (high - low) * 0.5 * (nodes + 1.0)
    with np.errstate(divide="ignore"):
        logs = (nu - 1) * np.log(c) - 0.5 * c * c + t * c
    largest = float(logs.max())
    total = float(weights @ np.exp(logs - largest)) * (high - low) * 0.5
    constant = (0.5 * nu - 1.0) * np.log(2.0) + gammaln(0.5 * nu)
    return float(largest + np.log(total) - constant)


@cache
def _legendre() -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    return np.polynomial.legendre.leggauss(NODES)
