"""The rules by which evidence is computed and decisions are taken, by their number.

A study keeps the rules that it began with, so that what was decided stays decided: whoever opens
it with a later version gets the decisions that are in its log, and goes on by the same rules.
Whatever changes the evidence or the decisions of a strategy gets a new number here, as a constant
or a choice that differs, with golden studies of its own. Sentences, intervals and estimates are
no decisions; they may get better without a new number.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finalist.errors import ProblemError

if TYPE_CHECKING:
    from finalist.problem import Problem


@dataclass(frozen=True)
class Defect:
    """A mistake in rules that later ones do not have.

    Parameters
    ----------
    words : str
        What was wrong, for people.
    touches : function
        Whether it can have changed what was decided in a problem.
    """

    words: str
    touches: Callable[["Problem"], bool]


@dataclass(frozen=True)
class Rules:
    """Constants and choices that decisions depend on.

    Parameters
    ----------
    number : int
    pilot, first, fewest : int
        Pulls of the gauntlet's pilot and of its first tested batch, and the fewest of later ones,
        each times the rank.
    defects : tuple of Defect
        What was found to be wrong with them.

    Examples
    --------
    >>> rules_of(1).pilot
    4
    """

    number: int
    pilot: int = 4
    first: int = 4
    fewest: int = 3
    defects: tuple[Defect, ...] = ()

    def defects_of(self, problem: "Problem") -> list[str]:
        """Return what is wrong with what these rules decide in a problem, in words."""
        return [defect.words for defect in self.defects if defect.touches(problem)]


#: All rules that there have been.
RULES: Mapping[int, Rules] = {1: Rules(1)}
#: The rules of new studies and simulations.
NEWEST = RULES[max(RULES)]


def rules_of(number: int) -> Rules:
    """Return the rules of a number.

    Examples
    --------
    >>> rules_of(10**6)
    Traceback (most recent call last):
    finalist.errors.ProblemError: rules 1000000 are not known; a newer finalist made them...
    """
    found = RULES.get(number)
    if found is None:
        raise ProblemError(
            f"rules {number!r} are not known; a newer finalist made them. Upgrade finalist."
        )
    return found
