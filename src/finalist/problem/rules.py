"""The rules by which evidence is computed and decisions are taken, by their number.

A study keeps the rules that it began with, so that what was decided stays decided: whoever opens
it with a later version gets the decisions that are in its log, and goes on by the same rules.
Whatever changes the evidence or the decisions of a strategy gets a new number here, as a constant
or a choice that differs, with golden studies of its own. Sentences, intervals and estimates are
no decisions; they may get better without a new number. A mistake is mended under all numbers: where
a study was decided by it, its replay decides otherwise than its log, and says so (`study.state`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from finalist.errors import ProblemError


@dataclass(frozen=True)
class Rules:
    """Constants and choices that decisions depend on.

    Parameters
    ----------
    pilot, first, fewest : int
        Pulls of the gauntlet's pilot and of its first tested batch, and the fewest of later ones,
        each times the rank.
    untilted : float
        The share of the gauntlet's bets that no data tilt.
    epochs : bool
        Whether the gauntlet tests epochs, which batches of any size make up, splits its pilot
        where it can, and with an epsilon has a portfolio of accounts. Then pilot, first and fewest
        are not used.
    near_claimants : bool
        Whether, with an epsilon, the gauntlet's epochs are planned for several arms that may be
        returned soon, and its claimant stays until another one is clearly nearer.
    top_accounts : bool
        Whether the gauntlet has a portfolio of accounts for the m best of candidates whose sets are
        too many to list, instead of a test of each pair.
    endgame : bool
        Whether the gauntlet plans epochs for the end of a budget, if there is one.
    forgiving : bool
        Whether the gauntlet leaves out what later rewards contradict when it chooses, and goes by
        arms' own means where the linear model may be wrong.

    Examples
    --------
    >>> rules_of(1).pilot
    4
    """

    number: int
    pilot: int = 4
    first: int = 4
    fewest: int = 3
    untilted: float = 0.0
    forgiving: bool = False
    epochs: bool = False
    near_claimants: bool = False
    endgame: bool = False
    top_accounts: bool = False


#: All rules that there have been.
RULES: Mapping[int, Rules] = {
    1: Rules(1),
    2: Rules(2, untilted=0.2, forgiving=True),
    3: Rules(3, untilted=0.2, forgiving=True, epochs=True),
    4: Rules(
        4,
        untilted=0.2,
        forgiving=True,
        epochs=True,
        near_claimants=True,
        endgame=True,
        top_accounts=True,
    ),
}
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
