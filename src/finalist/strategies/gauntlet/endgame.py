"""Where the gauntlet measures when a budget will end it, by rules 4: for the choice at the end.

With a budget the question is not when it is certain, but how good the choice will be when the last
pull is made. An epoch is planned for that: for the design of all pulls that are left under which
the arm that leads then is most likely the best (`design.end`). Only its first part is made; then it
is planned anew. Where that choice would hardly be wrong (with less than delta), epochs are planned
for certainty, as without a budget: it may come before the end, and saves the rest. Arms that are
ruled out are no rivals any more. All of it is chosen from the past, so evidence, ruling out and an
early end at delta are as they were.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from finalist.design.end import end_design, errors_at_end, regular
from finalist.design.exchange import greedy_pulls
from finalist.inference.information import Information
from finalist.inference.least_squares import Estimate, weighted_rows
from finalist.problem.budget import in_cost, prices_of
from finalist.shapes import Float, Int
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.pilot import spans
from finalist.strategies.gauntlet.planner import MANY, estimable
from finalist.strategies.gauntlet.reserve import Reserve
from finalist.strategies.gauntlet.sizes import in_batches
from finalist.strategies.static.static import static_design

#: The most of the budget that a pilot takes, once it spans the arms.
MOST = 0.5
#: The budget is spent in about so many epochs.
EPOCHS = 20
#: The rivals that are closest, in standard errors.
RIVALS = 30
#: Leads are taken for less certain than they are: leader and rivals are maxima of estimates.
DOUBT = 1.5
#: What the past says nothing of is so many times as uncertain as the most uncertain lead.
UNKNOWN = 10.0
#: The part of a design that is spread over all arms, so that none is given up by chance.
SPREAD = 0.1
#: An epoch of so many times the rank begins with the whole pulls that the design has for each arm.
ROUNDED = 2
#: It also spans whatever is compared, so that it is tested, where certainty may be within reach:
#: where the choice at the end is wrong with at most so many times delta.
WITHIN_REACH = 10.0


def has_end(past: Past) -> bool:
    """Return whether epochs are planned for the end of a budget."""
    ends = past.problem.rules.endgame and past.problem.budget is not None
    return ends and pulls_left(past) > 0


def pulls_left(past: Past) -> int:
    """Return about how many pulls are left of the budget, or of what arms can give."""
    return max(min(int(left_of(past) / price_of_pull(past)), int(past.room().sum())), 0)


def left_of(past: Past) -> float:
    """Return what is left of the budget, in pulls or in cost."""
    budget = past.problem.budget
    assert budget is not None
    spent = past.pooled.statistics.count + past.lost
    return float(budget - past.gone - spent @ prices_of(past.problem))


def price_of_pull(past: Past) -> float:
    """Return what a pull takes of the budget: as so far, or on average over the arms."""
    problem, made = past.problem, past.pooled.statistics.count + past.lost
    if not in_cost(problem):
        return 1.0
    shares = made if made.any() else problem.arms.measurable.astype(float)
    return float(shares @ problem.costs / shares.sum())


def pilot_within(past: Past, more: int) -> int:
    """Return how many more pulls a pilot takes of those it would, once it spans the arms."""
    if not has_end(past) or not spans(past) or past.pooled.pulls < past.arms.rank:
        return more
    budget = past.problem.budget
    assert budget is not None
    most = math.floor(MOST * budget / price_of_pull(past))
    return max(min(more, most - past.pooled.pulls), 0)


def epoch_size(past: Past, size: int | None) -> int:
    """Return the size of the next epoch: whole batches of a size that is asked for."""
    budget, left, r = past.problem.budget, pulls_left(past), past.arms.rank
    assert budget is not None
    pulls = budget / price_of_pull(past)
    # Where residuals have to tell sigma, there have to be some.
    least = 2 * r + 1 if past.problem.noise.sigma is None else r
    n = in_batches(past, max(math.ceil(pulls / EPOCHS), least), size)
    return max(left if left < 1.5 * n else n, 1)


def within_budget(past: Past, n: int) -> int:
    """Return a size that leaves no rest of the budget that is too small for an epoch."""
    left = pulls_left(past)
    return left if left < n + past.arms.rank else n


@dataclass(frozen=True, eq=False)
class Ending:
    """What the pulls that are left are for, and how they would be shared.

    Attributes
    ----------
    reserve : Reserve or None
        What is tested with the next epoch.
    needed : (m, r) array
        The arm that would be taken now minus each other survivor.
    W : (K, r) array
        Arms in units of their noise.
    A : (r, r) array
        The design matrix of all pulls so far.
    weights, M : (K,) and (r, r) arrays
        The design (`design.end`), in pulls.
    left : float
        The pulls that are left with this design.
    error : float
        How likely it seems that the choice at the end is wrong: the sum over rivals.
    """

    past: Past
    reserve: Reserve | None
    needed: Float[np.ndarray, "m r"]
    W: Float[np.ndarray, "K r"]
    A: Float[np.ndarray, "r r"]
    weights: Float[np.ndarray, " K"]
    M: Float[np.ndarray, "r r"]
    left: float
    error: float

    @classmethod
    def of(cls, past: Past, survivors: Sequence[int], reserve: Reserve | None) -> "Ending":
        """Plan the end from the past; arms that are ruled out are no rivals."""
        problem, fit = past.problem, past.estimate()
        W = weighted_rows(past.Z, problem.precisions)
        A = _known(past, W, reserve)
        epsilon = problem.epsilon / past.scale(fit)
        Y, leads, variances = _rivals(past, fit, np.array(survivors))
        weights, M, left = _shared(past, W, A, (Y, leads, variances), _start(past))
        at_end = np.linalg.inv(regular(A, W, left) + (W.T * (left * weights)) @ W)
        after = np.add.reduce((Y @ at_end) * Y, axis=1)
        error = float(errors_at_end(leads, variances, after, epsilon).sum())
        best = int(survivors[int(past.means(fit)[list(survivors)].argmax())])
        needed = past.Z[best] - past.Z[[x for x in survivors if x != best]]
        return cls(past, reserve, needed, W, A, weights, M, left, error)

    def epoch(self, n: int) -> tuple[Int[np.ndarray, " K"], Information, Float[np.ndarray, "r r"]]:
        """Return the counts of the next n pulls, what they can estimate, and M.

        Whole pulls for each arm, as far as the design has them; the rest one by one, as if those
        after them followed the design. Where certainty may be within reach, a long epoch spans what
        is compared, so that all of it is tested.
        """
        past, room, weights = self.past, self.past.room(), self.weights
        later = max(self.left - n, 0.0)
        counts: Int[np.ndarray, " K"] = np.zeros(len(weights), dtype=np.int64)
        long = n > ROUNDED * past.arms.rank
        if long:
            counts = np.minimum(np.floor(n * weights).astype(np.int64), room)
        after = regular(self.A, self.W, later + n)
        after = after + (self.W.T * (later * weights + counts)) @ self.W
        rest = n - int(counts.sum())
        rows = self.W
        if in_cost(past.problem):  # by the gain for each unit of cost
            rows = rows * np.sqrt(price_of_pull(past) / past.problem.costs)[:, None]
        some = _telling(rows, self.M, after, room - counts)
        more = greedy_pulls(rows[some], rest, self.M, after, (room - counts)[some])
        counts += np.bincount(some[more], minlength=len(counts))
        p, start = past.problem.precisions, None if self.reserve is None else self.reserve.worth
        if start is not None and p is not None:
            start = start * p
        tested = long and self.error < WITHIN_REACH * past.problem.delta
        needed = self.needed if tested else self.needed[:0]
        counts, info = estimable(past.Z, counts, needed, room, p, start, quick=True)
        return counts, info, self.M


def shares_of_rest(
    past: Past, fit: Estimate, survivors: Sequence[int], left: float
) -> Float[np.ndarray, " K"]:
    """Return how often each arm would be pulled with what is left, by all results, for an outlook.

    It starts from what was measured so far instead of a G-optimal design, and is made at any time,
    also inside an epoch.
    """
    W = weighted_rows(past.Z, past.problem.precisions)
    room, made = past.room() > 0, fit.statistics.count
    start = SPREAD * room / max(room.sum(), 1) + (1.0 - SPREAD) * made / max(made.sum(), 1)
    start = np.where(room, start, 0.0)
    if not start.any() or len(survivors) <= past.problem.top:
        return np.asarray(left * start / max(start @ prices_of(past.problem), 1e-300))
    rivals = _rivals(past, fit, np.array(survivors))
    weights, _, pulls = _shared(past, W, _design(fit), rivals, start / start.sum(), left)
    return pulls * weights


def _shared(
    past: Past,
    W: Float[np.ndarray, "K r"],
    A: Float[np.ndarray, "r r"],
    rivals: tuple[Float[np.ndarray, "n r"], Float[np.ndarray, " n"], Float[np.ndarray, " n"]],
    start: Float[np.ndarray, " K"],
    left: float | None = None,
) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, "r r"], float]:
    """Return the design of the pulls that are left, M, and how many pulls these are.

    With costs, what is shared is cost: a unit of it buys 1 / cost pulls.
    """
    epsilon = past.problem.epsilon / past.scale(past.estimate())
    if not in_cost(past.problem):
        pulls = float(pulls_left(past)) if left is None else left
        return *end_design(W, A, *rivals, pulls, start, epsilon), pulls
    prices, money = past.problem.costs, left_of(past) if left is None else left
    per_unit = W / np.sqrt(prices)[:, None]
    spent = start * prices / (start @ prices)
    weights, M = end_design(per_unit, A, *rivals, max(money, 0.0), spent, epsilon)
    bought = weights / prices
    return bought / bought.sum(), M, max(money, 0.0) * float(bought.sum())


def _known(
    past: Past, W: Float[np.ndarray, "K r"], reserve: Reserve | None
) -> Float[np.ndarray, "r r"]:
    """Return the design matrix of all pulls so far, also of those whose results are to come."""
    A = _design(past.estimate())
    for worth in (past.pending, None if reserve is None else reserve.worth):
        if worth is not None:
            A = A + (W.T * worth) @ W
    return np.asarray(A)


def _design(fit: Estimate) -> Float[np.ndarray, "r r"]:
    """Return the design matrix of an estimate."""
    root = fit.information.root @ fit.information.basis.T
    return np.asarray(root.T @ root)


def _rivals(
    past: Past, fit: Estimate, survivors: Int[np.ndarray, " m"]
) -> tuple[Float[np.ndarray, "n r"], Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return the arms that would be taken minus their closest rivals, the leads, and how sure."""
    problem, Z = past.problem, past.Z
    means = past.means(fit) / past.scale(fit)
    order = survivors[np.argsort(-means[survivors], kind="stable")]
    inside, outside = order[: problem.top], order[problem.top :]
    first, second = (part.ravel() for part in np.meshgrid(inside, outside, indexing="ij"))
    Y, leads = Z[first] - Z[second], means[first] - means[second]
    variances = DOUBT * fit.information.variances(Y)
    known = np.isfinite(variances)  # of others the past says nothing
    leads = np.where(known, leads, 0.0)
    variances = np.where(known, variances, UNKNOWN * variances[known].max(initial=1.0))
    some = np.argsort(leads / np.sqrt(variances), kind="stable")[:RIVALS]
    return Y[some], leads[some], variances[some]


