"""Studies by all rules: every later version decides the same and goes on with them.

Version 0.1.0 wrote those of rules 1. Only decisions are compared, and those exactly. What is said
of them, estimates, intervals and evidence may get better.
"""

import json
import shutil
from contextlib import ExitStack
from functools import cache

import numpy as np
import pytest

import finalist as fl
from finalist.errors import StudyError
from finalist.problem import FEATURES
from finalist.strategies import STRATEGIES, named
from finalist.study import Study, events
from finalist.study.storage.schema import KINDS
from tests.study.golden_lives import ARMS, EXCLUDED, LATER, LIVES, THETA
from tests.study.make_golden_studies import (
    DECIDED,
    FILE,
    RULES,
    RULES_2,
    RULES_3,
    RULES_4,
    decisions,
)
from tests.study.test_guards import mend

ALL = pytest.mark.parametrize(
    "file", [FILE, RULES, RULES_2, RULES_3, RULES_4], ids=lambda file: file.stem
)


@pytest.fixture
def where(tmp_path):
    """Return a copy of a golden file."""

    def copied(file):
        return str(shutil.copy(file, tmp_path / "lab.db"))

    return copied


def opened(where):
    """Open one study after the other."""
    for name in fl.studies(where):
        with Study.open(where, name) as study:
            yield study


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """Return the studies of a golden file, for those who change nothing: each is replayed once."""

    with ExitStack() as stack:

        @cache
        def found(file):
            where = str(shutil.copy(file, tmp_path_factory.mktemp("golden") / "lab.db"))
            return [stack.enter_context(Study.open(where, name)) for name in fl.studies(where)]

        yield found


def known(entry):
    """Return what is decided in an entry of a JSON file; the first one has all that was said."""
    status = {key: value for key, value in entry["status"].items() if key in DECIDED}
    return {**entry, "status": status}


def part(found, expected):
    """Return what was known then of what is said now: the first file has fewer keys."""
    status = {key: found["status"][key] for key in expected["status"]}
    return {**{key: found[key] for key in expected}, "status": status}


@ALL
def test_decisions_are_those_of_then(file, studies):
    entries = json.loads(file.with_suffix(".json").read_text())
    then = {name: known(entry) for name, entry in entries.items()}
    now = json.loads(json.dumps({study.name: decisions(study) for study in studies(file)}))
    assert now.keys() == then.keys()
    for name, expected in then.items():
        assert part(now[name], expected) == expected, name


@ALL
def test_every_decision_is_found_again(file, studies):
    for study in studies(file):
        state = study._log.now()
        assert state.replay.differs == [], study.name
        events = [e for e in study.history() if e["kind"] == "decided" and "batch" in e]
        logged = [(e["batch"], e["pulls"], e["winner"], tuple(e["rejected"])) for e in events]
        found = [(d.batch, d.pulls, d.winner, d.rejected) for d in state.decisions]
        assert found == logged, study.name


@pytest.mark.parametrize("limit", [0.5, 0.9, 1.1])
def test_decisions_stay_when_evidence_is_computed_otherwise(where, limit, monkeypatch):
    """A mended bet that decides earlier, or later, opens every study all the same."""
    then, differ = json.loads(RULES.with_suffix(".json").read_text()), 0
    mend(monkeypatch, limit)
    for study in opened(where(RULES)):
        state, status = study._log.now(), study.status(forecast=False)
        expected = then[study.name]["status"]
        for key in ("winner", "survivors", "pulls"):
            assert status.to_dict()[key] == expected[key], (study.name, key)
        differs = state.replay.differs
        lost = differs and expected["risk"] is not None and expected["winner"] is not None
        assert status.verdict == ("uncertain" if lost else expected["verdict"]), study.name
        differ += bool(differs)
        assert status.risk == (None if differs else expected["risk"]), study.name
    assert differ > 3


@ALL
def test_what_is_not_decided_goes_on(file, where):
    for study in opened(where(file)):
        before = study.status(forecast=False)
        if study._log.now().end == "stopped":
            study.resume()
        batch = study.ask()
        if before.verdict != "continue" and not batch:
            assert batch.state in ("decided", "budget", "exhausted"), study.name
            continue
        study.tell({pull.pull_id: float(pull.pull_id % 2) for pull in batch})
        after = study.status(forecast=False)
        assert after.batches == before.batches + 1, study.name
        assert after.open_pulls == 0
        assert set(after.survivors) <= set(before.survivors), study.name


def ours():
    """Return the names of the strategies of finalist: other tests register their own."""
    return {n for n, cls in STRATEGIES.items() if cls.__module__.startswith("finalist.strategies")}


def test_every_strategy_is_there_or_left_out_with_a_reason(studies):
    there = {study.settings["strategy"]["name"] for study in studies(RULES)}
    assert there == ours() - EXCLUDED - LATER
    assert ours() >= EXCLUDED | LATER


@pytest.mark.parametrize("name", sorted(EXCLUDED))
def test_what_is_left_out_cannot_be_in_a_study(tmp_path, name):
    strategy = named(name, ARMS, np.array(THETA))
    with pytest.raises(StudyError, match="needs to know the truth"):
        Study.create(tmp_path / "lab.db", "one", ARMS, strategy, sigma=0.6)


def test_every_life_every_event_and_every_option_is_there(studies):
    names, kinds, needs, ends, forks = set(), set(), set(), set(), set()
    for study in studies(RULES):
        state = study._log.now()
        names.add(study.name)
        kinds |= {event["kind"] for event in study.history()}
        needs |= state.problem.needs
        ends.add(state.end)
        forks |= {study.name} if "fork_of" in study.history()[0] else set()
    assert names - forks == set(LIVES)
    assert forks
    assert kinds == set(KINDS) == set(events.KINDS)
    assert needs == FEATURES - {"link"}  # which no strategy takes yet
    assert ends == {None, "decided", "stopped", "budget", "exhausted"}
