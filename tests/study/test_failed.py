"""A result that says "failed": the pull is given up and measured again, with the sheet or not."""

import json
import time
from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import pandas as pd
import pytest

from finalist.client import connect
from finalist.errors import ConflictError, FinalistError, RewardError
from finalist.study import Study
from finalist.study.exports import every_pull
from finalist.study.results import as_results
from tests.cli.common import run
from tests.study import faults
from tests.study.lab import ARMS, Lab
from tests.web.servers import in_thread

LAB = Lab()


def begun(where: str, size: int = 6) -> tuple[Study, list[int]]:
    study = Study.create(where, "one", ARMS, sigma=0.6, seed=3)
    return study, [pull.pull_id for pull in study.ask(size)]


def kinds(study: Study) -> list[str]:
    return [event["kind"] for event in study.history()]


def states(study: Study) -> list[str]:
    return list(study.to_frame().state)


def sheet(rows: list[tuple[int, Any, str | None]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["pull_id", "result", "note"], dtype=object)


def test_a_failed_pull_is_measured_again_in_the_same_batch(where):
    study, pulls = begun(where)
    arms = {pull.pull_id: pull.arm for pull in study.ask()}
    rows = [(pulls[0], 0.5, None), (pulls[1], " FAILED", "dropped"), (pulls[2], "failed", None)]
    assert study.tell(sheet(rows)) == 1
    assert states(study) == ["told", "void", "void", "open", "open", "open", "open", "open"]
    open_ = {pull.pull_id: pull.arm for pull in study.ask()}
    assert (open_[7], open_[8]) == (arms[pulls[1]], arms[pulls[2]])
    reasons = [e["reason"] for e in study.history() if e["kind"] == "voided"]
    assert reasons == ["its result says failed: dropped", "its result says failed"]
    assert kinds(study)[2:] == ["told", "voided", "voided"]
    study.tell(dict.fromkeys(open_, 1.0))
    assert kinds(study)[-1] == "decided"
    with Study.open(where, "one") as again:
        assert states(again) == states(study)


def test_telling_the_same_sheet_again_changes_nothing(where):
    study, pulls = begun(where)
    table = sheet([(pulls[0], 0.5, "wet"), (pulls[1], "failed", "dropped")])
    for client in (None, "a", "a", None):
        study.tell(table, client)
        assert states(study).count("void") == 1
        assert len(study.ask()) == 5
    study.tell({pull.pull_id: 1.0 for pull in study.ask()})
    assert study.status(forecast=False).batches == 1
    assert study.tell(table) == study.tell(table, "a") == 0  # also after the decision
    assert kinds(study).count("voided") == 1


def test_a_call_of_failures_alone_has_its_name(where):
    study, pulls = begun(where)
    assert study.tell({pulls[0]: "failed"}, "call 1") == 0
    assert study.tell({pulls[0]: "failed"}, "call 1") == 0
    with pytest.raises(ConflictError, match="'call 1' was used for other results"):
        study.tell({pulls[0]: "failed", pulls[1]: "failed"}, "call 1")
    assert states(study).count("void") == 1
    (told,) = [event for event in study.history() if event["kind"] == "told"]
    assert (told["count"], told["failed"]) == (0, 1)


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        (
            "failed",
            0.5,
            "measurement 2 .row 2. is void, and its candidate is measured again",
        ),
        (0.5, "failed", r"measurement 2 .row 2. has the result 0\.5 and it did not fail.*amend"),
    ],
)
def test_what_contradicts_the_record_is_refused_with_all_of_its_sheet(where, first, then, message):
    study, pulls = begun(where)
    study.tell({pulls[1]: first})
    before = study.history()
    table = sheet([(pulls[0], 0.25, None), (pulls[1], then, None), (pulls[2], "failed", None)])
    with pytest.raises(ConflictError, match=message):
        study.tell(table)
    assert study.history() == before


def test_a_pull_that_failed_and_has_a_reward_in_one_sheet_is_refused(where):
    study, pulls = begun(where)
    table = sheet([(pulls[0], "failed", None), (pulls[1], 1.0, None), (pulls[0], 0.5, None)])
    with pytest.raises(
        RewardError, match=r"measurement 1 has two results: 'failed' .row 1. " r"and 0\.5"
    ):
        study.tell(table)
    twice = sheet([(pulls[0], "failed", None), (pulls[0], "Failed", "why"), (pulls[1], 1.0, None)])
    assert study.tell(twice) == 1
    assert states(study).count("void") == 1


def test_missing_pulls_may_be_told_as_failed_and_unknown_ones_may_not(where):
    study, pulls = begun(where)
    study.missing(pulls[0], "no seeds are left")
    assert study.tell({pulls[0]: "failed"}) == 0
    assert states(study).count("void") == 0
    with pytest.raises(FinalistError, match="no measurement 99"):
        study.tell({99: "failed"})


