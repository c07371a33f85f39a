"""The compiled loop of track-and-stop.

`plan`, `absorb`, `examine`, `follow`, `optimal` and `run` are called from outside.
"""

import math
from typing import NamedTuple

import numpy as np

from finalist.shapes import Float, Int
from finalist.strategies.per_pull.kernels.common import (
    PULLS,
    ROUNDING,
    WINNER,
    compiled,
    entry,
    inlined,
    runner,
)

#: Newton's method stops when a step is smaller than this, relatively, or after so many.
TOLERANCE, STEPS = 1e-14, 60
#: One more entry of `State.progress`: the arms without any reward.
UNSEEN = 2


class Rule(NamedTuple):
    """Numbers of the rules; `sign` and `epsilon` are in `common`.

    Attributes
    ----------
    cumulative : bool
        C-tracking instead of D-tracking.
    proven : bool
        Whether the threshold is 4 log(4 + log(t/2)) + confidence, or log(1 + log t) + confidence.
    confidence : float
        The part of the threshold that stays the same.
    variance : float
        sigma^2.
    """

    sign: float
    epsilon: float
    cumulative: bool
    proven: bool
    confidence: float
    variance: float


class State(NamedTuple):
    """What a run knows, changed in place.

    Attributes
    ----------
    rule : Rule
    means : (K,) array
        The mean reward of each arm.
    seen : (K,) array of int
        The rewards in these means.
    pulled : (K,) array of int
        The pulls; more than `seen` only while a batch is planned.
    total : (K,) array
        For C-tracking: the sum of the allocations of all times before.
    progress : (3,) array of int
        Pulls so far, winner or -1, arms without any reward.
    weights, ratio : (K,) arrays
        Room for one step.
    """

    rule: Rule
    means: Float[np.ndarray, " K"]
    seen: Int[np.ndarray, " K"]
    pulled: Int[np.ndarray, " K"]
    total: Float[np.ndarray, " K"]
    progress: Int[np.ndarray, " 3"]
    weights: Float[np.ndarray, " K"]
    ratio: Float[np.ndarray, " K"]


@inlined
def leader(sign, means):
    """Return the arm that looks best, the first of several."""
    best = 0
    for a in range(len(means)):
        if sign * means[a] > sign * means[best]:
            best = a
    return best


@inlined
def weigh(s):
    """Write the optimal proportions of pulls for these means (Garivier and Kaufmann 2016, Thm. 5).

    With c_a = (gap_a / smallest gap)^2 they are proportional to x_a = z / (c_a - z), and to 1 for
    the best arm, where z solves sum_a x_a^2 = 1. The sum is increasing and convex in z, at least
    1 at z = 1/2: Newton's method comes down from there without a detour.
    """
    rule, means, weights, ratio = s.rule, s.means, s.weights, s.ratio
    K = len(means)
    if s.progress[UNSEEN] > 0:
        for a in range(K):
            weights[a] = 1.0 / K
        return
    best = leader(rule.sign, means)
    smallest = math.inf
    for a in range(K):
        gap = rule.sign * (means[best] - means[a]) + rule.epsilon
        ratio[a] = gap
        if a != best and gap < smallest:
            smallest = gap
    for a in range(K):
        if ratio[a] > smallest:  # also when the smallest gap is 0: then infinitely larger
            part = ratio[a] / smallest
            ratio[a] = part * part
        else:
            ratio[a] = 1.0
    z = 0.5
    for _ in range(STEPS):
        value, slope = -1.0, 0.0
        for a in range(K):
            if a != best:
                scale = 1.0 / (ratio[a] - z)
                x = z * scale
                value += x * x
                slope += x * (1.0 + x) * scale
        change = 0.5 * value / slope
        z -= change
        if change <= TOLERANCE * z:
            break
    weights[best] = 1.0
    whole = 1.0
    for a in range(K):
        if a != best:
            weights[a] = z / (ratio[a] - z)
            whole += weights[a]
    for a in range(K):
        weights[a] /= whole


