"""The strategy of a study, as the log replays it.

What was decided stays decided. The evidence is computed again, by the rules that the study began
with. Where it disagrees with the log, because rules were corrected or a strategy of somebody's own
has changed, the log is right: the strategy follows it if it can, and is left out if not. Then
nothing is called certain.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from finalist.errors import StudyError
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.shapes import Float, Int
from finalist.strategies import Batch, Run, Verdict
from finalist.strategies.abilities import (
    Changeable,
    Evidence,
    Evident,
    Following,
    Informed,
    Looking,
    Lossy,
    Rationing,
)

#: The evidence after each batch is kept for charts, up to so many arms.
MAX_ARMS = 1000


class Replay:
    """A run of a strategy that follows a log.

    Attributes
    ----------
    run : Run
        Not to be asked any more once `follows` is False.
    differs : list of int
        Batches after which this version would have decided otherwise.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.differs: list[int] = []
        self._logged: Verdict | None = None  # by the log, once the strategy cannot follow it

    @property
    def verdict(self) -> Verdict:
        """What the strategy has found, or the log if that disagrees."""
        return self.run.verdict if self._logged is None else self._logged

    @property
    def follows(self) -> bool:
        """Whether the strategy agrees with the log; if not, nobody may ask it."""
        return self._logged is None

    def require_run(self) -> None:
        """Refuse to go on with a strategy that could not follow the log."""
        if self._logged is not None:
            raise StudyError(
                f"the strategy of this study decides otherwise after batch {self.differs[0]} than "
                "its log says, so it cannot go on here. Go on with the version that began it, or "
                "start a new study."
            )

    def inform(self, before: Statistics) -> None:
        """Give the strategy what was measured before the study, if it can use that."""
        if not isinstance(self.run, Informed):
            raise StudyError(
                "this strategy cannot use earlier measurements; the default one can "
                "(strategy='gauntlet')."
            )
        self.run.inform(before)

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Give the strategy the rewards of a batch."""
        if self._logged is None:
            self.run.record(batch, rewards)

    def look(
        self, batch: Batch, rewards: Statistics, seen: Int[np.ndarray, " K"] | None = None
    ) -> bool:
        """Let the strategy decide by what has arrived of a batch, if that is enough."""
        run = self.run
        return self.follows and isinstance(run, Looking) and run.look(batch, rewards, seen)

    def lose(self, lost: Int[np.ndarray, " K"]) -> None:
        """Say how many pulls of each arm were lost in the batch recorded last."""
        if self._logged is None and lost.any() and isinstance(self.run, Lossy):
            self.run.lose(lost)

    def logged(self, body: Mapping[str, Any], *, several: bool) -> Verdict:
        """Return what a decision in the log says; where several win, they are those left."""
        winner, gone = body["winner"], set(body["rejected"])
        kept = {arm for arm in self.verdict.survivors if arm not in gone}
        if winner is None:
            return Verdict(None, tuple(sorted(kept)), body["pulls"])
        kept.add(winner)  # within epsilon of the best, also an arm that was ruled out may be
        winners = (winner, *sorted(kept - {winner})) if several else ()
        return Verdict(winner, tuple(sorted(kept)), body["pulls"], winners)

    def follow(self, logged: Verdict, batch: int) -> None:
        """Take a decision from the log, where the strategy would decide otherwise."""
        if self._logged is None:
            own = self.run.verdict
            if (own.winner, set(own.survivors)) == (logged.winner, set(logged.survivors)):
                return
            self.differs.append(batch)
            if isinstance(self.run, Following):
                self.run.follow(logged)
                return
        self._logged = logged

    def change(
        self, problem: Problem, kept: Int[np.ndarray, " n"], level: float, *, afresh: bool
    ) -> None:
        """Go on with other arms; all of them are possible again if all begin afresh."""
        if self._logged is None:
            self.run = changeable(self.run).changed(problem, kept, level, afresh=afresh)
            return
        left = set(self._logged.survivors)
        alive = [new for new, old in enumerate(kept) if afresh or old < 0 or old in left]
        self._logged = Verdict(None, tuple(alive), self._logged.pulls)

    def rebudget(self, budget: int | None) -> None:
        """Say that the budget is another one; most strategies leave it to others to stop there."""
        if self._logged is None and isinstance(self.run, Rationing):
            self.run.rebudget(budget)

    def evidence(self) -> Evidence | None:
        """Return the strategy's evidence against each arm; None if it has none."""
        return self.run.evidence() if self.follows and isinstance(self.run, Evident) else None

    def shares(self, K: int) -> Float[np.ndarray, " K"] | None:
        """Return the evidence from 0 to 1 for charts; None if there is none or K is too large."""
        found = None if K > MAX_ARMS else self.evidence()
        return None if found is None else np.asarray(found.share, dtype=np.float32)


def changeable(run: Run) -> Changeable:
    """Return a run that can go on with other arms, or refuse."""
    if not isinstance(run, Changeable):
        raise StudyError(
            "this strategy cannot go on with other candidates; the default strategy can. Or "
            "create a new study."
        )
    return run