def test_two_workers_tell_their_sheets_of_one_batch(where, tmp_path):
    study = Study.create(where, "one", ARMS, sigma=0.6, seed=3)
    first, none = study.ask(3, worker="ann"), study.ask(3, worker="bob")
    assert len(none) == 0  # the first pulls of a pilot are few; the next ones are for both
    study.tell({pull.pull_id: 1.0 for pull in first})
    ann, bob = study.ask(3, worker="ann"), study.ask(3, worker="bob")
    for batch, path in ((ann, tmp_path / "ann.xlsx"), (bob, tmp_path / "bob.csv")):
        batch.to_csv(path)
    frames = [
        pd.read_excel(tmp_path / "ann.xlsx", engine="openpyxl"),
        pd.read_csv(tmp_path / "bob.csv"),
    ]
    frames[0]["result"] = pd.Series([1.0, "failed", 1.5], dtype=object)
    frames[1]["result"] = [1.0, 2.0, 1.5]
    assert study.tell(frames[0]) == 2
    assert study.tell(frames[1]) == 3
    (again,) = study.ask(worker="ann")  # it is hers again
    assert again.arm == ann[1].arm
    assert study.tell({again.pull_id: 0.5}) == 1


def test_notes_of_a_failed_pull_are_its_reason(where):
    study, pulls = begun(where)
    notes = {"note": "fell \0 down", "lamp": 2, "long": "x" * 20_000}
    frame = pd.DataFrame([{"pull_id": pulls[0], "result": "failed", **notes}])
    study.tell(frame)
    (reason,) = [e["reason"] for e in study.history() if e["kind"] == "voided"]
    assert reason.startswith("its result says failed: fell \ufffd down; lamp: 2; long: xxx")
    assert len(reason) == 10_000


def tell_in_parts(send: Callable[[Any], None], where: str) -> None:
    with Study.open(where, "one") as study:
        while batch := study.ask(20):
            told = {p.pull_id: "failed" if p.pull_id % 3 == 0 else 0.5 for p in batch}
            send(told)
            study.tell(told)


def test_a_killed_process_leaves_a_sheet_in_full_or_not_at_all(where):
    Study.create(where, "one", ARMS, sigma=0.6, seed=3, budget=2000).close()
    for moment in range(12):
        process, receiver = faults.start(tell_in_parts, where)
        assert receiver.poll(30)
        time.sleep(moment * 0.004)
        process.kill()
        process.join()
        sent = [told for told in faults.received(receiver) if isinstance(told, dict)]
        with Study.open(where, "one") as study:
            found = dict(enumerate(states(study), 1))
            for told in sent:
                done = {found[pull] for pull in told} - {"void", "told"}
                assert done in (set(), {"open"})
                kept = [found[pull] for pull in told]
                assert kept.count("open") in (0, len(told))
                expected = ["void" if word == "failed" else "told" for word in told.values()]
                assert kept == expected or set(kept) == {"open"}


def test_a_server_and_a_command_tell_the_same_sheet_at_once(tmp_path):
    place, path = tmp_path / "lab.db", tmp_path / "batch.xlsx"
    study, _ = begun(str(place))
    study.ask().to_csv(path)
    frame = pd.read_excel(path, engine="openpyxl")
    frame["result"] = [0.5, "failed", 1.0, "failed", None, 2.0]
    frame.to_excel(path, index=False, engine="openpyxl")
    gate, answers = Barrier(2), []
    with in_thread(place) as url:
        remote = connect(url).open("one")

        def over_http() -> None:
            gate.wait()
            answers.append(remote.tell(path))

        thread = Thread(target=over_http)
        thread.start()
        gate.wait()
        told = run("tell", "one", path, "--db", place, "--format", "json")
        thread.join()
    new = json.loads(told.stdout)["new"]
    assert sorted([new, *answers]) == [0, 3]
    assert states(study) == ["told", "void", "told", "void", "open", "told", "open", "open"]


def test_the_command_says_what_is_measured_again(tmp_path):
    place, path = tmp_path / "lab.db", tmp_path / "batch.csv"
    _, pulls = begun(str(place))
    path.write_text(f"pull_id;result;note\n{pulls[0]};0,5;\n{pulls[1]};failed;dropped\n")
    said = run("tell", "one", path, "--db", place).stdout
    assert "Read as: semicolons, decimal comma." in said
    assert "Stored 1 new result. 1 failed measurement is made again: finalist ask one" in said
    again = json.loads(run("tell", "one", path, "--db", place, "--format", "json").stdout)
    assert (again["new"], again["again"]) == (0, 0)


def test_results_keep_what_failed_apart():
    results = as_results({4: "failed", 3: 0.5, 5: "FAILED "})
    assert results.failed.tolist() == [False, True, True]
    some = results.taken(results.failed)
    assert (some.pull.tolist(), some.failed.tolist()) == ([4, 5], [True, True])


def test_pulls_without_a_note_have_none_in_an_export(tmp_path):
    """Beside a note, pandas would make them nan."""
    study, pulls = begun(str(tmp_path / "lab.db"))
    study.tell(pd.DataFrame({"pull_id": pulls[:2], "result": [1.0, 2.0], "by": ["me", None]}))
    notes = [row["note"] for row in every_pull(study)]
    assert notes[:3] == ['{"by": "me"}', None, None]
