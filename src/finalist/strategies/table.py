"""Every strategy of finalist, one line each, in the order in which they are listed to people.

`registry`, `finalist.strategies` and `finalist` offer whatever is imported here.
"""
# ruff: isort: skip_file

from finalist.strategies.gauntlet import Gauntlet as Gauntlet
from finalist.strategies.static.uniform import Uniform as Uniform
from finalist.strategies.static.static import GAllocation as GAllocation
from finalist.strategies.static.static import XYAllocation as XYAllocation
from finalist.strategies.static.static import VAllocation as VAllocation
from finalist.strategies.static.xy_oracle import XYOracle as XYOracle
from finalist.strategies.phased.xy_adaptive import XYAdaptive as XYAdaptive
from finalist.strategies.per_pull.fully_adaptive import FullyAdaptive as FullyAdaptive
from finalist.strategies.budget.od_linbai import ODLinBAI as ODLinBAI
from finalist.strategies.budget.gse import GSE as GSE
from finalist.strategies.budget.peace import Peace as Peace
from finalist.strategies.budget.g_budget import GBudget as GBudget
from finalist.strategies.budget.sequential_halving import SequentialHalving as SequentialHalving
from finalist.strategies.budget.top_two import LinearTopTwo as LinearTopTwo
from finalist.strategies.phased.rage import RAGE as RAGE
from finalist.strategies.per_pull.lingape import LinGapE as LinGapE
from finalist.strategies.per_pull.lingame import LinGame as LinGame
from finalist.strategies.per_pull.lazy_ts import LazyTS as LazyTS
from finalist.strategies.per_pull.track_and_stop import TrackAndStop as TrackAndStop
from finalist.strategies.ranking.bechhofer import Bechhofer as Bechhofer
from finalist.strategies.ranking.rinott import Rinott as Rinott
from finalist.strategies.ranking.kn import KN as KN
from finalist.strategies.ranking.biz import BIZ as BIZ
