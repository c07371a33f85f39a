"""Strategies that are wrong on purpose are caught, each by the rule that is meant for it."""

import itertools
import os
import re
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import binom

import finalist as fl
from finalist import optimal_design as solve_under_another_name
from finalist.errors import ProblemError
from finalist.inference.least_squares import estimate
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.strategies import STRATEGIES, Batch, Run, Strategy, Uniform, Verdict, XYAdaptive
from finalist.testing import RULES, NotApplicable, check_strategy
from finalist.testing.designs import no_design
from finalist.testing.rules_of_errors import ALPHA, TRIALS, ensure_rare
from finalist.testing.runs import maker, step


class Wrapped:
    """A run that is right; the others do one thing otherwise."""

    def __init__(self, problem: fl.Problem, seed: int) -> None:
        self.problem, self.seed = problem, seed
        self.inner: Run = XYAdaptive().start(problem, seed)

    @property
    def verdict(self) -> Verdict:
        return self.inner.verdict

    def next(self, size: int | None = None) -> Batch:
        return self.inner.next(size)

    def record(self, batch: Batch, rewards: Statistics) -> None:
        self.inner.record(batch, rewards)


@dataclass(frozen=True)
class Made:
    """A strategy whose runs are of some class."""

    name: ClassVar[str] = "made"
    run: Any = Wrapped

    def start(self, problem: fl.Problem, seed: int = 0) -> Any:
        return self.run(problem, seed)


class NextChanges(Wrapped):
    asked = 0

    def next(self, size=None):
        self.asked += 1
        return self.inner.next(1 + self.asked % 3 if size is None else size)


class NextIsRandom(Wrapped):
    started = itertools.count()

    def __init__(self, problem, seed):
        super().__init__(problem, seed)
        self.number = next(self.started)

    def next(self, size=None):
        batch = self.inner.next(size)
        return Batch(np.roll(batch.counts, self.number), batch.note)


class TooMany(Wrapped):
    def next(self, size=None):
        return self.inner.next(None if size is None else size + 1)


class ReplayDiffers(Wrapped):
    """It keeps for itself what belongs into the note."""

    planned = 0

    def next(self, size=None):
        self.planned = 1
        return self.inner.next(size)

    @property
    def verdict(self):
        found = self.inner.verdict
        return found if self.planned else Verdict(found.winner, (0, 1, 2), found.pulls)


class Solves(Wrapped):
    def record(self, batch, rewards):
        fl.optimal_design(self.problem.arms, "g", tol=0.1)
        self.inner.record(batch, rewards)


class NoJson(Wrapped):
    def next(self, size=None):
        batch = self.inner.next(size)
        return Batch(batch.counts, {**batch.note, "own": np.arange(3)})


class NeedsWhatJsonLoses(Wrapped):
    def next(self, size=None):
        batch = self.inner.next(size)
        return Batch(batch.counts, {**batch.note, "own": (1, 2)})

    def record(self, batch, rewards):
        assert batch.note["own"] == (1, 2), "the note is a list now"
        self.inner.record(batch, rewards)


class NeedsAPull(Wrapped):
    @property
    def verdict(self):
        found = self.inner.verdict
        return found if len(self.problem.arms) > 1 else Verdict(None, (0,), 0)


class TakesAnything(Wrapped):
    def record(self, batch, rewards):
        if np.array_equal(batch.counts, rewards.count):
            self.inner.record(batch, rewards)


class OtherError(Wrapped):
    def next(self, size=None):
        if size is not None and size < 1:
            raise KeyError(size)
        return self.inner.next(size)


class NeverEnds(Wrapped):
    """After the end it goes on."""

    def next(self, size=None):
        if self.verdict.decided:
            return Batch(np.ones(len(self.problem.arms), dtype=np.int64))
        return self.inner.next(size)


class DropsTheBest(Wrapped):
    @property
    def verdict(self):
        found = self.inner.verdict
        if found.winner is None or self.problem.epsilon == 0:
            return found
        return Verdict(found.winner, (found.winner,), found.pulls)


