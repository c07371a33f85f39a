"""What rewards say of a linear model on a region: a set that holds the parameter, at all times.

The set is the ellipsoid of `intervals.Ellipsoid` with the radius of `bounds.pooled_radius`: the
parameter is in it at all times at once, with probability at least 1 - delta, however the pulls
were chosen.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from finalist.errors import EstimateError, ProblemError
from finalist.inference.bounds import pooled_radius
from finalist.inference.intervals import Ellipsoid, start_of
from finalist.inference.least_squares import Estimate
from finalist.inference.pooling import Pooled
from finalist.inference.statistics import Statistics
from finalist.problem import Problem

if TYPE_CHECKING:
    from finalist.study import Status, Study


def refuse_doubts(status: "Status") -> None:
    """Refuse a study in which nothing is certain because an assumption fails."""
    if status.doubts:
        raise EstimateError(
            f"nothing is certain in study {status.name!r}, because {'; and '.join(status.doubts)}: "
            "so nothing can be said of the region. Create a study whose assumptions hold."
        )


@dataclass(frozen=True, eq=False)
class Record:
    """The rewards of a run, as far as a region needs them.

    Attributes
    ----------
    problem : Problem
    fit : Estimate
        From all rewards.
    """

    problem: Problem
    fit: Estimate

    @classmethod
    def of(cls, problem: Problem, batches: Iterable[Statistics]) -> "Record":
        """Return it from the rewards of each batch."""
        pooled = Pooled(problem)
        for rewards in batches:
            pooled.add(rewards)
        return cls(problem, pooled.estimate())

    @classmethod
    def of_study(cls, study: "Study") -> "Record":
        """Return it from the complete batches of a study whose arms were never changed."""
        if any(event["kind"] == "changed" for event in study.history()):
            raise EstimateError(
                f"the arms of study {study.name!r} were changed; its rewards give no interval that "
                "holds at all times. Create a study for the new arms."
            )
        from finalist.study.settings import from_json

        status = study.status(forecast=False)
        refuse_doubts(status)
        arms = study.arms
        problem = from_json(study.settings, arms).problem
        frame = study.to_frame()
        frame = frame[(frame["state"] == "told") & (frame["batch"] <= status.batches)]
        batches = []
        for _, rows in frame.groupby("batch", sort=True):
            rewards = Statistics.empty(len(arms))
            rewards.add_many([arms.index(name) for name in rows["arm"]], rows["reward"].to_numpy())
            batches.append(rewards)
        return cls.of(problem, batches)

    def belief(self, delta: float) -> "Belief":
        """Return the set that holds the parameter with probability at least 1 - delta."""
        problem, fit = self.problem, self.fit
        if problem.scale is None:
            raise ProblemError("sigma is unknown; a region needs the size of the noise: sigma=...")
        if problem.misspecification > 0.0:
            raise ProblemError(
                f"misspecification is {problem.misspecification:g}; what is said of a region needs "
                "a model that is linear in its basis. Use misspecification=0."
            )
        found = Ellipsoid.of(fit, start_of(problem))
        if found is None:
            raise EstimateError(
                "the complete batches so far do not tell the whole model; measure more."
            )
        radius = pooled_radius(found.log_det_ratio, delta, problem.scale)
        return Belief(fit, found.root, radius, problem.sign)


@dataclass(frozen=True, eq=False)
class Belief:
    """The parameters that are possible, times `sign`, so that large means are good.

    Attributes
    ----------
    fit : Estimate
    root : (s, r) array
        Of `intervals.Ellipsoid`.
    radius : float
    sign : int
    """

    fit: Estimate
    root: Float[np.ndarray, "s r"]
    radius: float
    sign: int

    def estimates(self, rows: Float[np.ndarray, "*n p"]) -> Float[np.ndarray, "*n"]:
        """Return y'theta for the estimate, for rows y in feature space."""
        return self._both(rows)[0]

    def widths(self, rows: Float[np.ndarray, "*n p"]) -> Float[np.ndarray, "*n"]:
        """Return how far y'theta can be from that."""
        return self._both(rows)[1]

    def upper(self, rows: Float[np.ndarray, "*n p"]) -> Float[np.ndarray, "*n"]:
        """Return the largest possible y'theta."""
        middle, width = self._both(rows)
        return np.asarray(middle + width)

    def largest(self, rows: Float[np.ndarray, "*n p"]) -> Float[np.ndarray, "*n"]:
        """Return the largest possible |y'theta|."""
        middle, width = self._both(rows)
        return np.asarray(np.abs(middle) + width)

    def largest_norm(self, rows: Float[np.ndarray, "m p"]) -> float:
        """Return a bound of |Y theta|: |Y estimate| + radius |Y root'|, spectral norm."""
        image = self._span(rows) @ self.root.T
        size = float(np.linalg.norm(image, 2)) if np.isfinite(self.widths(rows)).all() else np.inf
        return float(np.linalg.norm(self.estimates(rows))) + self.radius * size

    def _span(self, rows: Float[np.ndarray, "*n p"]) -> Float[np.ndarray, "m r"]:
        flat = rows.reshape(-1, rows.shape[-1])
        # Where batches are shifted the arms may have one more feature, a constant.
        more = self.fit.arms.features.shape[1] - flat.shape[1]
        return self.fit.arms.to_span(np.pad(flat, ((0, 0), (0, more))))

    def _both(self, rows: Float[np.ndarray, "*n p"]) -> tuple[np.ndarray, np.ndarray]:
        inside = self._span(rows)
        middle = self.sign * (inside @ self.fit.phi)
        width = self.radius * Ellipsoid(self.fit, self.root, 0.0).units(inside)
        shape = rows.shape[:-1]
        return middle.reshape(shape), width.reshape(shape)
