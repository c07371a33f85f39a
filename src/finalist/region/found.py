"""What is certain of the point that a run has found."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Found:
    """The point that a run has found, and how far it is from the best of the region.

    Attributes
    ----------
    name : str or None
        The winner; None while there is none.
    point : mapping or None
        Its coordinates, by name.
    epsilon : float
        By how much a point of the net may be better, at most.
    loss : float
        By how much a point between those of the net may be better still, at most.
    delta : float
        The probability that any of this is wrong, at most.
    pulls : int
    refine : bool
        Whether the loss is larger than what was asked for; a finer net helps.

    Examples
    --------
    >>> Found("x=0.5", {"x": 0.5}, 0.1, 0.02, 0.05, 200).within
    0.12
    """

    name: str | None
    point: Mapping[str, float] | None
    epsilon: float
    loss: float
    delta: float
    pulls: int
    refine: bool = False

    @property
    def within(self) -> float:
        """No point of the region is better than the winner by more than this."""
        return round(self.epsilon + self.loss, 15)

    @property
    def sentence(self) -> str:
        """All of it in one sentence."""
        between = f"points between those of the net are better by at most {self.loss:.3g}"
        if self.name is None:
            return f"No winner yet after {self.pulls:,} pulls; {between}."
        more = " A finer net would make it less." if self.refine else ""
        return (
            f"{self.name} is within {self.within:.3g} of the best point of the region, after "
            f"{self.pulls:,} pulls; this is wrong with probability at most {self.delta:.3g}.{more}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        point = None if self.point is None else dict(self.point)
        plain = {k: v for k, v in vars(self).items() if k != "point"}
        return plain | {"point": point, "within": self.within, "sentence": self.sentence}

    def __str__(self) -> str:
        return self.sentence
