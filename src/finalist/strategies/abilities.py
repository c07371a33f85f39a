"""What a run may be able to do besides: ours inherit it, those of others just have the methods."""

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from finalist.inference.least_squares import Estimate
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.shapes import Bool, Float, Int
from finalist.strategies.protocol import Batch, Run, Verdict


@runtime_checkable
class Sized(Protocol):
    """A run whose tests need batches of some size."""

    @property
    def least_size(self) -> int:
        """The smallest batch that can test every survivor."""
        ...

    @property
    def own_size(self) -> int:
        """The size of the next batch unless another is asked for."""
        ...


@runtime_checkable
class Looking(Protocol):
    """A run that looks at the evidence also while results of a batch arrive."""

    @property
    def decided_at(self) -> int | None:
        """The number of results after which it was decided; None before that."""
        ...

    @property
    def until_end(self) -> int:
        """Pulls that must be made before the question may change."""
        ...

    def until_test(self, batch: Batch | None = None) -> int:
        """Return how many pulls after a batch, or from now, nothing is tested."""
        ...

    def look(
        self, batch: Batch, rewards: Statistics, seen: Int[np.ndarray, " K"] | None = None
    ) -> bool:
        """Decide by what has arrived of a batch, if that is enough; return whether it is.

        Parameters
        ----------
        batch : Batch
            With the counts of what has arrived.
        seen : (K,) array of int, optional
            The counts of an earlier look at the same results, which need not be taken again.
        """
        ...


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence against "this arm is best", for every arm.

    Attributes
    ----------
    share : (K,) array
        log M / log(1/delta) in [0, 1]; an arm is rejected at 1.
    p_value : (K,) array
        1 / M, valid at any time; never below the level at which bets end: delta, or its
        share for each claim (delta / 2 with epsilon, less by pairs).
    rival : (K,) array of int
        The arm that last spoke against each; -1 if none has.
    """

    share: Float[np.ndarray, " K"]
    p_value: Float[np.ndarray, " K"]
    rival: Int[np.ndarray, " K"]
    rejected: Bool[np.ndarray, " K"]


@runtime_checkable
class Evident(Protocol):
    """A run that can show its evidence."""

    def evidence(self) -> Evidence:
        """Return the evidence against every arm."""
        ...


#: "open" until it is known; "certain"; "hidden" where a bend may hide a better arm; "bent" where
#: the model was shown to be wrong.
Outcome = Literal["open", "certain", "hidden", "bent"]


@dataclass(frozen=True)
class ModelFindings:
    """What is known of bends that the model leaves out.

    Attributes
    ----------
    sought : str
        What is looked for: "squares and products".
    evidence : float
        The log of the evidence that the model is wrong.
    alarm : bool
        Whether it has reached its limit.
    strongest : str
        The bend for which there is most evidence.
    chance : float or None
        That a bend hides a better arm than the winners; None before there are some.
    limit : float
        The largest such chance with which winners are certain.
    winners, bent : tuple of int
        What the model names, and what it would be if there are bends.
    """

    sought: str
    evidence: float
    alarm: bool
    strongest: str
    chance: float | None = None
    limit: float = 0.0
    outcome: Outcome = "open"
    winners: tuple[int, ...] = ()
    bent: tuple[int, ...] = ()


@runtime_checkable
class Modelled(Protocol):
    """A run that checks its model."""

    def model(self) -> ModelFindings | None:
        """Return what is known of bends; None if nothing is checked."""
        ...


@runtime_checkable
class Speaking(Protocol):
    """A run that words its verdict."""

    def words(self) -> str:
        """Say in one sentence what is certain now."""
        ...


@runtime_checkable
class Explaining(Protocol):
    """A run that says what its batches are for."""

    def purpose(self, batch: Batch) -> str:
        """Say what a batch is for that is not recorded yet."""
        ...


@runtime_checkable
class Informed(Protocol):
    """A run that can use what was measured before it began."""

    def inform(self, history: Statistics) -> None:
        """Take rewards measured before the start."""
        ...


@runtime_checkable
class Lossy(Protocol):
    """A run that must know which pulls were made without a reward."""

    def lose(self, counts: Int[np.ndarray, " K"]) -> None:
        """Count pulls of the batch recorded last that gave no reward."""
        ...


@runtime_checkable
class Rationing(Protocol):
    """A run that plans what is left of a budget, which may change."""

    def rebudget(self, budget: int | None) -> None:
        """Go on with another budget, None for none: what comes next is planned for it."""
        ...

    def waits(self, batch: Batch | None) -> bool:
        """Return whether results are known whose test is not planned yet, beside an open batch.

        A budget that was chosen by them would be a choice of what they are tested with.
        """
        ...

    def rest(self, fit: Estimate, left: float) -> Float[np.ndarray, " K"]:
        """Return how often each arm would be pulled with what is left, by the results so far.

        Parameters
        ----------
        fit : Estimate
            From all results.
        left : float
            Of the budget: pulls, or cost.
        """
        ...


@runtime_checkable
class Changeable(Protocol):
    """A run whose arms may change."""

    def changed(
        self, problem: Problem, kept: Int[np.ndarray, " n"], level: float, *, afresh: bool
    ) -> Run:
        """Go on with other arms.

        Parameters
        ----------
        problem : Problem
            With the new arms; all else must be the same.
        kept : (n,) array of int
            For each new arm the number it had before, -1 if it is new.
        level : float
            The share of delta of what is tested from its beginning: the new arms, or all.
        afresh : bool
            Whether every arm starts again without evidence. It must when an arm is withdrawn: if
            that was the best one, the evidence against the others was right, and the new best is
            among them.
        """
        ...


@runtime_checkable
class Following(Protocol):
    """A run that can go on from a decision that it would not have taken."""

    def follow(self, decision: Verdict) -> None:
        """Take over a decision that was taken before."""
        ...
