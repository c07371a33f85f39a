"""What a test of an assumption has found."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Check:
    """What a test of an assumption has found.

    Attributes
    ----------
    kind : "noise", "fit", "shift" or "bend"
    seen : str
        What is not as assumed, as the beginning of a sentence.
    fails : bool
        Whether the guarantee rests on it.
    model : str or None
        A model with which a new study would not have this problem.
    """

    kind: Literal["noise", "fit", "shift", "bend"]
    seen: str
    fails: bool
    remedy: str
    model: str | None = None

    def words(self, promised: bool) -> str:
        """Return the warning; `promised` tells whether there is a guarantee to lose."""
        if self.fails:
            lost = broken(True) if promised else LEFT_OUT
            return f"{self.seen}: {lost}. {self.remedy}"
        said = promised or self.kind != "noise"
        return f"{self.seen}. {self.remedy if said else TOO_CAUTIOUS}"

    @property
    def reason(self) -> str:
        """Why nothing is certain, as a part of a sentence."""
        return self.seen[0].lower() + self.seen[1:]


LEFT_OUT = "the error estimate, the certainty and the intervals are left out"
TOO_CAUTIOUS = "The error estimate, the certainty and the intervals are too cautious."


def broken(promised: bool) -> str:
    """Say what is lost when an assumption is wrong."""
    if promised:
        return "the guarantee does not hold"
    return "the error estimate, the certainty and the intervals are wrong"
