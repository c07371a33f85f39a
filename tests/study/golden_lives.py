"""Small lives of studies that freeze what version 0.1.0 decides: every strategy and every option.

Each is a study of three to six arms that is lived from its seed alone. Some end with a winner, some
in the middle of a batch. `make_golden_studies` lives them, `test_golden_studies` reads them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

import finalist as fl
from finalist.strategies import Strategy
from finalist.study import Study
from finalist.study.events import until_end

#: Strategies that cannot be in a study: xy-oracle is told the whole parameter, which is the answer.
EXCLUDED = {"xy-oracle"}

ARMS = fl.Arms([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.8, 0.6, 0.0]], list("abcd"))
THETA = (1.5, 0.1, 0.0)
#: Five arms of two features, without any symmetry.
FLAT_FEATURES = np.array([[1.0, 0.0], [0.3, 0.9], [-0.6, 0.7], [0.7, -0.8], [0.2, 0.2]])
FLAT = fl.Arms(FLAT_FEATURES, list("pqrst"))
FLAT_THETA = (1.2, 0.5)
MORE = fl.Arms([[0.9, 0.9]], ["u"])
FREE = fl.Arms.unstructured(["x", "y", "z"])
FREE_THETA = (1.2, 0.2, 0.0)
#: Expected rewards between 0 and 1.
CHANCES = (0.9, 0.3, 0.1)
PER_ARM = (0.2, 0.3, 0.4, 0.3)


@dataclass(frozen=True)
class Truth:
    """Measures pulls: a reward depends on the seed, the pull and its batch alone.

    Attributes
    ----------
    theta : tuple of float
    sigma : float
        Size of the noise, of all arms.
    kind : "gaussian", "bounded" or "bernoulli"
    shift : float
        Size of the constant of each batch.
    bend : float
        How far means are from the linear model: up and down in turn.
    seed : int
    """

    theta: tuple[float, ...] = THETA
    sigma: float = 0.6
    kind: str = "gaussian"
    shift: float = 0.0
    bend: float = 0.0
    seed: int = 0

    def rewards(self, study: Study, batch: Any) -> dict[int, float]:
        """Measure the pulls of a batch."""
        arms = study.arms
        means = arms.features @ np.array(self.theta)
        means += self.bend * np.where(np.arange(len(means)) % 2 == 0, 1.0, -1.0)
        shift = self.shift * np.random.default_rng([self.seed, batch.batch, 1]).standard_normal()
        return {
            pull.pull_id: self._reward(float(means[arms.index(pull.arm)] + shift), pull.pull_id)
            for pull in batch
        }

    def _reward(self, mean: float, number: int) -> float:
        rng = np.random.default_rng([self.seed, number])
        if self.kind == "bernoulli":
            return float(rng.random() < mean)
        noise = rng.standard_normal()
        return float(mean + self.sigma * (np.sign(noise) if self.kind == "bounded" else noise))


Live = Callable[[Study, Truth], None]


@dataclass(frozen=True)
class Life:
    """A study, and what happens in it.

    Attributes
    ----------
    live : callable
        Takes the study and the truth.
    strategy : Strategy or str
    words : mapping
        Other words of `Study.create`.
    arms : Arms
    truth : Truth
    seed : int
        Of the study.
    """

    live: Live
    strategy: Strategy | str = "gauntlet"
    words: Mapping[str, Any] = field(default_factory=dict)
    arms: fl.Arms = ARMS
    truth: Truth = field(default_factory=Truth)
    seed: int = 1


# ---- what can happen -------------------------------------------------------------------------


def measure(study: Study, truth: Truth, size: int | None = None) -> bool:
    """Measure the open batch, or the next one, up to its decision; False if there is none."""
    study.ask(size)
    batch = study.ask()  # all of it, also where it is given out in parts
    if not batch:
        return False
    study.tell(truth.rewards(study, batch))
    return True


def end_test(study: Study, truth: Truth) -> None:
    """Measure what is tested together: arms change after it."""
    while (rest := until_end(study._log.now())) > 0:
        assert measure(study, truth, rest)


def end(size: int | None = None, most: int = 60) -> Live:
    """Return a life that goes on until there is nothing left to ask."""

    def live(study: Study, truth: Truth) -> None:
        for _ in range(most):
            if not measure(study, truth, size):
                return
        raise AssertionError(f"{study.name!r} is not finished after {most} batches")

    return live


def middle(batches: int, size: int | None = None, told: int = 1) -> Live:
    """Return a life that ends in an open batch, with some of its rewards told."""

    def live(study: Study, truth: Truth) -> None:
        for _ in range(batches):
            assert measure(study, truth, size)
        batch = study.ask(size)
        assert len(batch) > told
        some = {pull.pull_id for pull in batch[:told]}
        rewards = truth.rewards(study, batch)
        study.tell({pull: reward for pull, reward in rewards.items() if pull in some})

    return live


def after(*lives: Live) -> Live:
    """Return one life after the other."""

    def live(study: Study, truth: Truth) -> None:
        for part in lives:
            part(study, truth)

    return live


def batches(count: int, size: int | None = None) -> Live:
    """Return a life of some whole batches."""

    def live(study: Study, truth: Truth) -> None:
        for _ in range(count):
            assert measure(study, truth, size)

    return live


def history(study: Study, truth: Truth) -> None:
    """Bring in two earlier measurements of each arm."""
    means = study.arms.features @ np.array(truth.theta)
    names = [*study.arms.names, *study.arms.names]
    values = np.concatenate([means, means + 0.01]).round(1)
    if truth.kind == "bernoulli":
        values = (values > 0.5).astype(float)
    study.import_history(list(zip(names, values.tolist(), strict=True)))


def mishaps(study: Study, truth: Truth) -> None:
    """Tell a wrong reward and mend it, void a pull, lose another, and measure the rest."""
    batch = study.ask(12)
    right = truth.rewards(study, batch)
    first, second, third = (pull.pull_id for pull in batch[:3])
    study.tell({first: 0.0 if right[first] else 1.0}, client_id=f"call {batch.batch}")
    study.amend(first, right[first], "a typing error")
    study.void(second, "the vessel broke")
    study.missing(third, "the label is gone")
    assert measure(study, truth)


def lost(count: int, size: int | None = None) -> Live:
    """Return a life of one batch of which the first pulls are lost."""

    def live(study: Study, truth: Truth) -> None:
        study.ask(size)
        for pull in study.ask()[:count]:
            study.missing(pull.pull_id, "lost")
        if study.status(forecast=False).open_pulls:
            assert measure(study, truth)

    return live


def add(arms: fl.Arms, **words: Any) -> Live:
    """Return a life in which arms are added."""

    def live(study: Study, truth: Truth) -> None:
        end_test(study, truth)
        study.add(arms, **words)

    return live


def withdraw(*names: str) -> Live:
    """Return a life in which arms are withdrawn."""

    def live(study: Study, truth: Truth) -> None:
        end_test(study, truth)
        study.withdraw(*names)

    return live


def stop(study: Study, truth: Truth) -> None:
    """Stop the study."""
    study.stop("holidays")


def resume(study: Study, truth: Truth) -> None:
    """Go on."""
    study.resume()


def remarks(study: Study, truth: Truth) -> None:
    """Tell rewards as a table with notes, twice under one name, and write a note."""
    batch = study.ask(8)
    rewards = truth.rewards(study, batch)
    table = pd.DataFrame({"pull_id": rewards.keys(), "reward": rewards.values()})
    table["note"] = [f"vessel {row}" if row % 2 else None for row in range(len(table))]
    for _ in range(2):
        study.tell(table, client_id=f"table {batch.batch}")
    study.note("the table is in")


def workers(study: Study, truth: Truth) -> None:
    """Let two workers share two batches, the second of them halfway."""
    for worker in ("Ada", "Grace", "Ada", "Grace"):
        batch = study.ask(4, worker=worker)
        study.tell(truth.rewards(study, batch))
    measure(study, truth)
    study.ask(4, worker="Ada")
    study.ask(worker="Grace")


def fork(until: int, then: Live) -> Live:
    """Return a life from which another study goes off, with one reward told anew."""

    def live(study: Study, truth: Truth) -> None:
        with study.fork(f"{study.name}, fork", until) as other:
            rewards = truth.rewards(other, other.ask())
            first = min(rewards)
            other.tell(rewards | {first: rewards[first] + 0.25})
            then(other, truth)

    return live


# ---- the lives -------------------------------------------------------------------------------


def _lives() -> dict[str, Life]:
    return {**_gauntlets(), **_gauntlet_changes(), **_others()}


def _gauntlets() -> dict[str, Life]:
    """The gauntlet with every model of noise, goal and option."""
    flat = Truth(FLAT_THETA)
    bounded = Truth(FLAT_THETA, kind="bounded")
    chances = Truth(CHANCES, kind="bernoulli")
    known: dict[str, Any] = {"sigma": 0.6}
    uneven = {"sigma": (0.5, 0.6, 0.7, 0.8, 0.6)}
    some = fl.Arms(FLAT_FEATURES, list("pqrst"), measurable=[True, True, True, False, False])
    first, others = fl.Arms(FLAT_FEATURES[:3], list("pqr")), fl.Arms(FLAT_FEATURES[3:], list("st"))
    alone = fl.Arms([[1.0, 2.0]], ["only"])
    twice = fl.Arms([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]], ["a", "b", "again", "c"])
    return {
        "nothing happened": Life(batches(0), words=known),
        "one arm": Life(end(), arms=alone, words=known),
        "gaussian": Life(end(), words=known),
        "gaussian, open": Life(middle(2, 10), words=known),
        "gaussian, small batches": Life(end(2), words=known),
        "gaussian, growth": Life(end(), fl.Gauntlet(growth=0.5), {"sigma": 0.6}),
        "gaussian, small delta": Life(end(10), words={"sigma": 0.6, "delta": 0.001}),
        "names for one arm": Life(end(), words=known, arms=twice, truth=Truth((0.2, 1.4))),
        "unknown sigma": Life(end(12), words={"sigma": None}),
        "unknown sigma, one at a time": Life(middle(3, 1, 0), words={"sigma": None}),
        "unknown sigma, min": Life(
            end(), words={"sigma": None, "objective": "min"}, arms=FLAT, truth=flat
        ),
        "sigma per arm": Life(end(), words=uneven, arms=FLAT, truth=flat),
        "sub-gaussian": Life(
            end(), words=known | {"noise": "sub-gaussian"}, arms=FLAT, truth=bounded
        ),
        "sub-gaussian per arm": Life(
            middle(2), words=uneven | {"noise": "sub-gaussian"}, arms=FLAT, truth=bounded
        ),
        "sub-gaussian, epsilon": Life(
            end(9), words={"noise": fl.SubGaussian(0.6), "epsilon": 0.2}, arms=FLAT, truth=bounded
        ),
        "bernoulli": Life(end(20), words={"noise": "bernoulli"}, arms=FREE, truth=chances),
        "bernoulli, epsilon": Life(
            end(20), words={"noise": "bernoulli", "epsilon": 0.3}, arms=FREE, truth=chances
        ),
        "bernoulli, min, open": Life(
            middle(2, 20), words={"noise": "bernoulli", "objective": "min"},
            arms=FREE, truth=chances,
        ),
        "bernoulli, top, missing": Life(
            after(batches(2, 15), lost(3, 15), batches(1, 15)),
            words={"noise": "bernoulli", "top": 2}, arms=FREE, truth=chances,
        ),
        "epsilon": Life(
            end(10), words=known | {"epsilon": 0.4}, arms=FLAT, truth=Truth(FLAT_THETA, seed=1)
        ),
        "epsilon, min, unknown sigma": Life(
            end(12), words={"sigma": None, "epsilon": 0.3, "objective": "min"},
            arms=FLAT, truth=flat,
        ),
        "top": Life(end(12), words=known | {"top": 2}, arms=FLAT, truth=flat),
        "top, min, per arm, cost": Life(
            end(), words=uneven | {"top": 3, "objective": "min", "cost": (1, 2, 3, 1, 2)},
            arms=FLAT, truth=flat,
        ),
        "top, missing": Life(
            after(batches(2, 12), lost(3, 12), middle(1, 12)), words={"sigma": 0.8, "top": 2},
            arms=FLAT, truth=flat,
        ),
        "top, unknown sigma, history": Life(
            after(history, end(12)), words={"sigma": None, "top": 2}, arms=FLAT, truth=flat
        ),
        "min": Life(end(), words=known | {"objective": "min"}, arms=FLAT, truth=flat),
        "cost": Life(end(12), words=known | {"cost": (5, 1, 2, 1)}),
        "cost, unknown sigma, open": Life(
            middle(3, 10), words={"sigma": None, "cost": (5, 1, 2, 1)}
        ),
        "measurable": Life(end(12), words=known, arms=some, truth=flat),
        "candidates": Life(
            end(12), words=known | {"candidates": others}, arms=first, truth=flat
        ),
        "candidates, epsilon, cost": Life(
            end(12), words=known | {"candidates": others, "epsilon": 0.1, "cost": (1, 2, 3)},
            arms=first, truth=flat,
        ),
        "shifts": Life(
            end(15), words=known | {"batch_intercept": True}, arms=FLAT,
            truth=Truth(FLAT_THETA, shift=5.0),
        ),
        "shifts, history, unknown sigma": Life(
            after(history, end(15)), words={"sigma": None, "batch_intercept": True}, arms=FLAT,
            truth=Truth(FLAT_THETA, shift=5.0),
        ),
        "shifts, top": Life(
            middle(3, 15), words=known | {"batch_intercept": True, "top": 2}, arms=FLAT,
            truth=Truth(FLAT_THETA, shift=5.0),
        ),
        "misspecification": Life(
            end(15), words=known | {"misspecification": 0.05}, arms=FLAT,
            truth=Truth(FLAT_THETA, bend=0.05),
        ),
        "misspecification, per arm": Life(
            end(15), words=uneven | {"misspecification": 0.05}, arms=FLAT,
            truth=Truth(FLAT_THETA, bend=0.05),
        ),
        "misspecification, top, open": Life(
            middle(3, 15), words=known | {"misspecification": 0.05, "top": 2}, arms=FLAT,
            truth=Truth(FLAT_THETA, bend=0.05),
        ),
        "misspecification, epsilon, unknown sigma": Life(
            end(15), words={"sigma": None, "misspecification": 0.03, "epsilon": 0.2}, arms=FLAT,
            truth=Truth(FLAT_THETA, bend=0.03),
        ),
        "many options": Life(
            end(20),
            words=uneven | {
                "cost": (1, 2, 3, 1, 2), "batch_intercept": True, "misspecification": 0.02,
                "epsilon": 0.2, "objective": "min",
            },
            arms=FLAT, truth=Truth(FLAT_THETA, bend=0.02, shift=2.0),
        ),
        "limited pulls": Life(
            end(9), words={"sigma": 2.0, "max_pulls_per_arm": 6}, truth=Truth(sigma=2.0)
        ),
        "limited pulls, missing": Life(
            after(lost(2, 9), end(9)), words={"sigma": 2.0, "max_pulls_per_arm": 6},
            truth=Truth(sigma=2.0),
        ),
        "limited pulls, winner": Life(end(8), words=known | {"max_pulls_per_arm": 30}),
        "budget": Life(end(10), words={"sigma": 2.0, "budget": 34}, truth=Truth(sigma=2.0)),
        "budget, missing, open": Life(
            after(lost(2, 10), middle(1, 10)), words={"sigma": 2.0, "budget": 44},
            truth=Truth(sigma=2.0),
        ),
    }  # fmt: skip


def _gauntlet_changes() -> dict[str, Life]:
    """The gauntlet in studies in which something happens."""
    flat = Truth(FLAT_THETA)
    noisy: dict[str, Any] = {"sigma": 0.6}
    loud = Truth(FLAT_THETA, sigma=0.6)
    chances = Truth(CHANCES, kind="bernoulli")
    uneven = {"sigma": (0.5, 0.6, 0.7, 0.8, 0.6), "cost": (1, 2, 3, 1, 2)}
    unseen = fl.Arms([[0.9, 0.9], [0.1, 1.1]], ["u", "v"], measurable=[False, True])
    return {
        "history": Life(after(history, end(10)), words=noisy, arms=FLAT, truth=loud),
        "mishaps": Life(after(mishaps, mishaps, middle(1, 12)), words={"sigma": 0.9}),
        "bernoulli, mishaps, epsilon": Life(
            after(mishaps, end(20)), words={"noise": "bernoulli", "epsilon": 0.3},
            arms=FREE, truth=chances,
        ),
        "pilot lost": Life(after(lost(12, 12), lost(5, 12), end(12)), words=noisy),
        "unknown sigma, missing": Life(
            after(batches(1), lost(4, 12), end(12)), words={"sigma": None}
        ),
        "remarks": Life(after(remarks, batches(2, 12), remarks), words={"sigma": 0.9}),
        "workers": Life(workers, words={"sigma": 0.9}, truth=Truth(sigma=0.9)),
        "stopped": Life(after(batches(3, 12), stop), words={"sigma": 0.9}, truth=Truth(sigma=0.9)),
        "stopped in a batch": Life(
            after(middle(2, 12), stop), words={"sigma": 0.9}, truth=Truth(sigma=0.9)
        ),
        "resumed": Life(
            after(batches(2, 12), stop, resume, end(12)), words=noisy, truth=Truth(sigma=0.6)
        ),
        "added": Life(
            after(batches(2, 10), add(MORE), end(12)), words=noisy, arms=FLAT, truth=loud
        ),
        "added at once": Life(after(add(MORE), end(10)), words=noisy, arms=FLAT, truth=loud),
        "added, open": Life(
            after(batches(2, 10), add(MORE), middle(1, 12)), words=noisy, arms=FLAT, truth=loud
        ),
        "added, unknown sigma": Life(
            after(batches(2, 12), add(MORE), end(15)), words={"sigma": None}, arms=FLAT, truth=loud
        ),
        "added, per arm, cost": Life(
            after(batches(2, 12), add(MORE, sigma=0.6, cost=2.0), end(12)), words=uneven,
            arms=FLAT, truth=flat,
        ),
        "added, roles": Life(
            after(batches(2, 10), add(unseen), end(12)), words=noisy, arms=FLAT, truth=loud
        ),
        "added, misspecification, epsilon": Life(
            after(batches(2, 12), add(MORE), end(15)),
            words=noisy | {"misspecification": 0.02, "epsilon": 0.3}, arms=FLAT,
            truth=Truth(FLAT_THETA, sigma=0.6, bend=0.02),
        ),
        "added, bernoulli": Life(
            after(batches(1, 12), add(fl.Arms([[0.5, 0.5, 0.0]], ["w"])), end(20)),
            words={"noise": "bernoulli"}, arms=FREE, truth=chances,
        ),
        "withdrawn": Life(
            after(batches(3, 10), withdraw("r"), end(12)), words=noisy, arms=FLAT, truth=loud
        ),
        "withdrawn, best": Life(
            after(batches(2, 10), withdraw("p", "s"), middle(1, 8)), words=noisy, arms=FLAT,
            truth=loud,
        ),
        "withdrawn, epsilon": Life(
            after(batches(2, 10), withdraw("t"), end(12)), words=noisy | {"epsilon": 0.1},
            arms=FLAT, truth=loud,
        ),
        "withdrawn, per arm, cost, shifts": Life(
            after(batches(2, 12), withdraw("q"), end(15)), words=uneven | {"batch_intercept": True},
            arms=FLAT, truth=Truth(FLAT_THETA, shift=3.0),
        ),
        "withdrawn, history, unknown sigma, min": Life(
            after(history, batches(2, 12), withdraw("s"), end(15)),
            words={"sigma": None, "objective": "min"}, arms=FLAT, truth=loud,
        ),
        "withdrawn, budget, missing": Life(
            after(batches(1, 10), lost(2, 10), withdraw("t"), end(10)),
            words={"sigma": 2.0, "budget": 45}, arms=FLAT, truth=Truth(FLAT_THETA, sigma=2.0),
        ),
        "withdrawn, limited pulls": Life(
            after(batches(2, 10), withdraw("q"), end(10)),
            words={"sigma": 2.0, "max_pulls_per_arm": 12}, arms=FLAT,
            truth=Truth(FLAT_THETA, sigma=2.0),
        ),
        "added and withdrawn twice": Life(
            after(
                batches(2, 10), add(MORE), batches(1, 12), withdraw("q"), batches(1, 12),
                add(fl.Arms([[-0.9, 0.1]], ["x"])), withdraw("t"), end(12),
            ),
            words=noisy, arms=FLAT, truth=loud,
        ),
        "forked": Life(
            after(batches(4, 10), fork(3, middle(1, 10))), words={"sigma": 0.9},
            truth=Truth(sigma=0.9),
        ),
        "forked after changes": Life(
            after(
                history, remarks, batches(1, 10), add(MORE), batches(1, 12), withdraw("t"),
                batches(2, 12), fork(4, end(12)),
            ),
            words={"sigma": 0.9}, arms=FLAT, truth=Truth(FLAT_THETA, sigma=0.9),
        ),
        "forked, epsilon, unknown sigma": Life(
            after(batches(3, 12), fork(2, end(12))), words={"sigma": None, "epsilon": 0.1},
            arms=FLAT, truth=loud,
        ),
    }  # fmt: skip


#: The strategies of the literature with all their choices.
OTHERS: dict[str, Strategy | str] = {
    "uniform": "uniform",
    "uniform, soare": fl.Uniform(bound="soare"),
    "g": "g",
    "g, greedy": fl.GAllocation(allocation="greedy"),
    "xy": "xy",
    "xy, soare": fl.XYAllocation(bound="soare"),
    "xy, greedy": fl.XYAllocation(allocation="greedy"),
    "v": "v",
    "xy-adaptive": "xy-adaptive",
    "xy-adaptive, greedy": fl.XYAdaptive(alpha=0.5, allocation="greedy"),
    "fully-adaptive": fl.FullyAdaptive(theta_norm=1.0),
    "od-linbai": "od-linbai",
    "gse": "gse",
    "gse, eta": fl.GSE(eta=3),
    "peace": "peace",
    "g-budget": "g-budget",
    "rage": fl.RAGE(first_gap=2.0),
    "lingape": fl.LinGapE(theta_norm=1.0),
    "lingape, ratio": fl.LinGapE(theta_norm=1.0, selection="ratio", threshold="heuristic"),
    "lingame": fl.LinGame(theta_norm=1.0),
    "lingame, determinant": fl.LinGame(theta_norm=1.0, threshold="determinant"),
    "lazy-ts": "lazy-ts",
    "lazy-ts, heuristic": fl.LazyTS(threshold="heuristic"),
    "track-and-stop": "track-and-stop",
    "track-and-stop, C": fl.TrackAndStop(tracking="C", threshold="heuristic"),
}
BUDGETED = {"od-linbai", "gse", "peace", "g-budget"}
#: Who takes a sigma for each arm and arms that cannot be pulled, and who a cost too.
UNEVEN = {"fully-adaptive", "rage", "lingape", "lingame", "lazy-ts", "xy-adaptive"}
STATIC = {"uniform", "g", "xy", "v"}


def _others() -> dict[str, Life]:
    """The strategies of the literature: to the end, in the middle, and with what they can do."""
    lives = {}
    for name, strategy in OTHERS.items():
        kind = name.split(",")[0]
        arms, theta = (FREE, FREE_THETA) if kind == "track-and-stop" else (ARMS, THETA)
        more: dict[str, Any] = {"budget": 40} if kind in BUDGETED else {}
        sigma = 0.15 if name.endswith("soare") else 0.3
        truth = Truth(theta, sigma)
        size = None if kind in BUDGETED else 12
        lives[name] = Life(end(size), strategy, {"sigma": sigma, **more}, arms, truth)
        lives[f"{name}, open"] = Life(
            after(lost(1, 7), middle(1, 7)), strategy,
            {"sigma": 0.9, "epsilon": 0.05, "objective": "min", **more}, arms, truth,
        )  # fmt: skip
        if "," in name:
            continue
        lives[f"{name}, bernoulli"] = Life(
            end(20), strategy, {"noise": "bernoulli", "epsilon": 0.2, **more}, FREE,
            Truth(CHANCES, kind="bernoulli"),
        )  # fmt: skip
        lives[f"{name}, sub-gaussian"] = Life(
            after(mishaps, middle(0, 10, 0)), strategy,
            {"sigma": 0.9, "noise": "sub-gaussian", **more}, arms,
            Truth(theta, sigma=0.9, kind="bounded"),
        )  # fmt: skip
        if kind in BUDGETED:
            lives[f"{name}, unknown sigma"] = Life(
                after(lost(1, 9), end(9)), strategy, {"sigma": None, **more}, arms, truth
            )
        if kind in UNEVEN | STATIC:
            roles = fl.Arms(ARMS.features, list("abcd"), measurable=[True, True, True, False])
            words: dict[str, Any] = {"sigma": PER_ARM}
            if kind in STATIC:
                words["cost"] = (1, 2, 1, 3)
            lives[f"{name}, per arm, measurable"] = Life(end(12), strategy, words, roles, truth)
    lives["uniform, forked"] = Life(
        after(batches(2, 8), fork(2, middle(0, 8))), "uniform", {"sigma": 2.0}
    )
    lives["g-budget, forked"] = Life(
        after(batches(2, 9), fork(1, end(9))), "g-budget", {"sigma": 0.5, "budget": 30}
    )
    lives["lingape, budget"] = Life(
        end(6), fl.LinGapE(theta_norm=1.0), {"sigma": 2.0, "budget": 20}, truth=Truth(sigma=2.0)
    )
    return lives


LIVES = _lives()
#: Strategies that version 0.1.0 did not have.
LATER = {"bechhofer", "rinott", "kn", "biz", "sequential-halving", "top-two"}
