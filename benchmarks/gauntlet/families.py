"""The instances: families scaled to given lower bounds, ten that stand alone, and eight held out.

There are two sets, and no instance is in both. Settings may be tuned on the first; the second is
for measuring what came out. Within a family, ten seeds draw the arms (where they are random) and
the parameter. The lower bound T* kl(delta, 1 - delta) is proportional to 1/|theta|^2, so scaling
theta gives any bound exactly. Sizes are lower bounds at delta = 0.05; at delta = 0.001 the
instances are the same, and their pulls are compared with their own bound there.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Literal, NamedTuple

import numpy as np

import finalist as fl
from finalist.errors import TiedArmsError
from finalist.simulation import instances
from finalist.simulation.instances import Instance, between, fan, given, random_theta, unstructured

DELTAS = (0.05, 0.001)
#: Lower bounds that families are scaled to, at the first delta.
BOUNDS = (5, 20, 60, 200, 1_000)
SEEDS = 10
#: Runs of an instance: of one of a family's ten, and of one that stands alone.
RUNS, RUNS_ALONE = 50, 250
Set = Literal["tuning", "held-out"]
SETS: tuple[Set, ...] = ("tuning", "held-out")


#: The arms of each family, by a seed.
FAMILIES: dict[str, Callable[[int], np.ndarray]] = {
    "sphere, 20 x 5": lambda seed: instances.unit_sphere(20, 5, seed),
    "Gaussian, 40 x 8": lambda seed: instances.gaussian(40, 8, seed),
    "unstructured, 6": lambda _: np.eye(6),
    "factorial, 3 x 3 x 4": lambda _: instances.one_hot_factorial((3, 3, 4)),
    "quadratic, 5 x 5": lambda _: instances.quadratic_grid(2, 5),
}
TUNED: dict[str, Callable[[], Instance]] = {
    "paper, omega = 0.1": lambda: instances.paper(5, 0.1),
    "paper, omega = 0.01": lambda: instances.paper(5, 0.01),
    "sphere, 20 x 5": lambda: between(instances.unit_sphere(20, 5, 1)),
    "sphere, 50 x 5": lambda: between(instances.unit_sphere(50, 5, 2)),
    "sphere, 50 x 10": lambda: between(instances.unit_sphere(50, 10, 3)),
    "unstructured, 1 close": lambda: unstructured([1.0, 0.8, *[0.0] * 8]),
    "unstructured, 5 close": lambda: unstructured([1.0, 0.8, 0.79, 0.78, 0.77, 0.76, *[0.0] * 4]),
    "Gaussian, 100 x 8": lambda: random_theta(instances.gaussian(100, 8, 4), 5),
    "cube, 2^6": lambda: given("cube", instances.hypercube(6), [0.25, 0.2, 0.15, 0.15, 0.1, 0.1]),
    "plane, 60 arms": lambda: fan(60, 11),
}
HELD_OUT: dict[str, Callable[[], Instance]] = {
    "paper, d = 8, omega = 0.03": lambda: instances.paper(8, 0.03),
    "sphere, 30 x 6": lambda: between(instances.unit_sphere(30, 6, 21)),
    "sphere, 80 x 4": lambda: random_theta(instances.unit_sphere(80, 4, 22), 23),
    "unstructured, geometric gaps": lambda: unstructured(
        1.0 - 0.1 * 1.6 ** np.arange(8) * (np.arange(8) > 0)
    ),
    "Gaussian, 40 x 12": lambda: random_theta(instances.gaussian(40, 12, 24), 25),
    "factorial, 3 x 3 x 4": lambda: given(
        "factorial",
        instances.one_hot_factorial((3, 3, 4)),
        [0.0, 0.5, 0.2, 0.0, 0.4, 0.3, 0.0, 0.6, 0.3, 0.1, 0.0],
    ),
    "quadratic, 2 factors": lambda: given(
        "quadratic", instances.quadratic_grid(2, 5), [0.0, 0.3, 0.2, -0.5, -0.4, 0.1]
    ),
    "plane, 40 arms": lambda: fan(40, 26),
}
ALONE: dict[Set, dict[str, Callable[[], Instance]]] = {"tuning": TUNED, "held-out": HELD_OUT}


class Numbered(NamedTuple):
    """An instance, and the seed of its runs: no two instances share their noise."""

    instance: Instance
    seed: int


class Spec(NamedTuple):
    """What a cell is: instances with the same lower bound, at one delta.

    `size` is the lower bound at the first delta, by which families are named; None for an instance
    that stands alone.
    """

    which: Set
    name: str
    size: float | None
    delta: float
    numbered: tuple[Numbered, ...]

    @property
    def title(self) -> str:
        """One line for people."""
        size = "" if self.size is None else f", bound {self.size:,g}"
        return f"{self.which}, {self.name}{size}, delta {self.delta:g}"


def lower_bound(instance: Instance, delta: float) -> float:
    """Return T* kl(delta, 1 - delta) with sigma = 1."""
    bound = fl.complexity(instance.arms, instance.theta, delta=delta, sigma=1.0).lower_bound
    return float(bound)


@cache
def drawn(name: str, which: Set, k: int) -> Numbered:
    """Return the instance of a family with number k, with a lower bound of 1 at the first delta.

    A draw with tied best arms has no bound and is drawn again.
    """
    place = (SETS.index(which), list(FAMILIES).index(name), k)
    rng = np.random.default_rng((23, *place))
    while True:
        X = FAMILIES[name](int(rng.integers(2**31)))
        instance = given(name, X, np.asarray(rng.standard_normal(X.shape[1])))
        try:
            bound = lower_bound(instance, DELTAS[0])
        except TiedArmsError:
            continue
        seed = 1_000 * (1 + place[0]) + 100 * place[1] + k
        return Numbered(replace(instance, theta=instance.theta * np.sqrt(bound)), seed)


def family(name: str, which: Set, size: float, delta: float, seeds: int = SEEDS) -> Spec:
    """Return the cell of a family whose lower bound at the first delta is `size`."""
    parts = [drawn(name, which, k) for k in range(seeds)]
    numbered = tuple(
        Numbered(replace(instance, theta=instance.theta / np.sqrt(size)), seed)
        for instance, seed in parts
    )
    return Spec(which, name, size, delta, numbered)


def alone(name: str, which: Set, delta: float) -> Spec:
    """Return the cell of an instance that stands alone."""
    seed = 100 * (1 + SETS.index(which)) + list(ALONE[which]).index(name)
    return Spec(which, name, None, delta, (Numbered(ALONE[which][name](), seed),))


def families(
    sets: Iterable[Set], sizes: Iterable[float], deltas: Iterable[float], only: str = ""
) -> Iterator[Spec]:
    """Return the cells of all families whose name contains `only`."""
    for which, delta, size in product(sets, deltas, sizes):
        for name in FAMILIES:
            if only in name:
                yield family(name, which, size, delta)


def those_alone(sets: Iterable[Set], deltas: Iterable[float], only: str = "") -> Iterator[Spec]:
    """Return the cells of instances that stand alone and whose name contains `only`."""
    for which, delta in product(sets, deltas):
        for name in ALONE[which]:
            if only in name:
                yield alone(name, which, delta)
