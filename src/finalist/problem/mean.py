"""From what is linear to what is measured: the model of the mean.

Strategies estimate eta = x'theta, which is linear in the features. The mean reward of an arm is
`expected(eta)`: eta itself today. Only this turns one into the other, for the means that rewards
are drawn with and for the estimates that people are shown. A link function is one class here and
a line in `MEANS`. Its `needs` keep strategies away whose proofs are for linear means: a strategy
that has a proof adds "link" to what it supports.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from finalist.problem.features import Feature
from finalist.shapes import Float


@runtime_checkable
class MeanModel(Protocol):
    """A model of the mean; `expected` increases, so the best arm is the one with the best eta."""

    name: ClassVar[str]
    needs: ClassVar[frozenset[Feature]]

    def expected(self, eta: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return the mean rewards of arms with these linear predictors; NaN stays NaN."""
        ...


@dataclass(frozen=True)
class Identity:
    """The mean is linear in the features."""

    name: ClassVar[str] = "identity"
    needs: ClassVar[frozenset[Feature]] = frozenset()

    def expected(self, eta: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return eta."""
        return eta


#: The models by the names that settings keep.
MEANS: Mapping[str, Any] = {model.name: model for model in (Identity,)}
