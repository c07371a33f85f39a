"""Strategies: one a file, one protocol for all."""

from finalist.strategies.about import about as about
from finalist.strategies.about import block_size as block_size
from finalist.strategies.about import guaranteed as guaranteed
from finalist.strategies.about import promise_of as promise_of
from finalist.strategies.about import shown_name as shown_name
from finalist.strategies.protocol import Batch as Batch
from finalist.strategies.protocol import Playable as Playable
from finalist.strategies.protocol import Run as Run
from finalist.strategies.protocol import Strategy as Strategy
from finalist.strategies.protocol import Verdict as Verdict
from finalist.strategies.registry import STRATEGIES as STRATEGIES
from finalist.strategies.registry import all_strategies as all_strategies
from finalist.strategies.registry import configured as configured
from finalist.strategies.registry import named as named
from finalist.strategies.registry import register as register
from finalist.strategies.registry import settings_of as settings_of
from finalist.strategies.registry import strategy_class as strategy_class
from finalist.strategies.table import *  # noqa: F403
