"""What the compiled loops of this folder share: how they are compiled, and what a pull returns.

Compiled code may be taken from a file of the same folder and from no other one, because the cache
on disk notices changes of these files only (`finalist.compiled.cache`).

A loop works on its `State`, a named tuple of arrays that are changed in place. The pieces that it
is made of take it as a whole, bind the arrays they need to names, and are inlined. In every state

- rule are the numbers of the strategy's rules, which stay the same: its sign is 1, or -1 where
  small rewards are good, and epsilon is how far the answer may be from the best;
- Z (K, r) are the arms, who (m,) the numbers of the candidates;
- weight (K,) is w, what a pull counts: (sigma / sigma_x)^2, or 0 for an arm that cannot be pulled;
- pulled (K,) are all pulls of each arm, means (K,) the estimates z'phi_hat of their means;
- counts and sums (K,) are pulls and rewards of each arm since the last exact computation;
- with a ridge, where A = ridge I + sum of w z z' over the pulls: cross (K, K) is z_i'A^-1 z_j,
  leverage (K,) its diagonal, and log_det (1,) is log(det A / det(ridge I)).
"""

import math
from typing import Any

from numba import njit

from finalist.compiled.cache import kept

#: Values closer than this, relatively, are ties.
TIE = 1e-9
#: Gaps below this part of the means are rounding.
ROUNDING = 64 * 2.0**-52
#: The first entries of `State.progress`: the pulls so far, and the winner or -1.
PULLS, WINNER = 0, 1

# NaN is not assumed away: where it arises, a comparison with it is false and decides nothing.
# Loops allocate no arrays, so that none are counted ("nrt" is numba's reference counting): with
# few arms, counting all arrays of a state would take longer than the pull.
_FLAGS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"nsz"}, "_nrt": False}
inlined = njit(inline="always", **_FLAGS)
#: For large pieces, compiled on their own: all in one place takes numba twice as long.
called = njit(**_FLAGS)
compiled = kept(**_FLAGS)
#: For what needs arrays of its own, called from a loop; such functions inherit "nrt" unless told.
allocating = njit(**{**_FLAGS, "_nrt": True})


def entry(piece):
    """Return a piece as a function to be called from outside."""
    return compiled(getattr(piece, "py_func", piece))  # without the compiler it is a function


def planner(choose, add):
    """Return `plan` of a loop that has to know a pull before it chooses the next one."""

    @compiled
    def plan(state, picks):
        """Fill `picks` with the next pulls without new rewards; all but the last are added."""
        for t in range(len(picks)):
            if t > 0:
                add(state, picks[t - 1])
            picks[t] = choose(state)

    return plan


def runner(choose, learn, judge):
    """Return `run` of a loop; `choose` is negative where Python has to do something first."""

    @compiled
    def run(state, truth, spread, binary, noise):
        """Pull until there is a winner or the noise is used up; return the number of pulls."""
        for t in range(len(noise)):
            arm = choose(state)
            if arm < 0:
                return t
            learn(state, arm, reward_of(arm, truth, spread, binary, noise[t]))
            judge(state)
            if state.progress[WINNER] >= 0:
                return t + 1
        return len(noise)

    return run


@inlined
def reward_of(arm, truth, spread, binary, noise):
    """Return the reward of a pull: mean plus noise times its spread, or `noise < mean`."""
    if binary:
        return 1.0 if noise < truth[arm] else 0.0
    return truth[arm] + spread[arm] * noise


@inlined
def move_estimate(s, arm, reward):
    """Update a ridge estimate by one reward; `s.cross` has z_i'A^-1 z_j from before the pull."""
    cross, means, w = s.cross, s.means, s.weight[arm]
    step = w * (reward - means[arm]) / (1.0 + w * s.leverage[arm])
    s.log_det[0] += math.log1p(w * s.leverage[arm])
    for i in range(len(means)):
        means[i] += cross[arm, i] * step
    s.counts[arm] += 1
    s.sums[arm] += reward