class IgnoresTheObjective(Wrapped):
    def __init__(self, problem, seed):
        super().__init__(problem.with_(objective="max"), seed)


class IgnoresEpsilon(Wrapped):
    def __init__(self, problem, seed):
        super().__init__(problem.with_(goal=fl.Best()), seed)


class PrefersItsName(Wrapped):
    """It expects more noise where names are late in the alphabet."""

    def __init__(self, problem, seed):
        noise = fl.Gaussian(problem.sigma * (40 if problem.arms.names[0] > "m" else 1))
        super().__init__(problem.with_(noise=noise), seed)


class OtherUnits(Wrapped):
    """Its threshold has a unit."""

    def __init__(self, problem, seed):
        sigma = problem.sigma if problem.sigma < 1e3 else problem.sigma * 2
        super().__init__(problem.with_(noise=fl.Gaussian(sigma)), seed)


class Units(Wrapped):
    """It takes the features as they are."""

    def __init__(self, problem, seed):
        large = bool(np.abs(problem.arms.features).max() > 1e4)
        super().__init__(problem.with_(delta=problem.delta / (1000 if large else 1)), seed)


class Jumps(Wrapped):
    """Names the leader of the first batch, whatever delta is."""

    def __init__(self, problem, seed):
        super().__init__(problem, seed)
        self.seen = Statistics.empty(len(problem.arms))
        self.winner = 0 if len(problem.arms) == 1 else None

    @property
    def verdict(self):
        found = self.inner.verdict
        everybody = tuple(range(len(self.problem.arms)))
        return Verdict(self.winner, everybody, found.pulls)

    def record(self, batch, rewards):
        self.inner.record(batch, rewards)
        self.seen.merge(rewards)
        if self.seen.pulls >= 8:
            means = self.problem.sign * estimate(self.problem.arms, self.seen).means()
            self.winner = int(np.nan_to_num(means, nan=-np.inf).argmax())


class Quarter(Wrapped):
    """Its widths are a quarter of what they should be; it names a winner and rules out nobody."""

    part = 0.25
    like: Strategy = Uniform()

    def __init__(self, problem, seed):
        self.problem, self.seed = problem, seed
        noise = fl.Gaussian(problem.sigma * self.part)
        self.inner = self.like.start(problem.with_(noise=noise), seed)


class QuarterRulesOut(Quarter):
    like = XYAdaptive()


class Half(Quarter):
    part = 0.5


class Whole(Quarter):
    """Nothing is wrong with it."""

    part = 1.0


class SolvesAtOnce(Wrapped):
    def __init__(self, problem, seed):
        super().__init__(problem, seed)
        self.design = kept_design(problem.arms)


@lru_cache
def kept_design(arms):
    """Return a design that is solved once: the second run with these arms does not see it."""
    return solve_under_another_name(arms, "g", tol=0.1)


class LooksAround(Wrapped):
    """Its pulls depend on the process."""

    def next(self, size=None):
        batch = self.inner.next(size)
        return Batch(np.roll(batch.counts, os.environ.get("PYTHONHASHSEED") == "2"), batch.note)


class Forgets(Wrapped):
    """It answers what it was not asked: one arm, of all that there are, as often as it likes."""

    def __init__(self, problem, seed):
        plain = {
            "arms": fl.Arms(problem.arms.features),
            "goal": fl.Best(),
            "max_pulls_per_arm": None,
        }
        super().__init__(problem.with_(**plain), seed)


class Hasty(Wrapped):
    """It rules out arms that it has never seen."""

    hasty = False

    def record(self, batch, rewards):
        self.inner.record(batch, rewards)
        self.hasty = len(self.problem.arms) == 3

    @property
    def verdict(self):
        found = self.inner.verdict
        return Verdict(found.winner, (0,), found.pulls) if self.hasty else found


class Unlucky(Wrapped):
    """It is wrong when two arms are tied."""

    @property
    def verdict(self):
        found = self.inner.verdict
        if found.pulls < 1000 or len(self.problem.arms) != 4:
            return found
        return Verdict(3, (3,), found.pulls)


