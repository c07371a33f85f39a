"""Truths that bend, and straight ones: means of candidates for studies that assume straight lines.

    from benchmarks.models.families import FAMILIES, drawn

    drawn(FAMILIES["dome"], number=0).means

A truth is a shape over columns scaled to [-1, 1], with its own parameters, scaled so that means
spread over 2.5 to 5 sigma (`Family.spread`). A bent one is taken if the best straight fit to the
true means of all candidates names a wrong winner, by a tenth of sigma or more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from jaxtyping import Float

import finalist as fl

#: Takes columns in [-1, 1] and draws its parameters.
Shape = Callable[[Float[np.ndarray, "K p"], np.random.Generator], Float[np.ndarray, " K"]]
#: The loss by which the winner of a straight fit is wrong, in sigma.
LEAST_LOSS = 0.1
SPREAD = (2.5, 5.0)
SIZES = (4, 8, 12, 24)
#: What does not matter is such a part of the spread of the means.
MARGIN = (0.1, 0.3)


@dataclass(frozen=True)
class Family:
    """Shapes of one kind.

    Attributes
    ----------
    name : str
    shape : callable
    group : "linear", "tuned" or "held out", or one of these with a margin
    tables : tuple of str
        The tables of candidates, in turn.
    model : str
        What the study assumes.
    spread : (float, float)
        Between which the means spread, in sigma: larger where a study would take hundreds of
        measurements otherwise.
    margin : (float, float), optional
        Between which parts of the spread is what does not matter; a winner within it is right.
    """

    name: str
    shape: Shape
    group: str
    tables: tuple[str, ...] = ("5 x 5", "4 x 4 x 3", "30 x 3")
    model: str = "straight"
    spread: tuple[float, float] = SPREAD
    margin: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Truth:
    """One study: candidates, their means for a sigma of 1, its margin, and how it is measured."""

    arms: fl.Arms
    means: Float[np.ndarray, " K"]
    size: int
    known: bool
    epsilon: float = 0.0

    def loss(self, arm: int) -> float:
        """How much worse than the best an arm is, beyond the margin."""
        return max(float(self.means.max() - self.means[arm]) - self.epsilon, 0.0)


@cache
def table(name: str, model: str) -> fl.Arms:
    """Return candidates with a model."""
    rng = np.random.default_rng(abs(hash_of(name)))
    if name == "40 x 5":
        columns = rng.uniform(-1.0, 1.0, (40, 5))
    elif name == "30 x 3":
        columns = rng.uniform(-1.0, 1.0, (30, 3))
    elif name == "categories":
        return categories(model)
    else:
        levels = [np.linspace(-1.0, 1.0, int(n)) for n in name.split(" x ")]
        columns = np.array(list(product(*levels)))
    return fl.Arms(columns).with_intercept().with_model(model)


@cache
def categories(model: str) -> fl.Arms:
    """Return four materials at five doses."""
    cells = list(product("ABCD", np.linspace(-1.0, 1.0, 5)))
    rows = {
        "name": [f"{material} {dose:g}" for material, dose in cells],
        "material": [material for material, _ in cells],
        "dose": [float(dose) for _, dose in cells],
    }
    import pandas as pd

    return fl.Arms.from_table(pd.DataFrame(rows), model=model)


def hash_of(name: str) -> int:
    """Return a number for a name, the same in every process."""
    return int.from_bytes(name.encode()[-6:], "big")


def drawn(family: Family, number: int) -> Truth:
    """Return the truth of a study of a family by its number."""
    rng = np.random.default_rng([hash_of(family.name), number])
    name = family.tables[number % len(family.tables)]
    arms = table(name, family.model)
    U = base(name)
    part = rng.uniform(*family.margin) if family.margin else 0.0
    while True:
        means = family.shape(U, rng)
        spread = rng.uniform(*family.spread)
        means = (means - means.mean()) / float(means.max() - means.min()) * spread
        straight, epsilon = family.group.startswith("linear"), part * spread
        if straight and not family.margin and near_tie(means):
            continue
        if straight or wrong_by(arms, means) >= epsilon + LEAST_LOSS:
            break
    size = int(rng.choice(SIZES))
    return Truth(arms, means, size, number % 2 == 0, epsilon)


@cache
def base(name: str) -> Float[np.ndarray, "K p"]:
    """Return the columns of a table, those of categories as contrasts."""
    features = table(name, "straight").features
    moves = np.ptp(features, axis=0) > 0.0
    return np.asarray(features[:, moves])


def wrong_by(arms: fl.Arms, means: Float[np.ndarray, " K"]) -> float:
    """Return the loss of the winner of the model's fit to the true means."""
    Z = arms.coordinates
    fitted = Z @ np.linalg.lstsq(Z, means, rcond=None)[0]
    return float(means.max() - means[int(fitted.argmax())])


