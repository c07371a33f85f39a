"""Strategies for a fixed budget that are wrong on purpose are caught by the rule for it."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import finalist as fl
from finalist.errors import ProblemError
from finalist.inference.statistics import Statistics
from finalist.strategies import GSE, STRATEGIES, Batch, GBudget, Verdict, promise_of
from finalist.strategies.budget.eliminations import EliminationRun
from finalist.testing import BUDGET_RULES, RULES, ZONE_RULES, check_strategy, rules_of


class Right:
    """A run that is right; the others do one thing otherwise."""

    like: Any = GSE()

    def __init__(self, problem: fl.Problem, seed: int) -> None:
        self.problem, self.seed, self.K = problem, seed, len(problem.arms)
        self.inner: EliminationRun = self.like.start(problem, seed)

    @property
    def verdict(self) -> Verdict:
        return self.inner.verdict

    def next(self, size: int | None = None) -> Batch:
        return self.inner.next(size)

    def record(self, batch: Batch, rewards: Statistics) -> None:
        self.inner.record(batch, rewards)

    def lose(self, counts: np.ndarray) -> None:
        self.inner.lose(counts)

    def named(self, winner: int) -> Verdict:
        """Return the verdict with another winner, if there is one."""
        found = self.inner.verdict
        return found if found.winner is None else Verdict(winner, (winner,), found.pulls)


@dataclass(frozen=True)
class Made:
    """A strategy whose runs are of some class."""

    name: ClassVar[str] = "made"
    promise: ClassVar[str] = "budget"
    run: Any = Right

    def start(self, problem: fl.Problem, seed: int = 0) -> Any:
        return self.run(problem, seed)


class Spends(Right):
    """It takes a little more than it was given."""

    def __init__(self, problem, seed):
        more = None if problem.budget is None else problem.budget + 1
        super().__init__(problem.with_(budget=more), seed)


class Miscounts(Right):
    @property
    def verdict(self):
        found = self.inner.verdict
        return Verdict(found.winner, found.survivors, found.pulls // 2)


class HasABudget(Right):
    """It takes a budget of its own where there is none."""

    def __init__(self, problem, seed):
        super().__init__(problem.with_(budget=problem.budget or 500), seed)


class ComesBack(Right):
    @property
    def verdict(self):
        found = self.inner.verdict
        if found.winner is None and found.pulls % 2:
            return Verdict(None, tuple(range(self.K)), found.pulls)
        return found


class Repeats(Right):
    """It does not count what was lost, and measures again."""

    like = GBudget()

    def lose(self, counts):
        pass


class NeedsRewards(Right):
    """It cannot do without a reward."""

    like = GBudget()

    def record(self, batch, rewards):
        if not batch.counts.any():
            raise ZeroDivisionError("mean of no rewards")
        self.inner.record(batch, rewards)


class Guesses(Right):
    @property
    def verdict(self):
        return self.named(int(np.random.default_rng(self.seed).integers(self.K)))


class AlwaysTheFirst(Right):
    @property
    def verdict(self):
        return self.named(0)


class Deaf(Right):
    """It makes all of its pulls and hears only of the first twenty."""

    heard = 0

    def record(self, batch, rewards):
        if self.heard >= 20:
            noise = np.random.default_rng(self.heard).standard_normal(self.K)
            rewards = Statistics.of_batch(batch.counts, noise * batch.counts)
        self.heard += batch.size
        self.inner.record(batch, rewards)


class ReadsNames(Right):
    @property
    def verdict(self):
        return self.named(int(np.argsort(self.problem.arms.names)[0]))


class Maximises(Right):
    def __init__(self, problem, seed):
        super().__init__(problem.with_(objective="max"), seed)


class Solves(Right):
    def __init__(self, problem, seed):
        super().__init__(problem, seed)
        fl.optimal_design(problem.arms, "g", tol=0.1)


class TakesAnySize(Right):
    def next(self, size=None):
        return self.inner.next(None if size in (0, -1, True) else size)


class Impatient(Right):
    """Another process, or the same one later, asks for other pulls."""

    asked = 0

    def next(self, size=None):
        self.asked += 1
        batch = self.inner.next(size)
        return Batch(np.roll(batch.counts, self.asked), batch.note)


#: What is wrong, the rule that must see it, and what it must say.
FAULTS: list[tuple[type, str, str]] = [
    (Spends, "never more than the budget, own size", "98 pulls are made with a budget of 97"),
    (Spends, "never more than the budget, plates of 7", "98 pulls are made with a budget of 97"),
    (
        Miscounts,
        "never more than the budget, plates of 1",
        "97 pulls are recorded, but the verdict is Verdict",
    ),
    (HasABudget, "a budget is needed", "a problem without a budget is not refused"),
    (ComesBack, "who is out stays out", "arms come back"),
    (Repeats, "lost pulls are spent", r"\d+ pulls, with those that were lost, and 60 can be made"),
    (NeedsRewards, "all rewards may be lost", "mean of no rewards"),
    (Repeats, "all rewards may be lost", "pulls, all lost, with 60 to make"),
    (Guesses, "a small budget is better than a guess", "right in .* a guess among 5 arms"),
    (AlwaysTheFirst, "a small budget is better than a guess", "right in 20 of 100 runs"),
    (Guesses, "a large budget finds the best arm, five arms", r"wrong in \d\d of 100 runs"),
    (AlwaysTheFirst, "a large budget finds the best arm, five arms", "wrong in 80 of 100 runs"),
    (AlwaysTheFirst, "a large budget finds the best arm, tied best arms", "wrong in 60 of 100"),
    (AlwaysTheFirst, "a large budget finds the best arm, linear", "wrong in 100 of 100 runs"),
    (Deaf, "a large budget finds the best arm, many arms", r"wrong in \d\d of 100 runs with 2,400"),
    (Deaf, "a large budget finds the best arm, linear", r"wrong in \d\d of 100 runs with 1,000"),
    (ReadsNames, "names and order change no winner", "when the arms have other names"),
    (AlwaysTheFirst, "names and order change no winner", "in another order of the arms"),
    (Solves, "start solves no design", "start solves a design"),
    (TakesAnySize, "wrong rewards and sizes are refused", "a batch of size 0 is not refused"),
    (Impatient, "next changes nothing", "another batch when asked again"),
    (Maximises, "the smallest wins if asked for", "is the smallest"),
]


@pytest.mark.parametrize(
    ("fault", "rule", "words"),
    FAULTS,
    ids=[f"{fault.__name__}: {rule}" for fault, rule, _ in FAULTS],
)
def test_a_fault_is_caught(fault, rule, words):
    with pytest.raises((AssertionError, ZeroDivisionError), match=words):
        BUDGET_RULES[rule](Made(fault))


def test_every_rule_about_budgets_catches_something():
    own = {rule.split(",")[0] for rule in BUDGET_RULES} - {rule.split(",")[0] for rule in RULES}
    assert len(own) == 7
    assert own <= {rule.split(",")[0] for _, rule, _ in FAULTS}


def test_what_is_right_keeps_every_rule():
    report = check_strategy(Made())
    assert {*report.checked, *report.skipped} == set(BUDGET_RULES)
    assert set(report.skipped.values()) == {"it has no compiled loop"}
    assert str(report).startswith(f"made keeps {len(BUDGET_RULES) - 3} rules; 3 do not apply:")


def test_a_strategy_says_by_its_promise_which_rules_are_its_own():
    for name, cls in STRATEGIES.items():
        expected = {"confidence": RULES, "budget": BUDGET_RULES, "zone": ZONE_RULES}
        assert rules_of(name) is expected[promise_of(cls)]
    assert rules_of(lambda arms, theta: Made()) is BUDGET_RULES  # noqa: ARG005
    with pytest.raises(
        ProblemError, match="'two best' is not a rule; the rules are it is a strategy"
    ):
        check_strategy(fl.ODLinBAI, ["two best"])
    with pytest.raises(ProblemError, match="'a budget is needed' is not a rule"):
        check_strategy("gauntlet", ["a budget is needed"])


@dataclass(frozen=True)
class Silent:
    """It needs a budget and does not say so."""

    name: ClassVar[str] = "silent"

    def start(self, problem: fl.Problem, seed: int = 0) -> Any:
        return GSE().start(problem, seed)


@dataclass(frozen=True)
class Misspelt:
    name: ClassVar[str] = "misspelt"
    promise: ClassVar[str] = "fixed-budget"

    def start(self, problem: fl.Problem, seed: int = 0) -> Any:
        return GSE().start(problem, seed)


def test_one_that_needs_a_budget_and_does_not_say_so_is_told_what_to_write():
    with pytest.raises(ProblemError, match=r'silent starts only with a budget.*str\] = "budget"'):
        check_strategy(Silent)


def test_a_promise_is_one_of_two():
    with pytest.raises(
        ProblemError, match="misspelt has promise = 'fixed-budget'; it must be 'conf"
    ):
        check_strategy(Misspelt)
    with pytest.raises(ProblemError, match="promise is 'fixed-budget'; it must be 'confidence' or"):
        fl.register(Misspelt)
    assert "misspelt" not in STRATEGIES
