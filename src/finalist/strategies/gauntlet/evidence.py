"""The evidence of a gauntlet, as people look at it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int


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
    rejected : (K,) array of bool
    """

    share: Float[np.ndarray, " K"]
    p_value: Float[np.ndarray, " K"]
    rival: Int[np.ndarray, " K"]
    rejected: Bool[np.ndarray, " K"]
