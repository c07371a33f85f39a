"""What is pulled: arms in units of their noise and cost."""

from dataclasses import dataclass

import numpy as np

from finalist.arms import Arms
from finalist.errors import DesignError
from finalist.problem import PerArm
from finalist.shapes import Float, Int
from finalist.text import counted


@dataclass(frozen=True, eq=False)
class Measured:
    """The arms that can be pulled, in units of their noise and cost.

    Attributes
    ----------
    rows : (k, r) array
        z_i / (sigma_i sqrt(c_i)), in span coordinates.
    arms : (k,) array of int, or None
        Their numbers; None if they are all of K arms.
    cost : (k,) array or None
        Of a pull; None if it is 1.
    """

    rows: Float[np.ndarray, "k r"]
    arms: Int[np.ndarray, " k"] | None
    cost: Float[np.ndarray, " k"] | None
    K: int

    @classmethod
    def of(cls, arms: Arms, sigma: PerArm = 1.0, cost: PerArm = 1.0) -> "Measured":
        """Return them for a noise and a cost of each arm, or of all."""
        rows, chosen = arms.coordinates, None
        if not arms.measurable.all():
            chosen = np.flatnonzero(arms.measurable)
            rows = rows[chosen]
        noise, price = (_each(name, v, arms) for name, v in (("sigma", sigma), ("cost", cost)))
        scale = np.ones(len(arms)) if noise is None else noise.copy()
        if price is not None:
            scale *= np.sqrt(price)
        if noise is not None or price is not None:
            rows = rows / (scale if chosen is None else scale[chosen])[:, None]
        return cls(
            rows, chosen, price if price is None or chosen is None else price[chosen], len(arms)
        )

    def shares(self, weights: Float[np.ndarray, " k"]) -> Float[np.ndarray, " K"]:
        """Turn shares of the cost into shares of the pulls, of all K arms."""
        if self.cost is not None:
            weights = weights / self.cost
            weights = weights / weights.sum()
        if self.arms is None:
            return weights
        whole = np.zeros(self.K)
        whole[self.arms] = weights
        return whole


def _each(name: str, value: PerArm, arms: Arms) -> Float[np.ndarray, " K"] | None:
    """Return a positive number for each arm; None if it is 1 for all."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.ndim > 1 or not (np.isfinite(array).all() and (array > 0).all()):
        raise DesignError(f"{name} is {value!r}; it is a positive number, or one per arm.")
    if array.ndim == 1 and len(array) != len(arms):
        found = counted(len(array), "value")
        raise DesignError(f"{name} has {found} for {len(arms)} arms; give one per arm.")
    return None if np.all(array == 1.0) else np.array(np.broadcast_to(array, len(arms)))
