"""Make the file of schema 1 that later versions must read: python -m tests.study.make_golden."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from finalist.study.results import Results
from finalist.study.storage import writer as database_writer
from finalist.study.storage.database import Database

GOLDEN = Path(__file__).with_name("golden") / "schema-1.db"
AT = "2026-01-02T03:04:05.000006+00:00"
NAME, VERSION = 'Robert"); DROP TABLE studies;-- 🧪', "0.1.0"
SETTINGS = {"delta": 0.05, "noise": {"kind": "gaussian", "sigma": 1.5}, "text": "ä\u0000"}
ARMS, COLUMNS = ["red", "grün", "🟦"], ["x", "y"]
FEATURES = np.array([[1.0, -0.5], [1e-300, 2.0], [1e150, 1 / 3]])
EVENTS: list[tuple[str, str | None, dict[str, Any], Any]] = [
    ("created", None, {"arms": 3}, None),
    ("issued", "ask-1", {"batch": 1, "pulls": [0, 1, 2]}, None),
    ("told", "tell-1", {}, Results([2, 0], [-1e150, 0.1], note=["dusty", None])),
    ("told", None, {"late": True}, Results([1], [5e-324])),
    ("amended", "amend-1", {"why": "typo"}, Results([2], [0.25], note=["dusty, again"])),
]
#: Event, pull and reward, as they are read.
REWARDS = [(3, 0, 0.1), (3, 2, -1e150), (4, 1, 5e-324), (5, 2, 0.25)]
NOTES = {2: "dusty, again"}


def make(where: str) -> None:
    """Write the golden study to a new database."""
    with pytest.MonkeyPatch.context() as patch, Database.open(where, create=True) as database:
        patch.setattr(database_writer, "_now", lambda: AT)
        with database.write() as writer:
            study = writer.create(NAME, SETTINGS, VERSION)
            writer.add_arms(study, 0, ARMS, FEATURES, COLUMNS)
            for number, (kind, client, body, rewards) in enumerate(EVENTS, start=1):
                writer.append(study, number, kind, body, client=client, rewards=rewards)
            writer.create("second", {}, VERSION)


if __name__ == "__main__":
    GOLDEN.unlink(missing_ok=True)
    make(str(GOLDEN))
