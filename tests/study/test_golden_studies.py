"""Studies of the first schema: every later version goes on with them."""

import json
import shutil

import pytest

from finalist.study import Study
from tests.study.make_golden_studies import FILE, SAID, said


def same(found, expected, path=""):
    """Compare nested values; numbers up to rounding that differs between machines."""
    if isinstance(expected, dict):
        assert found.keys() >= expected.keys(), path  # a later version may say more
        for key in expected:
            same(found[key], expected[key], f"{path}/{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            same(one, other, f"{path}/{i}")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9), path
    else:
        assert found == expected, path


def test_golden_studies_say_what_they_said(tmp_path):
    copy = tmp_path / "lab.db"
    shutil.copy(FILE, copy)
    same(said(str(copy)), json.loads(SAID.read_text()))


def test_golden_studies_go_on(tmp_path):
    copy = tmp_path / "lab.db"
    shutil.copy(FILE, copy)
    with Study.open(copy, "all events") as study:
        study.tell({pull.pull_id: 0.5 for pull in study.ask()})
        assert study.status(forecast=False).batches == 10
        assert len(study.ask(20)) == 20
        kinds = {event["kind"] for event in study.history()}
    assert kinds == {
        "created", "history", "issued", "assigned", "told", "voided", "missing", "amended",
        "decided", "changed", "note",
    }  # fmt: skip
