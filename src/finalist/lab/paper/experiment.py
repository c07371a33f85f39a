"""The experiment of Soare 2014, Sect. 6, and the numbers that its appendix prints.

The arms are the canonical basis of R^d and a last arm at the angle omega = 0.01 from the first;
theta = (2, 0, ..., 0). The first arm is best, the last one hardly worse, and what tells them apart
is the second coordinate of theta, which e_2 measures.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from finalist.arms import Arms
from finalist.simulation import instances

OMEGA = 0.01
SIGMA = 1.0
DELTA = 0.05
#: The paper's setting of XY-Adaptive, and the one finalist has by default.
PAPER_ALPHA, OUR_ALPHA = 0.1, 0.4
#: The dimensions of the paper's figure, and of its table.
DIMENSIONS = tuple(range(2, 11))
TABLE_DIMENSION = 5

#: Pulls of x1, ..., x6 at d = 5 as printed (Soare 2014, appendix, "Additional Empirical Results").
PRINTED: dict[str, tuple[int, ...]] = {
    "xy-oracle": (207, 41440, 2, 2, 1, 0),
    "xy-adaptive": (263, 52713, 3, 5, 2, 2),
    "xy": (29523, 29524, 29524, 29524, 29524, 1),
    "g": (28014, 28015, 28015, 28015, 28015, 1),
    "fully-adaptive": (740, 149220, 1, 1, 1, 1),
}


class Instance(NamedTuple):
    """Arms with the parameter that makes their rewards."""

    arms: Arms
    theta: Float[np.ndarray, " d"]


def instance(d: int = TABLE_DIMENSION, omega: float = OMEGA) -> Instance:
    """Return the arms and theta of the experiment.

    Parameters
    ----------
    d : int
        Number of features, 2 or more.
    omega : float
        Angle between the best arm and the runner-up.

    Examples
    --------
    >>> arms, theta = instance(d=3)
    >>> arms
    Arms(K=4, d=3, rank=3)
    >>> (arms.features @ theta).round(4).tolist()
    [2.0, 0.0, 0.0, 1.9999]
    """
    made = instances.paper(d, omega)
    return Instance(made.arms, made.theta)
