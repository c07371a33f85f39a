"""A snapshot is a study after one event, whatever happens later; words are made when shown."""

import dataclasses
from typing import Any, cast

import numpy as np
import pytest

import finalist as fl
from finalist.study import Study
from finalist.study.status import status

ARMS = fl.Arms.unstructured(["a", "b", "c"])


def told(study, size=12):
    batch = study.ask(size=size)
    study.tell({p.pull_id: float(ord(p.arm) + p.pull_id % 2) for p in batch})


def test_a_snapshot_stays_as_it_was(tmp_path):
    with Study.create(tmp_path / "lab.db", "s", ARMS, sigma=1.0, seed=1) as study:
        told(study)
        study.ask(size=6)
        seen = study.snapshot()
        before = status(seen).to_dict()
        assert before == study.status(forecast=False).to_dict()
        assert [event["number"] for event in seen.events] == [1, 2, 3, 4, 5][-len(seen.events) :]
        assert (seen.number, seen.event, seen.name) == (study.number, 5, "s")
        pulls, evidence = (part.copy() for part in seen.trail)
        while batch := study.ask(size=6):
            study.tell({p.pull_id: float(ord(p.arm)) for p in batch})
        assert study.status().verdict == "winner"
    assert status(seen).to_dict() == before
    np.testing.assert_array_equal(seen.trail[0], pulls)
    np.testing.assert_array_equal(seen.trail[1], evidence)
    assert seen.batch is not None
    assert len(seen.batch) == seen.open_pulls == 6
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen.event = 6


@pytest.mark.parametrize(
    ("strategy", "settings"),
    [
        ("gauntlet", {}),
        ("gauntlet", {"top": 2}),
        ("od-linbai", {"budget": 60}),
        ("uniform", {}),
    ],
)
def test_what_a_batch_is_for_is_said_and_not_stored(tmp_path, strategy, settings):
    with Study.create(tmp_path / "lab.db", "s", ARMS, strategy, sigma=9.0, **settings) as study:
        for _ in range(3):
            words = study.ask(size=12).words
            assert (words == "") == (strategy == "uniform")
            with Study.open(tmp_path / "lab.db", "s") as again:
                batch = again.snapshot().batch
                assert batch is not None
                assert batch.words == again.ask(size=12).words == words
            study.void(study.ask(size=12)[0].pull_id, "it fell")
            assert study.ask(size=12).words == words
            told(study)
        notes = [event["note"] for event in study.history() if event["kind"] == "issued"]
    assert len(notes) == 3
    assert not any("words" in note for note in notes)


def test_words_of_a_note_are_shown(tmp_path):
    """Strategies of others write them, and so did ours in studies that are older."""
    with Study.create(tmp_path / "lab.db", "s", ARMS, sigma=1.0) as study:
        study.ask(size=6)
        note = cast(dict[str, Any], study._log.now().issued[-1].note)
        note["words"] = "An old sentence."
        assert study.ask(size=6).words == "An old sentence."
