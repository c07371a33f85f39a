"""The compiled loop of LinGame; `kernels.game` has the game itself.

`run`, `plan`, `absorb`, `examine` and `possible` are called from outside.
"""

import math
from typing import NamedTuple

import numpy as np

from finalist.shapes import Float, Int
from finalist.strategies.per_pull.kernels.common import (
    PULLS,
    ROUNDING,
    TIE,
    WINNER,
    compiled,
    entry,
    inlined,
    move_estimate,
    planner,
    runner,
)
from finalist.strategies.per_pull.kernels.game import leader_of, play_round

#: One more entry of `State.progress`: the arms known to be pulled.
STARTED = 2
#: What `Rule.threshold` is.
PROVEN, DETERMINANT, HEURISTIC = 0, 1, 2


class Rule(NamedTuple):
    """Numbers of the game and its end; `sign` and `epsilon` are in `common`.

    Attributes
    ----------
    sigma, bias : float
        Size of the noise, and sqrt(eta) M.
    d, growth : float
        The dimension and L^2 / (eta d).
    confidence : float
        log(1/delta).
    threshold : int
        Which radius ends the run.
    practical : bool
        Whether the bonus is that of the authors' program, or that of the analysis.
    cap : float
        The largest gain of the analysis, (2 L M)^2 / (2 sigma^2).
    experts : float
        Pairs of an answer and an arm that can be pulled.
    """

    sign: float
    epsilon: float
    sigma: float
    bias: float
    d: float
    growth: float
    confidence: float
    threshold: int
    practical: bool
    cap: float
    experts: float


class State(NamedTuple):
    """What a run knows, changed in place.

    Attributes
    ----------
    rule, Z, weight, who, cross, leverage, means, log_det, counts, sums, pulled
        See `common`, where V is called A; the candidates are the answers.
    spread : (K, K) array
        (z_i - z_j)'V^-1 (z_i - z_j).
    tracked : (K,) array
        The weights that the pulls follow: the sum of the learner's.
    losses : (K + 1, K) array
        The learner's loss so far of every answer (row) and arm; row K is that of the answers
        that never looked best, which are all alike. Infinite for arms that cannot be pulled: such
        experts have no weight.
    rows : (m,) array of int
        The answers that once looked best, in the order in which they did, then others.
    mixability : (1,) array
        Delta of AdaHedge, the sum of the mixability gaps.
    progress : (4,) array of int
        Pulls so far, winner or -1, arms known to be pulled, number of answers in `rows`.
    weights, marginal, share, moved, common, gained, matrix, white
        Room for one step.
    """

    rule: Rule
    Z: Float[np.ndarray, "K r"]
    weight: Float[np.ndarray, " K"]
    who: Int[np.ndarray, " m"]
    cross: Float[np.ndarray, "K K"]
    leverage: Float[np.ndarray, " K"]
    spread: Float[np.ndarray, "K K"]
    means: Float[np.ndarray, " K"]
    log_det: Float[np.ndarray, " 1"]
    counts: Int[np.ndarray, " K"]
    sums: Float[np.ndarray, " K"]
    pulled: Int[np.ndarray, " K"]
    tracked: Float[np.ndarray, " K"]
    losses: Float[np.ndarray, "K+1 K"]
    rows: Int[np.ndarray, " m"]
    mixability: Float[np.ndarray, " 1"]
    progress: Int[np.ndarray, " 4"]
    weights: Float[np.ndarray, "K+1 K"]
    marginal: Float[np.ndarray, " K"]
    share: Float[np.ndarray, " K"]
    moved: Float[np.ndarray, " K"]
    common: Float[np.ndarray, " K"]
    gained: Float[np.ndarray, " K"]
    matrix: Float[np.ndarray, "r r"]
    white: Float[np.ndarray, "K r"]


@inlined
def radius_of(rule, t, log_det):
    """Return sqrt(2 sigma^2 beta(t, delta)), which multiplies ||y||_{V^-1}."""
    if rule.threshold == HEURISTIC:
        log = 2.0 * math.log1p(math.log(t))
    else:
        log = log_det if rule.threshold == DETERMINANT else rule.d * math.log1p(t * rule.growth)
    return rule.sigma * math.sqrt(log + 2.0 * rule.confidence) + rule.bias


@inlined
def choose(s):
    """Return the next arm and move the learner on: first every arm once, then C-tracking."""
    weight, pulled, tracked, marginal = s.weight, s.pulled, s.tracked, s.marginal
    K = len(pulled)
    best = s.progress[STARTED]
    while best < K and (pulled[best] > 0 or weight[best] == 0.0):
        best += 1
    s.progress[STARTED] = best
    if best < K:
        tracked[best] += 1.0
    else:
        play_round(s)
        least = math.inf
        for a in range(K):
            tracked[a] += marginal[a]
            if weight[a] > 0.0:
                least = min(least, pulled[a] - tracked[a])
        best = 0
        while pulled[best] - tracked[best] > least + TIE or weight[best] == 0.0:
            best += 1
    return best


@inlined
def shrink(s, arm):
    """Add one pull of an arm to V, by a rank-one update of everything that V^-1 is in."""
    cross, leverage, spread, row, w = s.cross, s.leverage, s.spread, s.share, s.weight[arm]
    scale = w / (1.0 + w * leverage[arm])
    for i in range(len(row)):
        row[i] = cross[arm, i]
    for i in range(len(row)):
        factor = row[i] * scale
        for j in range(len(row)):
            dot = row[i] - row[j]
            value = spread[i, j] - dot * dot * scale
            spread[i, j] = 0.0 if value < 0.0 else value  # NaN stays: it is not exact
            cross[i, j] -= factor * row[j]
        leverage[i] -= factor * row[i]
    s.pulled[arm] += 1
    s.progress[PULLS] += 1


@inlined
def learn(s, arm, reward):
    """Update the estimate, then V, by the reward of one pull."""
    move_estimate(s, arm, reward)
    shrink(s, arm)


@inlined
def beaten(s, radius, i, j, epsilon):
    """Tell whether arm j is less than epsilon better than arm i, for certain."""
    rule, means = s.rule, s.means
    gap = rule.sign * (means[i] - means[j]) + epsilon
    width = radius * math.sqrt(s.spread[i, j])
    return gap > width + ROUNDING * (abs(means[i]) + abs(means[j]))


@inlined
def judge(s):
    """Find out whether the candidate that looks best is good enough, for certain."""
    weight, who, pulled = s.weight, s.who, s.pulled
    radius = radius_of(s.rule, float(s.progress[PULLS]), s.log_det[0])
    leader = leader_of(s)
    sure = True
    for p in range(len(who)):
        j = who[p]
        sure = sure and (j == leader or beaten(s, radius, leader, j, s.rule.epsilon))
    for a in range(len(pulled)):
        sure = sure and (pulled[a] > 0 or weight[a] == 0.0)
    if sure:
        s.progress[WINNER] = leader


absorb, examine = entry(learn), entry(judge)
plan = planner(choose, shrink)
run = runner(choose, learn, judge)


@compiled
def possible(state, out):
    """Fill `out` with whether each arm is a candidate that can still be the best."""
    who, t = state.who, float(state.progress[PULLS])
    for a in range(len(out)):
        out[a] = False
    for i in who:
        out[i] = True
    if t > 0.0:
        radius = radius_of(state.rule, t, state.log_det[0])
        for i in who:
            for j in who:
                if i != j and beaten(state, radius, i, j, 0.0):
                    out[j] = False