@inlined
def project(weights, floor, out):
    """Write the closest proportions, in the largest difference, that are at least `floor`.

    What is below is raised; all others give the same amount for it, as far as they have it.
    """
    level, K = 0.0, len(weights)
    for _ in range(K):
        kept, free = 1.0, 0.0
        for a in range(K):
            if weights[a] - level > floor:
                kept -= weights[a]
                free += 1.0
            else:
                kept -= floor
        # sum over the free of (w - level) is what the raised ones leave
        after = -kept / free if free > 0.0 else level
        if after <= level:
            break
        level = after
    for a in range(K):
        left = weights[a] - level
        out[a] = left if left > floor else floor


@inlined
def accumulate(s, t):
    """Add the allocation of time t, kept away from 0, to the sum of C-tracking."""
    total, ratio = s.total, s.ratio
    K = len(total)
    project(s.weights, 0.5 / math.sqrt(float(K) * K + t), ratio)
    for a in range(K):
        total[a] += ratio[a]


@inlined
def choose(s):
    """Return the next arm; `weights` are the optimal proportions (C- and D-tracking, Sect. 3.1)."""
    pulled, total, weights, cumulative = s.pulled, s.total, s.weights, s.rule.cumulative
    t, K = s.progress[PULLS], len(pulled)
    if cumulative:
        accumulate(s, t)
    rare = 0
    for a in range(K):
        if pulled[a] < pulled[rare]:
            rare = a
    if pulled[rare] == 0 or (not cumulative and pulled[rare] < math.sqrt(t) - 0.5 * K):
        return rare
    arm, most = 0, -math.inf
    for a in range(K):
        lack = (total[a] if cumulative else t * weights[a]) - pulled[a]
        if lack > most:
            arm, most = a, lack
    return arm


@inlined
def weighed(s):
    """Return the next arm by the optimal proportions for the means now."""
    weigh(s)
    return choose(s)


@inlined
def learn(s, arm, reward):
    """Update the mean of an arm by one reward."""
    seen, means, progress = s.seen, s.means, s.progress
    if seen[arm] == 0:
        progress[UNSEEN] -= 1
    seen[arm] += 1
    s.pulled[arm] += 1
    progress[PULLS] += 1
    means[arm] += (reward - means[arm]) / seen[arm]


@inlined
def threshold(rule, t):
    """Return beta(t, delta) (Kaufmann and Koolen 2021), or one without proof."""
    if rule.proven:
        return 4.0 * math.log(4.0 + math.log(0.5 * t)) + rule.confidence
    return math.log1p(math.log(t)) + rule.confidence


@inlined
def judge(s):
    """Find out whether the arm that looks best beats every other one (Sect. 3.2)."""
    rule, means, seen, progress = s.rule, s.means, s.seen, s.progress
    if progress[UNSEEN] > 0:
        return
    best = leader(rule.sign, means)
    twice = 2.0 * rule.variance * threshold(rule, progress[PULLS])
    if not twice >= 0.0:
        return
    for b in range(len(means)):
        if b != best:
            gap = rule.sign * (means[best] - means[b]) + rule.epsilon
            gap -= ROUNDING * (abs(means[best]) + abs(means[b]))
            spread = 1.0 / seen[best] + 1.0 / seen[b]
            if not (gap > 0.0 and gap * gap > twice * spread):  # false for NaN
                return
    progress[WINNER] = best


@compiled
def optimal(state):
    """Write the optimal proportions for the means now to `state.weights`."""
    weigh(state)


@compiled
def plan(state, picks):
    """Fill `picks` with the next pulls without new rewards, and count them in the state."""
    weigh(state)
    for t in range(len(picks)):
        picks[t] = choose(state)
        state.pulled[picks[t]] += 1
        state.progress[PULLS] += 1


@compiled
def follow(state, pulls):
    """Add the allocations of so many pulls without new rewards to the sum of C-tracking."""
    if state.rule.cumulative:
        weigh(state)
        for t in range(pulls):
            accumulate(state, state.progress[PULLS] + t)


absorb, examine = entry(learn), entry(judge)
run = runner(weighed, learn, judge)
