"""The cells: an instance and a budget, in a set that settings may be tuned on or in the other."""

from dataclasses import dataclass
from functools import cached_property

from benchmarks.budgets.families import Truth, truth

#: Families for which a mean is promised beyond 4 pulls for each dimension, and those whose levels
#: are all two, which leave nothing to win.
PROMISED = (
    "sphere 20 x 3",
    "sphere 100 x 8",
    "sphere 500 x 20",
    "factorial 4 x 3 x 2",
    "factorial 5 x 4 x 3",
    "bare 10 spread",
    "bare 20 with two good",
    "bare 16 random",
    "yes/no prompts 100 x 8",
    "yes/no 12 bare",
)
TWO_LEVELS = ("factorial 2 x 2 x 2 x 2 x 2 x 2", "factorial 2 x 2 x 2 x 2 x 2")
#: Families with cells of few pulls, in pulls for each dimension.
FEW = (
    "sphere 20 x 3",
    "sphere 100 x 8",
    "factorial 4 x 3 x 2",
    "bare 16 random",
    "yes/no prompts 100 x 8",
)
FEW_PULLS = (2, 4)
PAPER_BUDGETS = (100, 1010, 2010)
#: The seeds of both sets.
SEEDS = {"tuned": 1, "held out": 2}
#: Budgets at which uniform errs in about .4 and .15 of the runs, by family and seed, found by
#: `python -m benchmarks.budgets.search`.
BUDGETS: dict[tuple[str, int], tuple[int, ...]] = {
    ("sphere 20 x 3", 1): (86, 520),
    ("sphere 20 x 3", 2): (120, 380),
    ("sphere 100 x 8", 1): (290, 680),
    ("sphere 100 x 8", 2): (850, 3400),
    ("sphere 500 x 20", 1): (1800, 4200),
    ("sphere 500 x 20", 2): (1800, 4200),
    ("factorial 4 x 3 x 2", 1): (58, 240),
    ("factorial 4 x 3 x 2", 2): (35, 59),
    ("factorial 5 x 4 x 3", 1): (310, 1100),
    ("factorial 5 x 4 x 3", 2): (67, 150),
    ("bare 10 spread", 1): (220, 1000),
    ("bare 10 spread", 2): (230, 1200),
    ("bare 20 with two good", 1): (620, 1500),
    ("bare 20 with two good", 2): (620, 1400),
    ("bare 16 random", 1): (300, 2300),
    ("bare 16 random", 2): (630, 1800),
    ("yes/no prompts 100 x 8", 1): (150, 340),
    ("yes/no prompts 100 x 8", 2): (540, 1600),
    ("yes/no 12 bare", 1): (240, 740),
    ("yes/no 12 bare", 2): (370, 1300),
    ("factorial 2 x 2 x 2 x 2 x 2 x 2", 1): (130, 370),
    ("factorial 2 x 2 x 2 x 2 x 2 x 2", 2): (49, 100),
    ("factorial 2 x 2 x 2 x 2 x 2", 1): (37, 120),
    ("factorial 2 x 2 x 2 x 2 x 2", 2): (180, 520),
}


@dataclass(frozen=True)
class Cell:
    """An instance and a budget.

    Attributes
    ----------
    family : str
    seed : int
    budget : int
    kind : "paper", "promised", "two levels" or "few pulls"
    """

    family: str
    seed: int
    budget: int
    kind: str

    @property
    def tuned(self) -> bool:
        """Whether settings may be tuned on it."""
        return self.seed == SEEDS["tuned"]

    @property
    def label(self) -> str:
        """What `--only` takes, and progress shows."""
        return f"{self.family}, seed {self.seed}, T = {self.budget:,}"

    @cached_property
    def truth(self) -> Truth:
        """The instance."""
        return truth(self.family, self.seed)


def cells() -> list[Cell]:
    """Return all cells, those of one family and seed together.

    The paper's instance is the same for both sets, and is among those to tune on.
    """
    found = [Cell("paper", SEEDS["tuned"], budget, "paper") for budget in PAPER_BUDGETS]
    for seed in SEEDS.values():
        for family in (*PROMISED, *TWO_LEVELS):
            kind = "two levels" if family in TWO_LEVELS else "promised"
            if family in FEW:
                rank = truth(family, seed).arms.rank
                found += [Cell(family, seed, n * rank, "few pulls") for n in FEW_PULLS]
            found += [Cell(family, seed, T, kind) for T in BUDGETS.get((family, seed), ())]
    return found
