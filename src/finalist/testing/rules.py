"""All rules by name, and `check_strategy`, which applies them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.problem import as_problem
from finalist.strategies import promise_of
from finalist.strategies.protocol import Promise
from finalist.testing import rules_of_answers as answers
from finalist.testing import rules_of_budgets as budgets
from finalist.testing import rules_of_errors as errors
from finalist.testing import rules_of_runs as runs
from finalist.testing import rules_of_zones as zones
from finalist.testing.elsewhere import same_pulls_in_another_process
from finalist.testing.runs import THETA, Make, NotApplicable, maker
from finalist.text import counted


@dataclass(frozen=True)
class Rule:
    """One rule. Called with a strategy, it returns if the rule holds and raises otherwise.

    Attributes
    ----------
    name : str
    check : function
        Takes a function that makes the strategy.
    """

    name: str
    check: Callable[[Make], None]

    def __call__(self, strategy: Any) -> None:
        """Raise AssertionError if the rule is broken, NotApplicable if it does not apply.

        Parameters
        ----------
        strategy : class, strategy, str or function (arms, theta) -> strategy
        """
        self.check(maker(strategy))


@dataclass(frozen=True)
class Report:
    """What was checked.

    Attributes
    ----------
    name : str
        Of the strategy.
    checked : tuple of str
        Rules that hold.
    skipped : mapping from str to str
        Rules that do not apply, with the reason.
    """

    name: str
    checked: tuple[str, ...]
    skipped: Mapping[str, str]

    def __str__(self) -> str:
        words = f"{self.name} keeps {counted(len(self.checked), 'rule')}"
        if not self.skipped:
            return f"{words}."
        left = [f"- {rule}: {reason}" for rule, reason in self.skipped.items()]
        verb = "does" if len(left) == 1 else "do"
        return "\n".join([f"{words}; {len(left)} {verb} not apply:", *left])


Check = Callable[[Make], None]


def _by_name(*checks: Callable[..., None]) -> dict[str, Any]:
    """Return rules under the names of their functions, as words."""
    return {check.__name__.replace("_", " "): check for check in checks}


def _for_each(
    rule: str, check: Callable[..., None], word: str, given: Iterable[str]
) -> dict[str, Check]:
    """Return a rule for each of several words."""
    return {f"{rule}, {one}": partial(check, **{word: one}) for one in given}


def _shared(budget: Callable[[int], int | None]) -> dict[str, Check]:
    """Return the rules for both kinds of strategies, on problems with or without a budget."""
    checks: dict[str, tuple[Callable[..., None], int]] = {
        "it is a strategy": (runs.is_a_strategy, 30),
        "start solves no design": (runs.start_solves_no_design, 100),
        "next changes nothing": (runs.next_changes_nothing, 120),
        "a log kept as JSON goes on": (runs.a_log_kept_as_json_goes_on, 120),
        "one arm needs no pull": (runs.one_arm_needs_no_pull, 50),
        "wrong rewards and sizes are refused": (runs.wrong_rewards_and_sizes_are_refused, 30),
        "a decided run takes nothing more": (runs.a_decided_run_takes_nothing_more, 30),
        "two best arms, or a refusal": (runs.two_best_arms_or_a_refusal, 60),
        "other candidates, or a refusal": (runs.other_candidates_or_a_refusal, 60),
        "limited pulls, or a refusal": (runs.limited_pulls_or_a_refusal, 30),
    }
    for words, size in {"own size": None, "plates of 40": 40}.items():
        replay = partial(runs.replay_equals_live, size=size)
        checks[f"replay equals live, {words}"] = replay, 150
    for kind in ("gaussian", "bounded", "bernoulli"):
        check = partial(runs.playing_equals_stepping, kind=kind)
        checks[f"playing equals stepping, {kind}"] = check, 200
    for problem in answers.ODD:
        for scale in (1.0, 1e-120, 1e120):
            odd = partial(
                answers.an_odd_problem_ends_with_the_best_arm, problem=problem, scale=scale
            )
            checks[f"the best arm wins, {problem}, scale {scale:g}"] = odd, 90
    checks |= {
        "the smallest wins if asked for": (answers.minimising_is_maximising_the_opposite, 70),
        "names and order change no winner": (answers.names_and_order_change_no_winner, 70),
        "units of the rewards change nothing": (answers.units_of_the_rewards_change_nothing, 70),
        "units of the features change nothing": (answers.units_of_the_features_change_nothing, 70),
    }
    found: dict[str, Check] = {
        name: partial(check, budget=budget(most)) for name, (check, most) in checks.items()
    }
    return found | {"same pulls in another process": same_pulls_in_another_process}


def _of_confidence() -> dict[str, Check]:
    """Return the rules about delta, epsilon, and runs that may never end."""
    found: dict[str, Check] = _by_name(runs.the_cap_of_a_simulation_is_kept)
    for words, lost in {"one arm": [2], "everything": [0, 1, 2]}.items():
        for epsilon in (0.0, 0.1):
            left = partial(
                answers.an_arm_without_rewards_is_not_ruled_out, lost=lost, epsilon=epsilon
            )
            found[f"lost rewards rule out nobody, {words}, epsilon {epsilon:g}"] = left
    found |= _by_name(
        answers.ties_never_end_in_a_wrong_answer,
        answers.a_good_enough_arm_ends_a_tie,
        errors.good_enough_rules_out_no_best_arm,
    )
    rare = errors.errors_are_as_rare_as_promised
    return found | _for_each("errors are as rare as promised", rare, "trial", errors.TRIALS)


def _of_budgets() -> dict[str, Check]:
    """Return the rules about budgets."""
    sizes = {"own size": None, "plates of 1": 1, "plates of 7": 7, "plates of 96": 96}
    spent = budgets.never_more_than_the_budget
    spends: dict[str, Check] = {
        f"never more than the budget, {words}": partial(spent, size=size)
        for words, size in sizes.items()
    }
    large = budgets.a_large_budget_finds_the_best_arm
    shared = (budgets.lost_pulls_are_spent, budgets.all_rewards_may_be_lost)
    better = budgets.a_small_budget_is_better_than_a_guess
    return {
        **_by_name(budgets.a_budget_is_needed),
        **spends,
        **_by_name(budgets.who_is_out_stays_out, *shared, better),
        **_for_each("a large budget finds the best arm", large, "task", budgets.LARGE),
    }


def _of_zones() -> dict[str, Check]:
    """Return the rules about an indifference zone; where a rule has no epsilon, the lead is it."""
    shared = _shared(lambda _: None)
    for words, lost in {"one arm": [2], "everything": [0, 1, 2]}.items():
        left = partial(answers.an_arm_without_rewards_is_not_ruled_out, lost=lost, epsilon=0.1)
        shared[f"lost rewards rule out nobody, {words}"] = left
    shared |= _by_name(answers.a_good_enough_arm_ends_a_tie)
    found: dict[str, Check] = {
        name: partial(zones.with_the_lead_as_epsilon, check=check) for name, check in shared.items()
    }
    found |= _by_name(zones.a_zone_is_needed, zones.who_is_out_stays_out)
    rare = zones.the_best_wins_beyond_the_zone
    return found | _for_each("errors are as rare as promised", rare, "trial", zones.SLIPPAGE)


def _named(checks: dict[str, Check]) -> dict[str, Rule]:
    return {name: Rule(name, check) for name, check in checks.items()}


#: The rules for strategies that promise an error probability, by name; those with many runs come
#: last.
RULES: dict[str, Rule] = _named(_shared(lambda _: None) | _of_confidence())
#: The rules for strategies that spend a fixed budget.
BUDGET_RULES: dict[str, Rule] = _named(_shared(lambda budget: budget) | _of_budgets())
#: The rules for strategies with an indifference zone.
ZONE_RULES: dict[str, Rule] = _named(_of_zones())
#: The rules by what is promised.
_BY_PROMISE: dict[str, dict[str, Rule]] = {
    "confidence": RULES,
    "budget": BUDGET_RULES,
    "zone": ZONE_RULES,
}


def rules_of(strategy: Any) -> dict[str, Rule]:
    """Return the rules of a strategy by name.

    Its class attribute `promise` decides (`finalist.strategies.promise_of`): `RULES`,
    `BUDGET_RULES` if it spends a budget, `ZONE_RULES` if it has an indifference zone.

    Examples
    --------
    >>> import finalist as fl
    >>> rules_of(fl.Gauntlet) is RULES, rules_of(fl.ODLinBAI) is BUDGET_RULES
    (True, True)
    """
    arms = Arms.unstructured(3)
    made = maker(strategy)(arms, THETA)
    promise: str = promise_of(made)
    if promise not in get_args(Promise):
        raise ProblemError(
            f"{_name(made)} has promise = {promise!r}; it must be 'confidence', 'budget' or 'zone'."
        )
    if promise == "confidence" and _wants_budget(made, arms):
        raise ProblemError(
            f"{_name(made)} starts only with a budget but does not say that it spends one; write "
            'promise: ClassVar[str] = "budget" in its class.'
        )
    return _BY_PROMISE[promise]


def _wants_budget(strategy: Any, arms: Arms) -> bool:
    """Return whether a strategy refuses a problem but accepts it with a budget."""
    try:
        strategy.start(as_problem(arms, sigma=1.0))
        return False
    except Exception:
        pass
    try:
        strategy.start(as_problem(arms, sigma=1.0, budget=1000))
    except Exception:
        return False
    return True


def _name(strategy: Any) -> str:
    return str(getattr(strategy, "name", type(strategy).__name__))


def check_strategy(strategy: Any, rules: Iterable[str] | None = None) -> Report:
    """Check a strategy against the rules of its contract.

    A strategy that promises an error probability is held to `RULES`, one that spends a fixed
    budget (`promise: ClassVar[str] = "budget"` in its class) to `BUDGET_RULES`, and one with an
    indifference zone (`"zone"`) to `ZONE_RULES`.

    Parameters
    ----------
    strategy : class, strategy, str or function
        A class with defaults or with `knowing(arms, theta)`; an object with its settings; the name
        of a registered class; or a function (arms, theta) -> strategy.
    rules : iterable of str, optional
        Names of rules; by default all, which takes seconds to a minute.

    Returns
    -------
    Report
        What was checked, and what does not apply.

    Raises
    ------
    AssertionError
        If rules are broken; the message says which and how.

    Examples
    --------
    >>> import finalist as fl
    >>> print(check_strategy(fl.RAGE, ["next changes nothing", "a log kept as JSON goes on"]))
    rage keeps 2 rules.
    >>> print(check_strategy(fl.RAGE(), ["the cap of a simulation is kept"]))
    rage keeps 0 rules; 1 does not apply:
    - the cap of a simulation is kept: it has no compiled loop
    >>> print(check_strategy("od-linbai", ["a budget is needed", "lost pulls are spent"]))
    od-linbai keeps 2 rules.
    """
    name = _name(maker(strategy)(Arms.unstructured(3), THETA))
    chosen = _chosen(rules_of(strategy), rules)
    kept: list[str] = []
    skipped: dict[str, str] = {}
    broken: dict[str, Exception] = {}
    for rule in chosen:
        try:
            rule(strategy)
            kept.append(rule.name)
        except NotApplicable as reason:
            skipped[rule.name] = str(reason)
        except Exception as error:
            broken[rule.name] = error
    if broken:
        words = [f"- {rule}: {_words(error)}" for rule, error in broken.items()]
        text = "\n".join(
            [f"{name} breaks {len(broken)} of {counted(len(chosen), 'rule')}:", *words]
        )
        raise AssertionError(text) from next(iter(broken.values()))
    return Report(name, tuple(kept), skipped)


def _chosen(rules: dict[str, Rule], names: Iterable[str] | None) -> list[Rule]:
    wanted = list(rules if names is None else names)
    unknown = [name for name in wanted if name not in rules]
    if unknown:
        raise ProblemError(f"{unknown[0]!r} is not a rule; the rules are {', '.join(rules)}.")
    return [rules[name] for name in wanted]


def _words(error: Exception) -> str:
    plain = isinstance(error, AssertionError)
    return str(error) if plain else f"{type(error).__name__}: {error}"
