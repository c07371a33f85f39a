"""How a strategy that looks after every pull is simulated in a compiled loop.

A run keeps a state that rank-one updates change, computed anew every `REFRESH` pulls so that
rounding errors do not add up. Its `play` is one call:

    def play(self, rewards, limit):
        from finalist.strategies.per_pull.kernels import lingape as kernels

        def step(truth, noise):
            return kernels.run(self._state, truth, rewards.spread, rewards.binary, noise)

        return play_in_chunks(self, rewards, limit, step, self._refresh)

and its `record` of a single pull ends with `if refresh_due(self.verdict.pulls): self._refresh()`,
so that both ways make the same pulls. The compiled function pulls until there is a winner or the
noise is used up and returns the number of its pulls, which may also be smaller, even 0: it is
called again, after `step` has done in Python what it returned for. A pull has the reward
`truth[arm] + spread[arm] * noise[t]`, or `noise[t] < truth[arm]` if `rewards.binary`.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from finalist.errors import ProblemError
from finalist.inference.statistics import Statistics
from finalist.strategies.protocol import RewardSource, Verdict

#: Pulls between two exact computations of what rank-one updates change.
REFRESH = 5000
#: Noise drawn at once, little at first so that short runs waste none.
SMALLEST_CHUNK, CHUNK = 512, 65_536


@runtime_checkable
class Counted(Protocol):
    """A run that knows the pulls of each arm so far."""

    @property
    def verdict(self) -> Verdict:
        """What is certain now."""
        ...

    @property
    def counts(self) -> Int[np.ndarray, " K"]:
        """The pulls of each arm so far, a new array."""
        ...


def refresh_due(pulls: int) -> bool:
    """Tell whether the state is computed anew after so many pulls of the run."""
    return pulls % REFRESH == 0


def take_latest(
    rewards: Statistics, counts: Int[np.ndarray, " K"], sums: Float[np.ndarray, " K"]
) -> None:
    """Add the rewards since the last exact computation, and begin to count anew."""
    rewards.add_batch(counts, sums)
    counts[:], sums[:] = 0, 0.0


def with_latest(
    rewards: Statistics, counts: Int[np.ndarray, " K"], sums: Float[np.ndarray, " K"]
) -> Statistics:
    """Return rewards together with those since the last exact computation."""
    pooled = rewards.copy()
    pooled.add_batch(counts, sums)
    return pooled


def play_in_chunks(
    run: Counted,
    rewards: RewardSource,
    limit: int,
    step: Callable[[Float[np.ndarray, " K"], Float[np.ndarray, " n"]], int],
    refresh: Callable[[], None],
) -> Int[np.ndarray, " K"]:
    """Pull until there is a winner or `limit` pulls are made in all; return the pulls.

    The generator of the rewards is further on after the last pull, because noise is drawn ahead.

    Parameters
    ----------
    run : Counted
    rewards : RewardSource
    limit : int
        Pulls of the whole run after which to stop without a winner.
    step : callable
        `step(truth, noise)` makes up to `len(noise)` pulls and returns their number; the module
        says how.
    refresh : callable
        Computes the state of the run anew; called when `refresh_due`.

    Returns
    -------
    (K,) array of int
        The pulls of each arm made by this call.
    """
    truth, before = np.array(rewards.means, dtype=float), run.counts
    if len(truth) != len(before):
        raise ProblemError(f"the rewards are of {len(truth)} arms, not of {len(before)}.")
    while not run.verdict.decided and run.verdict.pulls < limit:
        n = run.verdict.pulls
        noise = rewards.noise(min(CHUNK, limit - n, max(n, SMALLEST_CHUNK)))
        while len(noise) > 0 and not run.verdict.decided:
            due = REFRESH - run.verdict.pulls % REFRESH
            used = step(truth, noise[:due])
            noise = noise[used:]
            if used > 0 and refresh_due(run.verdict.pulls):
                refresh()
    return np.asarray(run.counts - before)
