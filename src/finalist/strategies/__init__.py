"""Strategies: one a file, one protocol for all."""

from finalist.strategies.budget.g_budget import GBudget
from finalist.strategies.budget.gse import GSE
from finalist.strategies.budget.od_linbai import ODLinBAI
from finalist.strategies.budget.peace import Peace
from finalist.strategies.gauntlet import Gauntlet
from finalist.strategies.per_pull.fully_adaptive import FullyAdaptive
from finalist.strategies.per_pull.lazy_ts import LazyTS
from finalist.strategies.per_pull.lingame import LinGame
from finalist.strategies.per_pull.lingape import LinGapE
from finalist.strategies.per_pull.track_and_stop import TrackAndStop
from finalist.strategies.phased.rage import RAGE
from finalist.strategies.phased.xy_adaptive import XYAdaptive
from finalist.strategies.protocol import (
    Batch,
    Playable,
    Run,
    Strategy,
    Verdict,
    block_size,
    guaranteed,
    promise_of,
    shown_name,
)
from finalist.strategies.registry import (
    STRATEGIES,
    all_strategies,
    configured,
    named,
    register,
    settings_of,
    strategy_class,
)
from finalist.strategies.static.g import GAllocation
from finalist.strategies.static.uniform import Uniform
from finalist.strategies.static.v import VAllocation
from finalist.strategies.static.xy import XYAllocation
from finalist.strategies.static.xy_oracle import XYOracle

__all__ = [
    "GSE",
    "RAGE",
    "STRATEGIES",
    "Batch",
    "FullyAdaptive",
    "GAllocation",
    "GBudget",
    "Gauntlet",
    "LazyTS",
    "LinGame",
    "LinGapE",
    "ODLinBAI",
    "Peace",
    "Playable",
    "Run",
    "Strategy",
    "TrackAndStop",
    "Uniform",
    "VAllocation",
    "Verdict",
    "XYAdaptive",
    "XYAllocation",
    "XYOracle",
    "all_strategies",
    "block_size",
    "configured",
    "guaranteed",
    "named",
    "promise_of",
    "register",
    "settings_of",
    "shown_name",
    "strategy_class",
]
