"""The contract of strategies, to check your own: `check_strategy(MyStrategy)`.

With pytest, one test per rule; strategies with a fixed budget use `BUDGET_RULES`, those with an
indifference zone `ZONE_RULES`:

    @pytest.mark.parametrize("rule", RULES)
    def test_my_strategy(rule):
        try:
            RULES[rule](MyStrategy)
        except NotApplicable as reason:
            pytest.skip(str(reason))
"""

from finalist.testing.rules import (
    BUDGET_RULES,
    RULES,
    ZONE_RULES,
    Report,
    Rule,
    check_strategy,
    rules_of,
)
from finalist.testing.runs import NotApplicable

__all__ = [
    "BUDGET_RULES",
    "RULES",
    "ZONE_RULES",
    "NotApplicable",
    "Report",
    "Rule",
    "check_strategy",
    "rules_of",
]
