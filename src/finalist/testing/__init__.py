"""The contract of strategies, for your own: `check_strategy(MyStrategy)`.

With pytest, each rule as a test of its own; `BUDGET_RULES` for strategies with a fixed budget:

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