class Plays(Wrapped):
    """It has a loop that says of one arm that it was pulled once more."""

    def play(self, rewards, limit):
        pulls = np.zeros(4, dtype=np.int64)
        while not self.verdict.decided and self.verdict.pulls < limit:
            batch = self.next()
            self.record(batch, rewards.batch(batch.counts))
            pulls += batch.counts
        pulls[0] += 1
        return pulls

    def pooled(self):
        return Statistics.empty(4)


class Contrary(Wrapped):
    """It is wrong when there is little to choose from."""

    @property
    def verdict(self):
        found, K = self.inner.verdict, len(self.problem.arms)
        if found.winner is None or K == 1:
            return found
        return Verdict((found.winner + 1) % K, tuple(range(K)), found.pulls)


class Nothing:
    """No run at all."""

    def __init__(self, problem: fl.Problem, seed: int) -> None:
        pass


#: What is wrong, the rules that must see it, and what they must say.
FAULTS: list[tuple[type, str, str]] = [
    (Nothing, "it is a strategy", "without verdict, next or record"),
    (NextChanges, "next changes nothing", "another batch when asked again"),
    (NextIsRandom, "next changes nothing", "two runs with the same seed differ"),
    (TooMany, "next changes nothing", "6 pulls when asked for 5"),
    (ReplayDiffers, "replay equals live, own size", "when replayed"),
    (ReplayDiffers, "replay equals live, plates of 40", "when replayed"),
    (Solves, "replay equals live, own size", "record solves a design"),
    (NoJson, "a log kept as JSON goes on", "ndarray is not JSON serializable"),
    (NeedsWhatJsonLoses, "a log kept as JSON goes on", "the note is a list now"),
    (NeedsAPull, "one arm needs no pull", "winner=None"),
    (TakesAnything, "wrong rewards and sizes are refused", "of the batch is not refused"),
    (OtherError, "wrong rewards and sizes are refused", "size 0 raises KeyError"),
    (NeverEnds, "a decided run takes nothing more", "next after the end is not refused"),
    (Forgets, "two best arms, or a refusal", r"the two best of 1, 5, 9 are \(2,\)"),
    (Forgets, "other candidates, or a refusal", "pulled that cannot be"),
    (Contrary, "other candidates, or a refusal", "wins and not the best candidate"),
    (Forgets, "limited pulls, or a refusal", "when 2 can be made each"),
    (Plays, "the cap of a simulation is kept", "when 70,001 is the limit"),
    (Plays, "playing equals stepping, gaussian", "play pulls"),
    (Plays, "playing equals stepping, bounded", "play pulls"),
    (Contrary, "the best arm wins, two arms, scale 1", "arm 1 wins and arm 0 is the best"),
    (Contrary, "the best arm wins, rank-deficient, scale 1e-120", "is the best"),
    (IgnoresTheObjective, "the smallest wins if asked for", "is the smallest"),
    (PrefersItsName, "names and order change no winner", "when the arms have other names"),
    (OtherUnits, "units of the rewards change nothing", "in other units of the rewards"),
    (Units, "units of the features change nothing", "in other units of the features"),
    (LooksAround, "same pulls in another process", "in another process Verdict"),
    (Unlucky, "ties never end in a wrong answer", "are tied and 3 wins"),
    (IgnoresEpsilon, "a good enough arm ends a tie", "are tied and None wins"),
    (DropsTheBest, "good enough rules out no best arm", "the best arm is not a survivor"),
    (Jumps, "errors are as rare as promised, to the end", r"wrong in 20 of \d+ .*is 0\.05"),
    (Quarter, "errors are as rare as promised, two arms", r"in 8 of \d+ .*below 1e-07.*is 0\.001"),
    (Quarter, "errors are as rare as promised, five arms", r"wrong in 6 of \d+ runs"),
    (Quarter, "errors are as rare as promised, tied best arms", r"wrong in 6 of \d+ runs"),
    (Quarter, "errors are as rare as promised, linear", r"wrong in 6 of \d+ runs"),
    (QuarterRulesOut, "errors are as rare as promised, many arms", r"wrong in 5 of \d+ runs"),
    (Half, "errors are as rare as promised, two arms", r"wrong in 8 of \d+ runs"),
    (SolvesAtOnce, "start solves no design", "start solves a design; solve it in `next`"),
    (Hasty, "lost rewards rule out nobody, one arm, epsilon 0", "ruled out that has no rewards"),
    (Hasty, "lost rewards rule out nobody, everything, epsilon 0.1", "ruled out that has no"),
]


