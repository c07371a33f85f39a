"""Studies: real experiments on disk, with ask and tell."""

from finalist.study.batch import Batch, Pull
from finalist.study.databases import default_place, studies
from finalist.study.effects import Effect
from finalist.study.snapshot import Snapshot
from finalist.study.status import ArmStatus, Status
from finalist.study.study import Study

__all__ = [
    "ArmStatus",
    "Batch",
    "Effect",
    "Pull",
    "Snapshot",
    "Status",
    "Study",
    "default_place",
    "studies",
]
