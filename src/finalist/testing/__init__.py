"""The contract of strategies, for your own: `check_strategy(MyStrategy)`.

With pytest, each rule as a test of its own:

    @pytest.mark.parametrize("rule", RULES)
    def test_my_strategy(rule):
        try:
            RULES[rule](MyStrategy)
        except NotApplicable as reason:
            pytest.skip(str(reason))
"""

from finalist.testing.rules import RULES, Report, Rule, check_strategy
from finalist.testing.runs import NotApplicable

__all__ = ["RULES", "NotApplicable", "Report", "Rule", "check_strategy"]