@pytest.mark.parametrize(
    ("fault", "rule", "words"),
    FAULTS,
    ids=[f"{fault.__name__}: {rule}" for fault, rule, _ in FAULTS],
)
def test_a_fault_is_caught(fault, rule, words):
    with pytest.raises(AssertionError, match=words):
        RULES[rule](Made(fault))


def test_every_rule_catches_something():
    kinds = {rule.split(",")[0] for rule in RULES}
    assert {rule.split(",")[0] for _, rule, _ in FAULTS} == kinds


@pytest.mark.usefixtures("few_runs")
def test_what_is_right_keeps_every_rule():
    report = check_strategy(Made())
    assert report.name == "made"
    assert set(report.skipped.values()) == {"it has no compiled loop"}
    assert len(report.skipped) == 4
    assert {*report.checked, *report.skipped} == set(RULES)
    first, *rest = str(report).splitlines()
    assert first == f"made keeps {len(RULES) - 4} rules; 4 do not apply:"
    assert "- the cap of a simulation is kept: it has no compiled loop" in rest
    one = check_strategy(Made(), ["one arm needs no pull", "the cap of a simulation is kept"])
    assert str(one).startswith("made keeps 1 rule; 1 does not apply:")


def test_all_broken_rules_are_named_with_what_is_wrong():
    rules = ["next changes nothing", "one arm needs no pull", "wrong rewards and sizes are refused"]
    words = r"^made breaks 2 of 3 rules:\n- next .*asked again\n- wrong .*size -1 raises KeyError"
    with pytest.raises(AssertionError, match="breaks 1 of 3") as one:
        check_strategy(Made(TakesAnything), rules)
    assert "not those of the batch is not refused" in str(one.value)

    class Both(NextChanges, OtherError):  # noqa: N818
        def next(self, size=None):
            return NextChanges.next(self, size) if size != -1 else OtherError.next(self, size)

    with pytest.raises(AssertionError, match=words) as both:
        check_strategy(Made(Both), rules)
    assert isinstance(both.value.__cause__, AssertionError)


def test_errors_of_the_strategy_itself_are_broken_rules():
    class Crashes(Wrapped):
        def next(self, size=None):  # noqa: ARG002
            raise ZeroDivisionError("by zero")

    with pytest.raises(AssertionError, match=r"next changes nothing: ZeroDivisionError: by zero"):
        check_strategy(Made(Crashes), ["next changes nothing"])


def test_a_strategy_that_pulls_nothing_is_no_endless_loop():
    class Lazy(Wrapped):
        def next(self, size=None):  # noqa: ARG002
            return Batch(np.zeros(len(self.problem.arms), dtype=np.int64))

    with pytest.raises(AssertionError, match="empty batch"):
        RULES["replay equals live, own size"](Made(Lazy))


def test_a_strategy_that_never_decides_is_no_endless_loop(monkeypatch):
    class Undecided(Wrapped):
        @property
        def verdict(self):
            return Verdict(None, (0, 1, 2), 0)

        def record(self, batch, rewards):
            pass

    monkeypatch.setattr("finalist.testing.runs.MAX_BATCHES", 50)
    with pytest.raises(AssertionError, match="no winner after 50 batches"):
        step(Made(Undecided), as_problem(fl.Arms.unstructured(3), sigma=1.0), np.zeros(3), 0)