def near_tie(means: Float[np.ndarray, " K"]) -> bool:
    """Tell whether the two best are so close that a study may take hundreds of measurements."""
    best = np.sort(means)[-2:]
    return bool(best[1] - best[0] < 0.15)


# ---- shapes --------------------------------------------------------------------------------


def _slopes(U: np.ndarray, rng: np.random.Generator, size: float = 1.0) -> np.ndarray:
    return np.asarray(U @ rng.normal(0.0, size, U.shape[1]))


def _line(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    t = U @ rng.normal(size=U.shape[1])
    return np.asarray(t / np.abs(t).max())


def linear(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw straight lines."""
    return _slopes(U, rng)


def flat_and_steep(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw straight lines of which half are nearly flat."""
    keep = np.asarray(rng.random(U.shape[1]) < 0.5)
    keep[rng.integers(U.shape[1])] = True
    return np.asarray(U @ (rng.normal(size=U.shape[1]) * np.where(keep, 1.0, 0.15)))


def quadratic(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw squares beside slopes, which the model bending has."""
    return _slopes(U, rng) + np.asarray((U**2) @ rng.normal(size=U.shape[1]))


def dome(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Have a best setting inside, in all columns."""
    top, width = rng.uniform(-0.6, 0.6, U.shape[1]), rng.uniform(0.5, 1.5, U.shape[1])
    return np.asarray(-((width * (U - top)) ** 2).sum(axis=1))


def centred_dome(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Have a best setting in the middle of all columns, so that no straight line has a slope."""
    return np.asarray(-((rng.uniform(0.5, 1.5, U.shape[1]) * U) ** 2).sum(axis=1))


def dome_in_one(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Have a best setting inside in one column, straight lines in the others."""
    i = rng.integers(U.shape[1])
    others = np.delete(U, i, axis=1)
    return _slopes(others, rng, 0.5) - 2.0 * (U[:, i] - rng.uniform(-0.5, 0.5)) ** 2


def crossing(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Multiply two columns, and add small slopes."""
    i, j = rng.choice(U.shape[1], 2, replace=False)
    return np.asarray(_slopes(U, rng, 0.3) + rng.choice([-1.0, 1.0]) * U[:, i] * U[:, j])


def kink(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Go up along a line to a point, and down again."""
    t, at = _line(U, rng), rng.uniform(-0.4, 0.6)
    return np.where(t < at, t - at, rng.uniform(0.5, 2.0) * (at - t))


def ridge(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Climb a long slope whose sides fall."""
    direction = np.asarray(rng.normal(size=U.shape[1]))
    direction = np.asarray(direction / np.linalg.norm(direction))
    along = U @ direction
    aside = U - np.outer(along, direction) - rng.uniform(-0.3, 0.3, U.shape[1])
    return np.asarray(0.5 * along - 1.5 * (aside**2).sum(axis=1))


def plateau(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Go up to a plateau that falls slowly."""
    t, at = _line(U, rng), rng.uniform(-0.5, 0.3)
    up_and_down = np.where(t < at, t - at, -rng.uniform(0.05, 0.3) * (t - at))
    return np.asarray(up_and_down + _slopes(U, rng, 0.05))


def s_curve(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw an S along one line, against a slope."""
    t = _line(U, rng)
    curve = np.tanh(rng.uniform(2.0, 5.0) * (t - rng.uniform(-0.4, 0.4)))
    return np.asarray(curve - rng.uniform(0.2, 0.8) * t)


def threshold(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Jump once, and add slopes."""
    t = _line(U, rng)
    return np.asarray(np.where(t > rng.uniform(-0.5, 0.5), 1.0, 0.0) + _slopes(U, rng, 0.4))


def hill(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Put a round hill into a plain that slopes."""
    top, width = rng.uniform(-0.7, 0.7, U.shape[1]), rng.uniform(0.4, 0.9)
    hump = np.exp(-((U - top) ** 2).sum(axis=1) / (2 * width**2))
    return np.asarray(hump + _slopes(U, rng, 0.1))


def wave(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw waves along a line."""
    t = _line(U, rng)
    phase = rng.uniform(0.0, 2.0 * np.pi)
    return np.sin(rng.uniform(2.0, 4.5) * t + phase) + rng.uniform(0.0, 0.6) * t


def interaction(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Make a dose good for some materials and bad for others."""
    slope = np.append(0.0, rng.normal(0.0, 1.0, U.shape[1] - 1))
    material = np.column_stack([1.0 - U[:, :-1].sum(axis=1), U[:, :-1]])
    return np.asarray(
        U[:, -1] * (material @ slope) + 0.3 * (material @ rng.normal(size=U.shape[1]))
    )


def cubic(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Add cubes and a product to squares."""
    i, j = rng.choice(U.shape[1], 2, replace=False)
    bent = rng.normal(size=U.shape[1])
    return np.asarray(
        _slopes(U, rng, 0.6)
        + (U**2) @ rng.normal(0.0, 0.4, U.shape[1])
        + ((U**3) - 0.6 * U) @ (1.5 * bent)
        + rng.normal() * U[:, i] * U[:, j]
    )


_ALL = ("5 x 5", "4 x 4 x 3", "30 x 3", "3 x 3", "40 x 5")
_GRIDS = ("5 x 5", "4 x 4 x 3")
_LIST = (
    Family("straight", linear, "linear", _ALL),
    Family("half flat", flat_and_steep, "linear", _ALL),
    Family("straight, categories", linear, "linear", ("categories",)),
    Family("squares, model bending", quadratic, "linear", _GRIDS, "bending", (5.0, 10.0)),
    Family("dome", dome, "tuned"),
    Family("dome in one column", dome_in_one, "tuned"),
    Family("crossing", crossing, "tuned"),
    Family("kink", kink, "tuned"),
    Family("ridge", ridge, "held out"),
    Family("plateau", plateau, "held out"),
    Family("S-curve", s_curve, "held out"),
    Family("threshold", threshold, "held out"),
    Family("hill", hill, "held out"),
    Family("wave", wave, "held out"),
    Family("dome, 3 x 3 and 40 x 5", dome, "held out", ("3 x 3", "40 x 5")),
    Family("hill, 3 x 3 and 40 x 5", hill, "held out", ("3 x 3", "40 x 5")),
    Family(
        "interaction of categories", interaction, "held out", ("categories",), spread=(6.0, 12.0)
    ),
    Family("cubes, model bending", cubic, "held out", _GRIDS, "bending", (8.0, 16.0)),
    Family("straight, a margin", linear, "linear, a margin", _ALL, margin=MARGIN),
    Family("flat, a margin", linear, "linear, a margin", margin=(1.0, 2.0), spread=(0.3, 1.0)),
    Family("dome, a margin", dome, "tuned, a margin", margin=MARGIN),
    Family("dome in the middle, a margin", centred_dome, "tuned, a margin", margin=MARGIN),
    Family("kink, a margin", kink, "held out, a margin", margin=MARGIN),
    Family("plateau, a margin", plateau, "held out, a margin", margin=MARGIN),
    Family("threshold, a margin", threshold, "held out, a margin", margin=MARGIN),
    Family("wave, a margin", wave, "held out, a margin", margin=MARGIN),
)
FAMILIES: Mapping[str, Family] = {family.name: family for family in _LIST}
