"""What a model of the mean leaves out: columns that would bend it, and how they may be joined.

A straight model may miss squares and products of its columns; one with squares their cubes and
further products; categories may interact. Each such column is taken without what the model can say
of it (its least-squares fit over all arms); what vanishes then is no bend.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np

from finalist.arms import Arms
from finalist.arms.recipes import Recipe
from finalist.compiled.threads import on_one_thread, size_of_arms
from finalist.shapes import Float
from finalist.text import listed

#: The most columns of squares and products that are looked for.
MAX_BENDS = 60
#: Of more columns than this, these many directions in which arms differ most are bent.
DIRECTIONS = 10
#: A column of which less is left than this part is what the model says already.
VANISHES = 1e-8
#: The part of the weight for all bends at once; the rest is for each alone.
TOGETHER = 0.1
#: Bends are taken to be of at least so many sigma, and at most. With a smaller least size a dome
#: whose top is in the middle is hardly looked for, since its slopes are 0: one of 10 sigma was seen
#: after 144 pulls with 0.1, and after 20 with this (medians of 16 studies).
SMALLEST, LARGEST = 0.6, 100.0
#: With a margin, of at least so many margins: smaller bends hide nothing that matters.
MARGINS = 2.0


@dataclass(frozen=True, eq=False)
class Bends:
    """Columns that a model of the mean leaves out.

    Attributes
    ----------
    columns : (K, q) array
        Without their least-squares fit on the features of the arms that can be measured.
    base : (K, p) array
        What is bent: columns scaled to [-1, 1].

    Examples
    --------
    >>> import numpy as np
    >>> dose = np.array([0.0, 1.0, 2.0, 0.0, 1.0, 2.0])
    >>> arms = Arms(np.column_stack([dose, [0, 0, 0, 1, 1, 1]])).with_intercept()
    >>> Bends.of(arms).names
    ('f1^2', 'f1 * f2')
    >>> Bends.of(Arms.unstructured(3)).names
    ()
    """

    columns: Float[np.ndarray, "K q"]
    names: tuple[str, ...]
    base: Float[np.ndarray, "K p"]
    base_names: tuple[str, ...]

    @classmethod
    def of(cls, arms: Arms) -> "Bends":
        """Return what the model of some arms leaves out; nothing if each stands on its own."""
        return _bends(arms, arms.recipe.name)  # arms are equal whatever their recipe

    @property
    def count(self) -> int:
        """The number of columns."""
        return len(self.names)

    @cached_property
    def weights(self) -> Float[np.ndarray, " c"]:
        """The weight of each bend alone, and last of all at once."""
        q = self.count
        return np.append(np.full(q, (1.0 - TOGETHER) / max(q, 1)), TOGETHER)

    def size(self, means: Float[np.ndarray, " K"], sigma: float, epsilon: float = 0.0) -> float:
        """Return how large bends may be, in sigma: as the largest slope of the means.

        Or as what matters: where all means are within a margin by the model, that a bend would be
        as small as its slopes is no more than a guess.
        """
        U = np.column_stack([np.ones(len(means)), self.base])
        level = means.mean()
        slopes = np.linalg.lstsq(U, means - level, rcond=None)[0][1:]
        with np.errstate(over="ignore"):
            h = float(np.abs(slopes).max(initial=0.0)) / sigma
            least = max(SMALLEST, MARGINS * epsilon / sigma)
        return min(max(h, least), LARGEST) if np.isfinite(h) else 1.0

    def words(self) -> str:
        """Name what is looked for."""
        kinds = [
            word
            for word, sign in (("squares", "^2"), ("cubes", "^3"), ("products", " * "))
            if any(sign in name for name in self.names)
        ]
        if any(name == CONSTANT for name in self.names):
            kinds.append("a constant")
        return listed(kinds)


CONSTANT = "a constant"


@lru_cache(maxsize=16)
@on_one_thread(size_of_arms)
def _bends(arms: Arms, recipe: str) -> Bends:
    base, names = _base(arms)
    made: dict[str, Float[np.ndarray, " K"]] = {}
    if base.shape[1] > 0 and arms.rank < len(arms):
        made[CONSTANT] = np.ones(len(arms))
        cubic = recipe in ("bending", "surface")
        for i, name in enumerate(names):
            made[f"{name}^2"] = base[:, i] ** 2
        for i, j in combinations(range(len(names)), 2):
            made[f"{names[i]} * {names[j]}"] = base[:, i] * base[:, j]
        if cubic:
            for i, name in enumerate(names):
                made[f"{name}^3"] = base[:, i] ** 3
            for i, one in enumerate(names):
                for j, other in enumerate(names):
                    if i != j:
                        made[f"{one}^2 * {other}"] = base[:, i] ** 2 * base[:, j]
    kept = dict(_left(arms, made))
    some = list(kept)[:MAX_BENDS]
    columns = np.column_stack([kept[name] for name in some]) if some else np.empty((len(arms), 0))
    columns.setflags(write=False)
    return Bends(columns, tuple(some), base, names)


def _left(
    arms: Arms, made: dict[str, Float[np.ndarray, " K"]]
) -> list[tuple[str, Float[np.ndarray, " K"]]]:
    """Return what is left of columns without their fit on what can be measured.

    Those that no measurement shows are left out, and those that one before says already.
    """
    Z, some = arms.coordinates, arms.measurable
    Q, R = np.linalg.qr(Z[some])
    to_fit = np.linalg.pinv(R) @ Q.T
    left: list[tuple[str, Float[np.ndarray, " K"]]] = []
    units: list[Float[np.ndarray, " n"]] = []
    for name, column in made.items():
        rest = column - Z @ (to_fit @ column[some])
        rest = rest - Z @ (to_fit @ rest[some])
        size = float(np.linalg.norm(rest[some]))
        if size <= VANISHES * max(float(np.linalg.norm(column[some])), VANISHES):
            continue
        unit = rest[some] / size
        if all(1.0 - abs(float(unit @ other)) > VANISHES for other in units):
            left.append((name, rest))
            units.append(unit)
    return left


def _base(arms: Arms) -> tuple[Float[np.ndarray, "K p"], tuple[str, ...]]:
    """Return the columns that may bend, scaled to [-1, 1]; none if each arm stands on its own."""
    recipe, X, names = arms.recipe, arms.features, arms.feature_names
    if recipe.name == "separate":
        return np.empty((len(arms), 0)), ()
    if recipe.name in ("bending", "surface"):
        kept = [i for i, name in enumerate(names) if _is_plain(name, recipe)]
        X, names = X[:, kept], tuple(names[i] for i in kept)
    low, high = X.min(axis=0), X.max(axis=0)
    half, middle = high / 2 - low / 2, high / 2 + low / 2
    moves = np.flatnonzero((half > 0.0) & (half > VANISHES * np.abs(middle)))
    U = (X[:, moves] - middle[moves]) / half[moves]
    found = tuple(names[i] for i in moves)
    if len(found) <= DIRECTIONS:
        return U, found
    _, _, axes = np.linalg.svd(U - U.mean(axis=0), full_matrices=False)
    U = (U - U.mean(axis=0)) @ axes[:DIRECTIONS].T
    U = U / np.abs(U).max(axis=0)
    return U, tuple(f"direction {i}" for i in range(1, U.shape[1] + 1))


def _is_plain(name: str, recipe: Recipe) -> bool:
    """Tell whether a feature is a column, or a contrast of one, and no square or product."""
    plain = Recipe("straight", recipe.columns, levels=recipe.levels)
    return name in plain.columns or any(name.startswith(f"{c}: ") for c in plain.levels)
