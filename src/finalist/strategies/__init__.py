"""Strategies: one a file, one protocol for all."""

from finalist.strategies.fully_adaptive import FullyAdaptive
from finalist.strategies.g import GAllocation
from finalist.strategies.g_budget import GBudget
from finalist.strategies.gauntlet import Gauntlet
from finalist.strategies.gse import GSE
from finalist.strategies.lazy_ts import LazyTS
from finalist.strategies.lingame import LinGame
from finalist.strategies.lingape import LinGapE
from finalist.strategies.od_linbai import ODLinBAI
from finalist.strategies.peace import Peace
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
from finalist.strategies.rage import RAGE
from finalist.strategies.registry import (
    STRATEGIES,
    all_strategies,
    configured,
    named,
    register,
    settings_of,
    strategy_class,
)
from finalist.strategies.track_and_stop import TrackAndStop
from finalist.strategies.uniform import Uniform
from finalist.strategies.v import VAllocation
from finalist.strategies.xy import XYAllocation
from finalist.strategies.xy_adaptive import XYAdaptive
from finalist.strategies.xy_oracle import XYOracle

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
