"""The result of a simulation: arrays over its runs, and their summary."""

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from finalist.errors import SimulationError
from finalist.extras import need
from finalist.shapes import Bool, Float, Int
from finalist.simulation.binomial import exact_interval
from finalist.simulation.summary import Summary, per_arm

if TYPE_CHECKING:
    import pandas as pd

_PULLS = "pulls: "
#: What a simulation has one of for each run, in the order of the fields of `Outcome`.
PER_RUN = ("run", "winner", "correct", "pulls_per_arm", "batches", "seconds", "certain")


@dataclass(frozen=True, eq=False)
class Simulation:
    """The runs of one simulation, ordered by number.

    Attributes
    ----------
    arms : tuple of str
        Names of the K arms.
    name, strategy : str
        Name of the strategy, and its repr with all settings.
    delta : float
        Allowed error probability.
    seed : int
    requested : int
        Runs asked for; more than the runs here if the simulation was interrupted.
    run : (runs,) array of int
        Number of each run.
    winner : (runs,) array of int
        Index of the winning arm, -1 if the run was stopped undecided. With a budget, the
        recommended arm.
    correct : (runs,) array of bool
        Whether the winner is (one of) the best, or good enough; False if undecided.
    pulls_per_arm : (runs, K) array of int
    batches : (runs,) array of int
        How often the strategy chose what to pull.
    seconds : (runs,) array
        Processor time of each run.
    certain : (runs,) array of bool, optional
        Whether each run decided with its guarantee, at level delta; by default every run with a
        winner. Never for a strategy that only keeps a budget.
    budget : int or None
        Pulls allowed per run.
    costs : (K,) array or None
        Cost of a pull of each arm; None if it is 1.
    gaps : (K,) array or None
        How much worse the mean of each arm is than that of the best candidate; None if it is not
        known, or if several arms are asked for.
    """

    arms: tuple[str, ...]
    name: str
    strategy: str
    delta: float
    seed: int
    requested: int
    run: Int[np.ndarray, " runs"]
    winner: Int[np.ndarray, " runs"]
    correct: Bool[np.ndarray, " runs"]
    pulls_per_arm: Int[np.ndarray, "runs K"]
    batches: Int[np.ndarray, " runs"]
    seconds: Float[np.ndarray, " runs"]
    certain: Bool[np.ndarray, " runs"] = None  # type: ignore[assignment]  # None means decided
    budget: int | None = None
    costs: Float[np.ndarray, " K"] | None = None
    gaps: Float[np.ndarray, " K"] | None = None

    def __post_init__(self) -> None:
        if len(self.run) == 0:
            raise SimulationError("there are no runs; a simulation needs at least one.")
        if cast(np.ndarray | None, self.certain) is None:
            object.__setattr__(self, "certain", self.decided)
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __len__(self) -> int:
        return len(self.run)

    @cached_property
    def samples(self) -> Int[np.ndarray, " runs"]:
        """Pulls of each run, up to the cap if it was stopped undecided."""
        return np.asarray(self.pulls_per_arm.sum(axis=1))

    @cached_property
    def cost(self) -> Float[np.ndarray, " runs"]:
        """Cost of the pulls of each run; their number if each costs 1."""
        if self.costs is None:
            return self.samples.astype(float)
        return np.asarray(self.pulls_per_arm @ self.costs)

    @cached_property
    def regret(self) -> Float[np.ndarray, " runs"] | None:
        """The simple regret of each run (Soare 2014, Sect. 2): how much worse the winner is.

        NaN for a run without a winner; None if the gaps are not known.
        """
        if self.gaps is None:
            return None
        return np.where(self.decided, self.gaps[self.winner], np.nan)

    @property
    def decided(self) -> Bool[np.ndarray, " runs"]:
        """Whether each run ended with a winner or a recommendation."""
        return np.asarray(self.winner >= 0)

    @property
    def errors(self) -> int:
        """Number of runs with a wrong winner or recommendation."""
        return int((self.decided & ~self.correct).sum())

    def error_bounds(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the exact interval for the probability of a wrong winner."""
        return exact_interval(self.errors, len(self), confidence)

    def summary(self) -> Summary:
        """Return means, quantiles and error rates; they print as a few lines."""
        samples = self.samples
        mean = float(samples.mean())
        error, half = _uncertainty(samples)
        return Summary(
            name=self.name,
            arms=self.arms,
            delta=self.delta,
            runs=len(self),
            requested=self.requested,
            undecided=int((~self.decided).sum()),
            errors=self.errors,
            error_rate=self.errors / len(self),
            error_interval=self.error_bounds(),
            mean=mean,
            standard_error=error,
            interval=(mean - half, mean + half),
            median=float(np.median(samples)),
            quantiles=(float(np.quantile(samples, 0.1)), float(np.quantile(samples, 0.9))),
            min=int(samples.min()),
            max=int(samples.max()),
            mean_batches=float(self.batches.mean()),
            mean_pulls_per_arm=tuple(map(float, self.pulls_per_arm.mean(axis=0))),
            mean_seconds=float(self.seconds.mean()),
            budget=self.budget,
            certain=int(self.certain.sum()),
            mean_cost=None if self.costs is None else float(self.cost.mean()),
            **self._regrets(),
        )

    def _regrets(self) -> dict[str, Any]:
        """Return mean, standard error and largest regret of the runs with a winner."""
        if self.regret is None or not self.decided.any():
            return {}
        known = self.regret[self.decided]
        return {
            "mean_regret": float(known.mean()),
            "regret_error": _uncertainty(known)[0],
            "max_regret": float(known.max()),
        }

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per run: run, winner (a name or None), decided, correct, pulls, ...

        The other columns are batches, seconds, `regret` if the gaps are known, `cost` if pulls do
        not all cost 1, `certain` with a budget or if a winner has no guarantee, and `pulls: NAME`
        for each arm.
        """
        need("Data frames", "pandas")
        import pandas as pd

        winners = [None if i < 0 else self.arms[i] for i in self.winner]
        unsure = self.budget is not None or not np.array_equal(self.certain, self.decided)
        columns = {
            "run": self.run,
            "winner": pd.Series(winners, dtype=object),
            "decided": self.decided,
            "correct": self.correct,
            "pulls": self.samples,
            "batches": self.batches,
            "seconds": self.seconds,
            **({} if self.regret is None else {"regret": self.regret}),
            **({} if self.costs is None else {"cost": self.cost}),
            **({"certain": self.certain} if unsure else {}),
        }
        arms = [f"{_PULLS}{name}" for name in self.arms]
        per_arm = pd.DataFrame(self.pulls_per_arm, columns=arms)
        return pd.concat([pd.DataFrame(columns), per_arm], axis=1)

    @classmethod
    def from_frame(
        cls,
        frame: "pd.DataFrame",
        *,
        name: str,
        strategy: str,
        delta: float,
        seed: int,
        requested: int | None = None,
        budget: int | None = None,
        costs: ArrayLike | None = None,
        gaps: ArrayLike | None = None,
    ) -> "Simulation":
        """Read what `to_frame` returned, directly or through a CSV file.

        Parameters
        ----------
        frame : DataFrame
            From a CSV file read with `dtype={"winner": str}, keep_default_na=False`, so that arms
            called 007 or NA keep their names.
        name, strategy, delta, seed
            Not in the frame; see the attributes.
        requested : int, optional
            By default the number of rows.
        budget : int, optional
        costs : (K,) array-like, optional
            Cost of a pull of each arm; needed if the frame has a column `cost`.
        gaps : (K,) array-like, optional
            How much worse each arm is than the best; without them the regret is not known.
        """
        per_arm = [column for column in frame.columns if column.startswith(_PULLS)]
        arms = tuple(column.removeprefix(_PULLS) for column in per_arm)
        wanted = ("run", "winner", "decided", "correct", "batches", "seconds")
        missing = [column for column in wanted if column not in frame.columns]
        if missing or not arms:
            raise SimulationError(
                f"the frame has no column {(*missing, _PULLS + 'NAME')[0]!r}; "
                "use one that Simulation.to_frame returned."
            )
        return cls(
            arms=arms,
            name=name,
            strategy=strategy,
            delta=delta,
            seed=seed,
            requested=len(frame) if requested is None else requested,
            run=np.array(frame["run"], dtype=np.int64),
            winner=_winners(frame, arms),
            correct=np.array(frame["correct"], dtype=bool),
            pulls_per_arm=np.array(frame[per_arm], dtype=np.int64),
            batches=np.array(frame["batches"], dtype=np.int64),
            seconds=np.array(frame["seconds"], dtype=float),
            certain=np.array(frame["certain" if "certain" in frame else "decided"], dtype=bool),
            budget=budget,
            costs=_costs(frame, costs, len(arms)),
            gaps=_gaps(gaps, len(arms)),
        )

    def merge(self, *others: "Simulation") -> "Simulation":
        """Return one simulation with the runs of several that have the same settings."""
        parts = (self, *others)
        for word in ("arms", "name", "strategy", "delta", "seed", "budget"):
            values = [getattr(part, word) for part in parts]
            if any(value != values[0] for value in values):
                raise SimulationError(
                    f"simulations with different {word} cannot be merged; use the same in each."
                )
        for word, same in (("costs", _same_costs), ("gaps", _same_gaps)):
            if any(not same(getattr(part, word), getattr(self, word)) for part in others):
                raise SimulationError(
                    f"simulations with different {word} cannot be merged; use the same in each."
                )
        run = np.concatenate([part.run for part in parts])
        numbers, counts = np.unique(run, return_counts=True)
        if counts.max() > 1:
            raise SimulationError(
                f"run {numbers[counts.argmax()]} is in two of the simulations; "
                "merge only simulations of different runs."
            )
        order = np.argsort(run)

        joined: dict[str, Any] = {
            word: np.concatenate([getattr(part, word) for part in parts])[order] for word in PER_RUN
        }
        return replace(self, requested=sum(part.requested for part in parts), **joined)


def _costs(
    frame: "pd.DataFrame", given: ArrayLike | None, K: int
) -> Float[np.ndarray, " K"] | None:
    """Return the cost of a pull of each arm, which is not in the frame; None if all are 1."""
    if given is None and "cost" not in frame.columns:
        return None
    costs = np.array([] if given is None else given, dtype=float)
    if costs.shape != (K,):
        raise SimulationError(
            f"costs is {given!r}; give the cost of a pull for each of the {K} arms. A frame with a "
            "column 'cost' needs them."
        )
    return costs


def _gaps(given: ArrayLike | None, K: int) -> Float[np.ndarray, " K"] | None:
    """Return how much worse each arm is, or None."""
    if given is None:
        return None
    return per_arm("gaps", given, K, "how much worse its mean is than the best")


def _same_gaps(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other))


def _same_costs(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    """Return whether pulls cost the same; None means 1 for all."""
    return bool(np.all((1.0 if one is None else one) == (1.0 if other is None else other)))


def _uncertainty(samples: np.ndarray) -> tuple[float, float]:
    """Return the standard error of the mean and half the width of its 95 % interval (t)."""
    n = len(samples)
    if n == 1:
        return math.nan, math.nan
    error = float(samples.std(ddof=1)) / math.sqrt(n)
    return error, float(stdtrit(n - 1, 0.975)) * error


def _winners(frame: "pd.DataFrame", arms: tuple[str, ...]) -> Int[np.ndarray, " runs"]:
    """Return the index of each winner, -1 for a run without one."""
    index = {name: i for i, name in enumerate(arms)}
    winners = []
    for name, decided in zip(frame["winner"], frame["decided"], strict=True):
        if decided and str(name) not in index:
            raise SimulationError(
                f"winner {name!r} is not an arm of the frame; read a CSV file with "
                "dtype={'winner': str}, keep_default_na=False."
            )
        winners.append(index[str(name)] if decided else -1)
    return np.array(winners, dtype=np.int64)
