"""What strategies that look after every pull share: a run around a compiled loop.

A run has a state, a named tuple of arrays, that every pull updates. It is computed again from all
rewards every `REFRESH` pulls, so that rounding errors do not add up. What is done with it is
compiled: the module of `per_pull/kernels` that a run names has

    plan(state, picks)                              fill in the next pulls without new rewards
    absorb(state, arm, reward)                      update the state by one pull
    examine(state)                                  find out whether there is a winner
    run(state, truth, spread, binary, noise)        pull until there is, or the noise is used up

and the first two entries of `state.progress` are the pulls so far, and the winner or -1. `play`
makes the same pulls as `next` and `record` one by one.
"""

from abc import abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, TypeVar

import numpy as np

from finalist.errors import ProblemError
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.shapes import Float, Int, described
from finalist.strategies.protocol import (
    Batch,
    Declared,
    Playable,
    RewardSource,
    Verdict,
    check_next,
    check_record,
    first_named,
)

#: Pulls between two exact computations of what rank-one updates change.
REFRESH = 5000
#: Noise drawn at once, little at first so that short runs waste none.
SMALLEST_CHUNK, CHUNK = 512, 65_536
_TYPES: dict[str, Any] = {"Bool": np.bool_, "Float": np.float64, "Int": np.int64}
_State = TypeVar("_State")


class Thresholded(Declared):
    """A strategy with a choice of thresholds, one of which is known from experiments alone."""

    threshold: str

    @property
    def proven(self) -> bool:
        """Whether the probability of error is proven to be at most delta.

        Examples
        --------
        >>> import finalist as fl
        >>> fl.TrackAndStop().proven, fl.TrackAndStop(threshold="heuristic").proven
        (True, False)
        """
        return self.threshold != "heuristic"


def progress_of(candidates: Int[np.ndarray, " m"], *more: int) -> Int[np.ndarray, " n"]:
    """Return `progress` before the first pull: a single candidate has won, then further entries."""
    return np.array([0, candidates[0] if len(candidates) == 1 else -1, *more])


def blank(kind: type[_State], problem: Problem, **given: Any) -> _State:
    """Return a state before the first pull: what is given, else zeros of the shape of the field."""
    sizes = dict(zip("Kr", problem.arms.coordinates.shape, strict=True))
    for name, field in kind.__annotations__.items():
        if name not in given:
            numbers, shape = described(field)
            lengths = [sizes[size] if size in sizes else int(size) for size in shape]
            given[name] = np.zeros(lengths, dtype=_TYPES[numbers])
    return kind(**given)


class PerPullRun(Playable):
    """A strategy at work that decides after every pull.

    Parameters
    ----------
    state : named tuple
        The state before the first pull; a run without rewards may have to `refresh` it.
    """

    #: The module with the compiled loop, by name: a module itself could not be copied with a run.
    kernels: ClassVar[str]
    #: The arrays of the state that planning changes.
    planned: ClassVar[tuple[str, ...]]

    def __init__(self, problem: Problem, state: Any) -> None:
        self._problem, self._state = problem, state
        # All rewards up to the last exact computation; the state has those since then.
        self._rewards = Statistics.empty(len(problem.arms))

    @property
    def verdict(self) -> Verdict:
        """What is certain now; unless a run says more, no arm is ruled out before the end."""
        return first_named(self._winner, self._problem, self._pulls)

    @property
    def counts(self) -> Int[np.ndarray, " K"]:
        """The pulls of each arm so far."""
        return self.pooled().count

    def pooled(self) -> Statistics:
        """Return the sums of all rewards so far."""
        rewards = self._rewards.copy()
        rewards.add_batch(self._state.counts, self._state.sums)
        return rewards

    def next(self, size: int | None = None) -> Batch:
        """Return the next pull, or the next `size` pulls as they are without rewards between."""
        check_next(self.verdict, size)
        copies = {name: getattr(self._state, name).copy() for name in self.planned}
        picks = np.empty(size or 1, dtype=np.int64)
        note = self._plan(self._state._replace(**copies), picks)
        return Batch(np.bincount(picks, minlength=len(self._problem.arms)), note)

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Take over the rewards of any pulls, then look whether there is a winner."""
        check_record(self.verdict, len(self._problem.arms), batch, rewards)
        self._follow(batch)
        if batch.size == 1:
            arm = int(batch.counts.argmax())
            self._absorb(arm, float(rewards.mean[arm]))
        else:
            self._merge(rewards)
        self._loop.examine(self._state)
        if batch.size == 1 and self._pulls % REFRESH == 0:
            self._refresh()

    def play(self, rewards: RewardSource, limit: int) -> Int[np.ndarray, " K"]:
        """Pull until there is a winner or `limit` pulls are made in all; return the pulls.

        The generator of the rewards is further on after the last pull, because noise is drawn
        ahead.
        """
        truth, before = np.array(rewards.means, dtype=float), self.counts
        if len(truth) != len(before):
            raise ProblemError(f"the rewards are of {len(truth)} arms, not of {len(before)}.")
        while self._winner is None and self._pulls < limit:
            n = self._pulls
            noise = rewards.noise(min(CHUNK, limit - n, max(n, SMALLEST_CHUNK)))
            while len(noise) > 0 and self._winner is None:
                due = REFRESH - self._pulls % REFRESH
                used = self._pull(rewards, truth, noise[:due])
                noise = noise[used:]
                if used == due:
                    self._refresh()
        return np.asarray(self.counts - before)

    # ---- what strategies change ---------------------------------------------------------------

    def _plan(self, state: Any, picks: Int[np.ndarray, " n"]) -> Mapping[str, Any]:
        """Fill `picks`, with a state that may be changed; return the note of the batch."""
        self._loop.plan(state, picks)
        return {}

    def _follow(self, batch: Batch) -> None:
        """Do to the state what planning a batch did to its copy, where that has to last."""

    def _absorb(self, arm: int, reward: float) -> None:
        """Update the state by one pull."""
        self._loop.absorb(self._state, arm, reward)

    def _merge(self, rewards: Statistics) -> None:
        """Take over the rewards of several pulls."""
        self._rewards.merge(rewards)
        self._refresh()

    def _pull(
        self, rewards: RewardSource, truth: Float[np.ndarray, " K"], noise: Float[np.ndarray, " n"]
    ) -> int:
        """Pull until there is a winner or the noise is used up; return the number of pulls.

        It may be smaller, even 0, when something has to be done in Python first.
        """
        run = self._loop.run
        return int(run(self._state, truth, rewards.spread, rewards.binary, noise))

    @abstractmethod
    def _refresh(self) -> None:
        """Compute the state again from all rewards, so that rounding errors do not add up."""

    # ---- what they use ------------------------------------------------------------------------

    @property
    def _loop(self) -> Any:
        """The compiled functions; numba is loaded with the first run, not with the package."""
        return import_module(f"finalist.strategies.per_pull.kernels.{self.kernels}")

    @property
    def _pulls(self) -> int:
        return int(self._state.progress[0])

    @property
    def _winner(self) -> int | None:
        winner = int(self._state.progress[1])
        return None if winner < 0 else winner

    def _pool(self) -> Statistics:
        """Return all rewards, and begin to count those since now."""
        self._rewards = self.pooled()
        self._state.counts[:], self._state.sums[:] = 0, 0.0
        self._state.progress[0] = self._rewards.pulls
        return self._rewards
