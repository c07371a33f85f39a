"""All rules by name, and the check of a strategy against them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.strategies import promise_of
from finalist.testing import rules_of_answers as answers
from finalist.testing import rules_of_errors as errors
from finalist.testing import rules_of_runs as runs
from finalist.testing.elsewhere import same_pulls_in_another_process
from finalist.testing.runs import THETA, Make, NotApplicable, maker
from finalist.words import counted


@dataclass(frozen=True)
class Rule:
    """One rule. Called with a strategy, it returns or raises.

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
        Rules that it keeps.
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


def _variants() -> dict[str, Callable[[Make], None]]:
    """Return the rules that exist for several sizes, kinds and problems."""
    found: dict[str, Callable[[Make], None]] = {}
    for words, size in {"own size": None, "plates of 40": 40}.items():
        found[f"replay equals live, {words}"] = partial(runs.replay_equals_live, size=size)
    for kind in ("gaussian", "bounded", "bernoulli"):
        check = partial(runs.playing_equals_stepping, kind=kind)
        found[f"playing equals stepping, {kind}"] = check
    for problem in answers.ODD:
        for scale in (1.0, 1e-120, 1e120):
            odd = partial(
                answers.an_odd_problem_ends_with_the_best_arm, problem=problem, scale=scale
            )
            found[f"the best arm wins, {problem}, scale {scale:g}"] = odd
    for words, lost in {"one arm": [2], "everything": [0, 1, 2]}.items():
        for epsilon in (0.0, 0.1):
            left = partial(
                answers.an_arm_without_rewards_is_not_ruled_out, lost=lost, epsilon=epsilon
            )
            found[f"lost rewards rule out nobody, {words}, epsilon {epsilon:g}"] = left
    return found


def _trials() -> dict[str, Callable[[Make], None]]:
    """Return the rule about errors, once for each trial."""
    check = errors.errors_are_as_rare_as_promised
    return {
        f"errors are as rare as promised, {trial}": partial(check, trial=trial)
        for trial in errors.TRIALS
    }


#: Every rule by its name; those that need many runs come last.
RULES: dict[str, Rule] = {
    name: Rule(name, check)
    for name, check in {
        "it is a strategy": runs.is_a_strategy,
        "start solves no design": runs.start_solves_no_design,
        "next changes nothing": runs.next_changes_nothing,
        "a log kept as JSON goes on": runs.a_log_kept_as_json_goes_on,
        "one arm needs no pull": runs.one_arm_needs_no_pull,
        "wrong rewards and sizes are refused": runs.wrong_rewards_and_sizes_are_refused,
        "a decided run takes nothing more": runs.a_decided_run_takes_nothing_more,
        "two best arms, or a refusal": runs.two_best_arms_or_a_refusal,
        "other candidates, or a refusal": runs.other_candidates_or_a_refusal,
        "limited pulls, or a refusal": runs.limited_pulls_or_a_refusal,
        "the cap of a simulation is kept": runs.the_cap_of_a_simulation_is_kept,
        **_variants(),
        "the smallest wins if asked for": answers.minimising_is_maximising_the_opposite,
        "units of the rewards change nothing": answers.units_of_the_rewards_change_nothing,
        "units of the features change nothing": answers.units_of_the_features_change_nothing,
        "same pulls in another process": same_pulls_in_another_process,
        "ties never end in a wrong answer": answers.ties_never_end_in_a_wrong_answer,
        "a good enough arm ends a tie": answers.a_good_enough_arm_ends_a_tie,
        "good enough rules out no best arm": errors.good_enough_rules_out_no_best_arm,
        **_trials(),
    }.items()
}


def check_strategy(strategy: Any, rules: Iterable[str] | None = None) -> Report:
    """Check a strategy that promises an error probability against the rules of the contract.

    Parameters
    ----------
    strategy : class, strategy, str or function
        A class with defaults or with `knowing(arms, theta)`; an object with its settings; the name
        of a registered class; or a function (arms, theta) -> strategy.
    rules : iterable of str, optional
        Names from `RULES`; all of them unless given, which takes seconds to a minute.

    Returns
    -------
    Report
        What was checked, and what does not apply.

    Raises
    ------
    AssertionError
        Rules are broken; the message says which and how.

    Examples
    --------
    >>> import finalist as fl
    >>> print(check_strategy(fl.RAGE, ["next changes nothing", "a log kept as JSON goes on"]))
    rage keeps 2 rules.
    >>> print(check_strategy(fl.RAGE(), ["the cap of a simulation is kept"]))
    rage keeps 0 rules; 1 does not apply:
    - the cap of a simulation is kept: it has no compiled loop
    """
    name, chosen = _name_of(strategy), _chosen(rules)
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


def _name_of(given: Any) -> str:
    """Return the name of the strategy; refuse one that promises no error probability."""
    strategy = maker(given)(Arms.unstructured(3), THETA)
    name = str(getattr(strategy, "name", type(strategy).__name__))
    if promise_of(strategy) == "budget":
        raise ProblemError(
            f"strategy {name!r} spends a fixed budget; these rules are for strategies that keep an "
            "error probability."
        )
    return name


def _chosen(names: Iterable[str] | None) -> list[Rule]:
    wanted = list(RULES if names is None else names)
    unknown = [name for name in wanted if name not in RULES]
    if unknown:
        raise ProblemError(f"{unknown[0]!r} is no rule; the rules are {', '.join(RULES)}.")
    return [RULES[name] for name in wanted]


def _words(error: Exception) -> str:
    plain = isinstance(error, AssertionError)
    return str(error) if plain else f"{type(error).__name__}: {error}"