def test_widths_of_a_quarter_break_the_contract_and_whole_ones_keep_it():
    rules = [rule for rule in RULES if rule.startswith("errors")]
    with pytest.raises(AssertionError, match="made breaks 4 of 6 rules"):
        check_strategy(Made(Quarter), rules)
    for rule in rules:
        if rule.endswith(("two arms", "linear")):
            RULES[rule](Made(Whole))


def test_a_strategy_that_keeps_delta_passes_whatever_the_seeds():
    """Where errors are as likely as promised: the exact probability of a complaint."""
    told_off = 0.0
    for trial in TRIALS.values():
        chances = binom.pmf(np.arange(trial.runs + 1), trial.runs, trial.delta)
        for errors, chance in enumerate(chances):
            try:
                ensure_rare(errors, trial.runs, trial.delta, "it is wrong")
            except AssertionError:
                told_off += chance
    assert 1e-9 < told_off < ALPHA


def test_what_a_strategy_refuses_by_name_is_left_out():
    class Plain(Wrapped):
        def __init__(self, problem, seed):
            problem.refuse_unsupported("made", frozenset())
            super().__init__(problem, seed)

    left = ["the smallest wins if asked for", "a good enough arm ends a tie"]
    left += ["good enough rules out no best arm"]
    report = check_strategy(Made(Plain), [*left, "two best arms, or a refusal"])
    assert report.checked == ("two best arms, or a refusal",)
    assert list(report.skipped) == left
    assert all(re.match("it refuses such problems .*made", why) for why in report.skipped.values())


def test_arms_that_a_strategy_is_not_for_are_left_out():
    with pytest.raises(NotApplicable, match="not for such arms"):
        RULES["next changes nothing"](fl.TrackAndStop)
    RULES["it is a strategy"](fl.TrackAndStop)


def test_without_a_proof_no_error_probability_is_tested():
    with pytest.raises(NotApplicable, match="promises no error probability"):
        RULES["errors are as rare as promised, two arms"](fl.LazyTS(threshold="heuristic"))


@pytest.mark.parametrize(
    "given", [fl.LinGapE, "lingape", lambda arms, theta: fl.LinGapE.knowing(arms, theta)]
)
def test_a_strategy_is_made_from_a_class_a_name_or_a_function(given):
    arms, theta = fl.Arms.unstructured(3), np.array([3.0, 4.0, 0.0])
    assert maker(given)(arms, theta) == fl.LinGapE.knowing(arms, theta)


def test_an_object_is_taken_as_it_is():
    strategy = XYAdaptive(alpha=0.3)
    assert maker(strategy)(fl.Arms.unstructured(3), np.zeros(3)) is strategy


def test_what_cannot_be_checked_is_refused():
    with pytest.raises(ProblemError, match="7 does not make a strategy; give a class"):
        check_strategy(7)
    with pytest.raises(
        ProblemError, match="'speed' is not a rule; the rules are it is a strategy,"
    ):
        check_strategy("gauntlet", ["speed"])


def test_a_strategy_that_only_this_process_knows_runs_in_others():
    @dataclass(frozen=True)
    class Local:
        name: ClassVar[str] = "local"

        def start(self, problem: fl.Problem, seed: int = 0) -> Any:
            return XYAdaptive().start(problem, seed)

    RULES["same pulls in another process"](Local)


def test_one_that_cannot_be_sent_is_told_so():
    strategy = Made()
    object.__setattr__(strategy, "lock", threading.Lock())
    with pytest.raises(AssertionError, match="cannot be sent to another process"):
        RULES["same pulls in another process"](strategy)


def test_solvers_are_back_afterwards():
    arms = fl.Arms.unstructured(2)
    before = fl.optimal_design(arms, "g").value
    with pytest.raises(AssertionError, match="record solves a design"), no_design("record"):
        fl.optimal_design(arms, "g")
    with pytest.raises(AssertionError, match="start solves a design"), no_design("start"):
        solve_under_another_name(arms, "g")
    assert fl.optimal_design(arms, "g").value == before


def test_checking_registers_nothing():
    assert "made" not in STRATEGIES
