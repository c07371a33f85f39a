"""What rewards say about a region: a set that contains the parameter, and the point found.

The set is the ellipsoid of `intervals.Ellipsoid` with the radius of `bounds.pooled_radius`. With
probability at least 1 - delta it contains the parameter at all times at once, however the pulls
were chosen.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from finalist.errors import EstimateError, ProblemError
from finalist.inference.bounds import pooled_radius
from finalist.inference.intervals import Ellipsoid, start_of
from finalist.inference.least_squares import Estimate
from finalist.inference.pooling import Pooled
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.shapes import Float

if TYPE_CHECKING:
    from finalist.study import Status, Study


def refuse_doubts(status: "Status") -> None:
    """Refuse a study whose assumptions fail, so that nothing is certain."""
    if status.doubts:
        raise EstimateError(
            f"nothing is certain in study {status.name!r}, because {'; and '.join(status.doubts)}, "
            "so nothing can be said about the region. Create a study whose assumptions hold."
        )


@dataclass(frozen=True, eq=False)
class Record:
    """What a region needs of the rewards of a run.

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
        """Make a record of the rewards of each batch."""
        pooled = Pooled(problem)
        for rewards in batches:
            pooled.add(rewards)
        return cls(problem, pooled.estimate())

    @classmethod
    def of_study(cls, study: "Study") -> "Record":
        """Make a record of the complete batches of a study whose arms were never changed."""
        if any(event["kind"] == "changed" for event in study.history()):
            raise EstimateError(
                f"the arms of study {study.name!r} were changed, so its rewards give no interval "
                "that holds at all times. Create a study for the new arms."
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
        """Return the set that contains the parameter with probability at least 1 - delta."""
        problem, fit = self.problem, self.fit
        if problem.scale is None:
            raise ProblemError("sigma is unknown; a region needs the size of the noise: sigma=...")
        if problem.misspecification > 0.0:
            raise ProblemError(
                f"misspecification is {problem.misspecification:g}; a region needs a model that is "
                "linear in its basis. Use misspecification=0."
            )
        found = Ellipsoid.of(fit, start_of(problem))
        if found is None:
            raise EstimateError(
                "the complete batches so far do not determine the whole model; measure more."
            )
        radius = pooled_radius(found.log_det_ratio, delta, problem.scale)
        return Belief(fit, found.root, radius, problem.sign)


@dataclass(frozen=True, eq=False)
class Belief:
    """The possible parameters, times `sign`, so that large means are good.

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
        """Return how far y'theta can be from its estimate."""
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
        """Return a bound on |Y theta|: |Y estimate| + radius |Y root'|, spectral norm."""
        image = self._span(rows) @ self.root.T
        size = float(np.linalg.norm(image, 2)) if np.isfinite(self.widths(rows)).all() else np.inf
        return float(np.linalg.norm(self.estimates(rows))) + self.radius * size

    def _span(self, rows: Float[np.ndarray, "*n p"]) -> Float[np.ndarray, "m r"]:
        flat = rows.reshape(-1, rows.shape[-1])
        # With a batch intercept the arms may have one more feature, a constant.
        more = self.fit.arms.features.shape[1] - flat.shape[1]
        return self.fit.arms.to_span(np.pad(flat, ((0, 0), (0, more))))

    def _both(self, rows: Float[np.ndarray, "*n p"]) -> tuple[np.ndarray, np.ndarray]:
        inside = self._span(rows)
        middle = self.sign * (inside @ self.fit.phi)
        width = self.radius * Ellipsoid(self.fit, self.root, 0.0).units(inside)
        shape = rows.shape[:-1]
        return middle.reshape(shape), width.reshape(shape)


@dataclass(frozen=True)
class Found:
    """The point that a run found, and how far it is from the best of the region.

    Attributes
    ----------
    name : str or None
        The winner; None while there is none.
    point : mapping or None
        Its coordinates, by name.
    epsilon : float
        The most by which a point of the net may be better.
    loss : float
        The most by which a point between those of the net may be better still.
    delta : float
        An upper bound on the probability that any of this is wrong.
    pulls : int
    refine : bool
        Whether the loss is larger than asked for; a finer net helps.

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
        """The result in one sentence."""
        between = f"points between those of the net are better by at most {self.loss:.3g}"
        if self.name is None:
            return f"No winner yet after {self.pulls:,} pulls; {between}."
        more = " A finer net would make it less." if self.refine else ""
        return (
            f"{self.name} is within {self.within:.3g} of the best point of the region, after "
            f"{self.pulls:,} pulls; this is wrong with probability at most {self.delta:.3g}.{more}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        point = None if self.point is None else dict(self.point)
        plain = {k: v for k, v in vars(self).items() if k != "point"}
        return plain | {"point": point, "within": self.within, "sentence": self.sentence}

    def __str__(self) -> str:
        return self.sentence
