"""The contract of strategies, to check your own: `check_strategy(MyStrategy)`.

With pytest, one test per rule; strategies with a fixed budget use `BUDGET_RULES`:

    @pytest.mark.parametrize("rule", RULES)
    def test_my_strategy(rule):
        try:
            RULES[rule](MyStrategy)
        except NotApplicable as reason:
            pytest.skip(str(reason))
"""

from finalist.testing.rules import BUDGET_RULES, RULES, Report, Rule, check_strategy, rules_of
from finalist.testing.runs import NotApplicable

__all__ = [
    "BUDGET_RULES",
    "RULES",
    "NotApplicable",
    "Report",
    "Rule",
    "check_strategy",
    "rules_of",
]
