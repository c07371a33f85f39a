"""Rules of `finalist.testing` for our strategies: which have many runs, what may be left out.

With the shapes of all arrays checked a run takes several times as long, and the thousandth run
passes the same annotations as the first: rules that count errors run without.
"""

from collections.abc import Iterable

import pytest

from finalist.testing import NotApplicable, Rule

#: How the names of rules begin that count errors in many runs.
MANY_RUNS = (
    "errors are as rare",
    "good enough rules out",
    "ties never end",
    "a small budget",
    "a large budget",
)
#: Strategies that a rule may leave out, by the reason; a rule must not leave out others of ours.
LEFT_OUT = {
    "it is not for such arms": ["track-and-stop"],
    "it knows the answer": ["xy-oracle"],
    "it has no compiled loop": [
        "gauntlet",
        "uniform",
        "xy-oracle",
        "xy-adaptive",
        "rage",
        "od-linbai",
        "gse",
        "peace",
        "g-budget",
        "sequential-halving",
        "top-two",
        "bechhofer",
        "rinott",
        "kn",
        "biz",
    ],
}


def many_runs(rules: Iterable[str]) -> list[str]:
    """Return the rules that count errors in many runs."""
    return [rule for rule in rules if rule.startswith(MANY_RUNS)]


def few_runs(rules: Iterable[str]) -> list[str]:
    """Return the other rules."""
    return [rule for rule in rules if not rule.startswith(MANY_RUNS)]


def check(rule: Rule, name: str) -> None:
    """Check one of our strategies, or skip where the rule may leave it out."""
    reason = None
    try:
        rule(name)
    except NotApplicable as found:
        reason = str(found)
    if reason is not None:
        assert name in LEFT_OUT[reason]
        pytest.skip(reason)