def _telling(
    rows: Float[np.ndarray, "K r"],
    M: Float[np.ndarray, "r r"],
    A: Float[np.ndarray, "r r"],
    room: Int[np.ndarray, " K"],
) -> Int[np.ndarray, " n"]:
    """Return the arms among which pulls are chosen: of many those whose next pull tells most."""
    some = np.flatnonzero(room > 0)
    if len(some) <= MANY:
        return some
    images = rows[some] @ np.linalg.inv(A)
    gains = np.add.reduce((images @ M) * images, axis=1)
    gains /= 1.0 + np.add.reduce(images * rows[some], axis=1)
    return np.sort(some[np.argsort(-gains, kind="stable")[:MANY]])


def _start(past: Past) -> Float[np.ndarray, " K"]:
    """Return a design to start from: the last epoch, and something of what tells of all arms."""
    sigma, last, room = past.problem.noise.sigma, past.last, past.room()
    each = sigma if isinstance(sigma, tuple) else 1.0
    start = static_design(past.arms, "g", each).weights
    if len(start) > MANY:  # the design is of few of them, and updates leave 0 what is 0
        start = 0.5 * start + 0.5 / len(start)
    if last.any():
        start = (1.0 - SPREAD) * last / last.sum() + SPREAD * start
    start = np.where(room > 0, start, 0.0)
    return np.asarray(start / start.sum() if start.any() else (room > 0) / (room > 0).sum())
