"""A net: finitely many points to choose from that stand for all points of a region.

The points are the centres of the cells of a grid over [-1, 1]^d in coded coordinates, projected
into the region. Every point of the region is in a cell. In a box, that cell is on each face that
the point is on. In a ball, a point of the sphere is in the cell of the face of the cube on which it
lies as seen from the centre, and belongs to that one.

A refined net has only the cells that may still contain a best point, each cut into parts^d smaller
ones. Let every theta of a set make all points of the cells that are left out no better than the
leader, a point of the old net that is in the new one too (`parts` is odd, so that the middle of a
cell stays one). For a theta of the set, consider the whole grid that is `parts` times as fine. It
has a point y that is worse than the best of the region by no more than its loss. If the cell of the
old grid that holds y is kept, y is in the new net; if not, the leader is as good as y, or better.
So the loss of the new net is at most the one of the whole fine grid.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from finalist.arms import Arms
from finalist.arms.recipes import Table
from finalist.errors import ArmsError, EstimateError, ProblemError
from finalist.problem import UNSET, Unset
from finalist.region.belief import Found, Record, refuse_doubts
from finalist.region.loss import largest_lead, largest_loss, leader_of
from finalist.region.optimum import Spread
from finalist.region.space import Space, check_size, joined, named, needed
from finalist.shapes import Float, Int

if TYPE_CHECKING:
    from finalist.study import Study

#: Default share of epsilon and of delta that is left for the loss.
SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Net:
    """Points that stand for a region; made by `Region.net`.

    Attributes
    ----------
    space : Space
    per_axis : tuple of int
        Points of the whole grid along each coordinate.
    cells : (M, d) array of int
        Indices along each coordinate of the grid points that the net has.
    design : Spread
        Where to measure, over the whole region.
    measure : "design" or "all"
    risk : float
        An upper bound on the probability that a cell left out contains the best point; 0 for a
        full grid.
    """

    space: Space = field(repr=False)
    per_axis: tuple[int, ...]
    cells: Int[np.ndarray, "M d"] = field(repr=False)
    design: Spread = field(repr=False)
    measure: Literal["design", "all"] = "design"
    risk: float = 0.0

    def __repr__(self) -> str:
        risk = f", risk={self.risk:g}" if self.risk else ""
        return f"Net(points={len(self.points)}, per_axis={self.per_axis}{risk})"

    @cached_property
    def points(self) -> Float[np.ndarray, "N d"]:
        """The points of the net; cells whose centres are projected to the same point share it."""
        places = np.round(self._middles, 12)
        return self._middles[np.sort(np.unique(places, axis=0, return_index=True)[1])]

    @cached_property
    def _middles(self) -> Float[np.ndarray, "M d"]:
        return self.space.decoded(self._coded)

    @property
    def _coded(self) -> Float[np.ndarray, "M d"]:
        last = np.array(self.per_axis) - 1
        return np.asarray((2 * self.cells - last) / last)

    @property
    def steps(self) -> Float[np.ndarray, " d"]:
        """Half the distance of neighbours in the grid, in coded coordinates."""
        return 1.0 / (np.array(self.per_axis) - 1.0)

    @property
    def exact(self) -> bool:
        """Whether a best point of the region is always in the net."""
        return self.space.shape == "box" and self.space.basis == "linear"

    @cached_property
    def _joined(self) -> tuple[Float[np.ndarray, "K d"], Int[np.ndarray, " n"]]:
        """The points of all arms, and which are to be measured."""
        if self.measure == "all":
            return self.points, np.arange(len(self.points))
        return joined(self.space, self.points, self.design.points)

    @cached_property
    def arms(self) -> Arms:
        """All points as arms that can win; those to be measured are marked as measurable."""
        points, measured = self._joined
        features = self.space.features(points)
        columns = self.space.feature_names(features.shape[1])
        arms = Arms._from_table(Table(features, named(self.space, points), columns))
        if len(arms) < len(points):
            raise ArmsError(
                "some points of the net have the same basis values; leave out coordinates that do "
                "not matter, or use fewer points."
            )
        measurable = np.zeros(len(points), dtype=bool)
        measurable[measured] = True
        return arms._marked(measurable, None)

    @property
    def weights(self) -> Float[np.ndarray, " K"] | None:
        """The design's share of the pulls for each arm; None if all can be measured."""
        if self.measure == "all":
            return None
        return np.bincount(self._joined[1], self.design.weights, len(self.arms))

    def point(self, name: str) -> dict[str, float]:
        """Return the coordinates of an arm by name."""
        row = self._joined[0][self.arms.index(name)]
        return dict(zip(self.space.names, row.tolist(), strict=True))

    def question(self, epsilon: float, delta: float = 0.05, share: float = SHARE) -> dict[str, Any]:
        """Split epsilon and delta between the test and the loss.

        Parameters
        ----------
        epsilon : float
            Accepted distance of the answer from the best point of the region.
        delta : float
            Accepted probability of a wrong answer.
        share : float
            The part of both that is left for the loss; nothing if the net is exact.

        Returns
        -------
        dict
            `epsilon`, `delta` and `check` for `Study.create` and `fl.simulate`. Bends that the
            model leaves out are not looked for: in a region the best points are near ties, which
            the slightest bend decides otherwise. Put a square that may matter into the model.
        """
        if not (math.isfinite(epsilon) and epsilon > 0 and 0 < share < 1):
            raise ProblemError(
                f"epsilon is {epsilon!r} and share {share!r}; epsilon must be positive, and share "
                "between 0 and 1."
            )
        if not 0 < delta - self.risk < 1:
            raise ProblemError(
                f"delta is {delta!r}; it must be between the risk of the net, {self.risk:g}, and 1."
            )
        kept = 1.0 if self.exact else 1.0 - share
        return {"epsilon": kept * epsilon, "delta": kept * (delta - self.risk), "check": 0.0}

    def loss(self, source: "Record | Study", delta: float = 0.01) -> float:
        """Bound how much better a point of the region can be than the best of the net.

        Parameters
        ----------
        source : Study or Record
            With the rewards so far.
        delta : float
            The probability that the bound is ever wrong, at any time. It adds to that of the test
            and to the risk of the net.

        Returns
        -------
        float
            In units of the reward. See `finalist.region.loss` for the proof.
        """
        if self.exact:
            return 0.0
        return largest_loss(self.space, self._coded, self.steps, _record(source).belief(delta))

    def refined(self, source: "Record | Study", delta: float = 0.01, parts: int = 3) -> "Net":
        """Return a finer net of the cells that may still contain the best point.

        Parameters
        ----------
        source : Study or Record
            With the rewards so far.
        delta : float
            The probability that a cell is ever left out wrongly; it adds to `risk`.
        parts : int
            How many times finer; an odd number.

        Returns
        -------
        Net
            For a new study: old rewards may guide its choices (`import_history`) but are not tested
            again.
        """
        if parts < 3 or parts % 2 == 0:
            raise ArmsError(f"parts is {parts}; it must be an odd number, 3 or more.")
        if self.exact:
            return self
        belief = _record(source).belief(delta)
        middles = self._middles
        leader = leader_of(self.space.features(middles), belief)
        lead = largest_lead(self.space, middles, self.steps, middles[leader], belief)
        kept = lead > 0.0
        kept[leader] = True
        around = np.array(list(product(range(-(parts // 2), parts // 2 + 1), repeat=self.space.d)))
        per_axis = tuple(parts * (m - 1) + 1 for m in self.per_axis)
        check_size(int(kept.sum()) * len(around))
        cells = (parts * self.cells[kept][:, None] + around).reshape(-1, self.space.d)
        cells = needed(self.space, cells, per_axis)
        return Net(self.space, per_axis, cells, self.design, self.measure, self.risk + delta)

    def verdict(self, study: "Study", delta: float = 0.05) -> Found:
        """Say how far the winner of a study is from the best point of the region.

        Parameters
        ----------
        study : Study
            Of the arms of this net, with a delta below the one here (see `question`).
        delta : float
            The probability that anything here is wrong: what the study and the risk of the net
            leave of it goes to the loss.
        """
        status, arms = study.status(forecast=False), study.arms
        refuse_doubts(status)
        if status.risk is None:
            raise EstimateError(
                f"the strategy of study {study.name!r} guarantees nothing, so nothing can be said "
                "about the region. Use the gauntlet."
            )
        if study.settings["top"] > 1:
            raise ProblemError(
                f"study {study.name!r} asks for the {study.settings['top']} best arms; of a region "
                "only one point can be found. Use top=1."
            )
        self._check_arms(arms)
        epsilon = float(study.settings["epsilon"])
        loss = self.loss(study, self._left(delta, status.risk)) if not self.exact else 0.0
        total = delta if not self.exact else status.risk
        return self._found(status.winner, epsilon, loss, total, status.pulls)

    def _found(
        self, winner: str | None, epsilon: float, loss: float, delta: float, pulls: int
    ) -> Found:
        point = None if winner is None else self.point(winner)
        wanted = SHARE / (1.0 - SHARE) * epsilon
        refine = epsilon > 0.0 and loss > wanted * (1.0 + 1e-9)
        return Found(winner, point, epsilon, loss, delta, pulls, refine)

    def _left(self, delta: float, risk: float) -> float:
        """Return what the test and the risk of the net leave of delta."""
        left = delta - risk - self.risk
        if not 1e-9 * delta < left < 1.0:  # more than a rounding error
            raise ProblemError(
                f"delta is {delta:g}; the test uses {risk:g} of it and the net {self.risk:g}: "
                "nothing is left for the points between. Use a larger delta here."
            )
        return left

    def _check_arms(self, arms: Arms) -> None:
        """Refuse arms that lack some point of the net."""
        for name, row in zip(self.arms.names, self.arms.features, strict=True):
            there = name in arms and arms.candidate[arms.index(name)]
            if not (there and np.array_equal(arms.features[arms.index(name)], row)):
                raise ArmsError(
                    f"the study has no arm {name!r} with the features of this net; use the region "
                    "and net that its arms were made from."
                )

    def rehearse(
        self,
        theta: Sequence[float] | Float[np.ndarray, " p"],
        epsilon: float,
        delta: float = 0.05,
        *,
        sigma: float | Unset = UNSET,
        objective: Literal["max", "min"] = "max",
        seed: int = 0,
    ) -> Found:
        """Simulate one study with the gauntlet and return what it would have found.

        Parameters
        ----------
        theta : (p,) sequence
            The true parameter, in the basis.
        epsilon, delta
            As in `question`.
        sigma : float
            Size of the noise; required.
        objective : "max" or "min"
        seed : int
        """
        from finalist.problem import as_problem
        from finalist.simulation.rewards import DrawnRewards
        from finalist.strategies import Gauntlet

        words: Mapping[str, Any] = self.question(epsilon, delta)
        problem = as_problem(self.arms, sigma=sigma, objective=objective, **words)
        rng = np.random.default_rng(seed)
        rewards = DrawnRewards(problem.means(theta), problem.sigma, "gaussian", rng)
        run, batches = Gauntlet().start(problem, seed=seed), []
        while not run.verdict.decided:
            batch = run.next()
            batches.append(rewards.batch(batch.counts))
            run.record(batch, batches[-1])
        record = Record.of(problem, batches)
        left = 0.0 if self.exact else self._left(delta, words["delta"])
        loss = self.loss(record, left) if not self.exact else 0.0
        winner = self.arms.names[run.verdict.winner or 0]
        return self._found(winner, words["epsilon"], loss, delta, run.verdict.pulls)


def _record(source: "Record | Study") -> Record:
    return source if isinstance(source, Record) else Record.of_study(source)
