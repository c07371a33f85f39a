"""How many pulls a pilot and an epoch have, by rules 3: from the past and what is missing."""

import math

from finalist.compiled.arrays import read_only
from finalist.inference.information import Information
from finalist.inference.least_squares import weights_of
from finalist.inference.quick import quick_information
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.targets import Comparisons

#: The first epoch: at most and at least so many times the rank, else a part of what is missing.
FIRST_MOST, FIRST_LEAST, LEAST, PART = 1.0, 0.5, 1.0, 0.15
#: Later ones: at most so many times the rank or the growth; otherwise a part of what is missing,
#: more of it where dozens of pulls may decide.
MOST, SHARE = 2.0, 1.0
FEW_MISSING = 0.3
#: Gaps count as at least so many standard errors in what is missing.
LEAST_GAP = 0.7


def missing_pulls(
    past: Past,
    wanted: Comparisons,
    limit: float,
    info: Information,
    pulls: float,
    lowered: float = 0.0,
    least: float = LEAST_GAP,
) -> float:
    """Return how many pulls like some others the slowest comparison still needs.

    A gap g adds g^2 / (2 v) to the log of the evidence, v = y'A^-1 y for a sigma of 1.

    Parameters
    ----------
    limit : float
        log(1 / level) of the bets.
    info : Information
        Of other pulls.
    pulls : float
        How many they were.
    lowered, least : float
        Gaps are lowered by so many standard errors, and are at least so many.
    """
    import finalist.strategies.gauntlet.choice_kernels as kernels

    fit = past.estimate()
    pairs = read_only(wanted.first), read_only(wanted.second)
    before = (
        read_only(fit.phi),
        read_only(fit.information.inverse_root),
        wanted.spanned(past.Z, fit.information),
        past.problem.sign / past.scale(fit),
        past.problem.epsilon / past.scale(fit),
    )
    batch = read_only(info.inverse_root), wanted.spanned(past.Z, info), float(pulls)
    rule = limit, lowered, least
    needed = kernels.needed(read_only(past.Z), *pairs, wanted.missing, *before, *batch, *rule)
    return float(needed)


def missing(past: Past, wanted: Comparisons, limit: float) -> float:
    """Return how many pulls like those of the last epoch, or of the pilot, are still missing.

    After a pilot gaps are the most uncertain, and count as smaller.
    """
    p = past.problem.precisions
    if past.last.any():  # not so after arms have changed
        info = past.last_info or quick_information(past.Z, weights_of(past.last, p))
        return missing_pulls(past, wanted, limit, info, int(past.last.sum()))
    info = quick_information(past.Z, weights_of(past.pooled.statistics.count, p))
    return missing_pulls(past, wanted, limit, info, past.pooled.pulls, 0.5, 0.5)


def epoch_size(past: Past, missing: float, growth: float, looks: bool, span: int) -> int:
    """Return the size of the next epoch by what is missing, unless another is asked for.

    `span` is the rank of the arms, or fewer pulls that can compare all that is still open.
    """
    r, done = span, past.pooled.pulls
    if past.batches == 0 and looks:
        return max(math.ceil(min(FIRST_MOST * r, max(FIRST_LEAST * r, PART * missing))), 1)
    if past.batches == 0:
        size = min(3.0 * r, max(1.2 * r, PART * missing))
    elif looks:
        most = max(MOST * r, SHARE * growth * done)
        part = FEW_MISSING if past.few else PART
        size = min(most, max(LEAST * r, 0.005 * done, part * missing))
    else:
        size = min(max(2.0 * r, growth * done), max(1.2 * r, 0.005 * done, PART * missing))
    # Where residuals have to tell sigma, there have to be some.
    return max(math.ceil(size), 2 * r + 1 if past.problem.noise.sigma is None else r)


def in_batches(past: Past, n: int, size: int | None) -> int:
    """Return n pulls as whole batches of a size that is asked for, if there is one."""
    if size is None:
        return n
    # A batch with a constant of its own is an epoch.
    return size if past.problem.batch_intercept else size * math.ceil(n / size)
