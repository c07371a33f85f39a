"""How requests get at studies: handles that are lent, files that are replaced, PostgreSQL."""

import re
import threading
from contextlib import closing

import httpx
import pytest

import finalist as fl
from finalist.errors import BusyError, RewardError, StorageError, UnknownStudyError
from finalist.study import Study
from finalist.study.storage.upgrade import backup
from finalist.web import cache, pool
from finalist.web.cache import Snapshots
from finalist.web.limits import WorkLimit
from finalist.web.pool import Studies
from finalist.web.workers.pool import Workers
from tests.study.lab import ARMS, Lab, finish
from tests.web.servers import api, in_thread, new_study

TWO = fl.Arms.unstructured(["a", "b"])


@pytest.fixture
def place(tmp_path):
    return tmp_path / "lab.db"


@pytest.fixture
def studies(place):
    found = Studies(place)
    yield found
    found.close()


def make(place, name):
    with Study.create(place, name, TWO, sigma=1.0, seed=1) as study:
        return study._log.row.id


def look(studies, number):
    with studies.reading(number) as study:
        return study.status(forecast=False).open_pulls


def test_a_handle_is_lent_again_and_never_twice_at_once(studies, place):
    number = make(place, "x")
    with studies.reading(number) as first, studies.reading(number) as second:
        assert first is not second
    with studies.reading(number) as third, studies.reading(number) as fourth:
        assert {third, fourth} == {first, second}
    with studies.writing(number) as one:
        assert one not in (first, second)
    with studies.writing(number) as two:
        assert two is one


def test_few_handles_are_kept(studies, place, monkeypatch):
    monkeypatch.setattr(pool, "MAX_IDLE", 3)
    numbers = [make(place, f"x{i}") for i in range(6)]
    for number in numbers:
        with studies.reading(number), studies.reading(number), studies.reading(number):
            pass
        with studies.writing(number) as study:
            study.note("hello")
    assert 0 < sum(map(len, studies._idle.values())) <= 3
    assert 0 < len(studies._writers) <= 3


def test_who_looks_does_not_wait_for_who_writes(studies, place):
    number = make(place, "x")
    with studies.writing(number) as study:
        batch, seen = study.ask(4), []
        thread = threading.Thread(target=lambda: seen.append(look(studies, number)))
        thread.start()
        thread.join(30)
        assert seen == [4]
        study.tell({batch[0].pull_id: 1.0})
    assert look(studies, number) == 3


def test_who_writes_waits_for_others_and_not_for_ever(studies, place, monkeypatch):
    monkeypatch.setattr(pool, "WAIT", 0.05)
    number, failures = make(place, "x"), []

    def write():
        try:
            with studies.writing(number):
                pass
        except BusyError as error:
            failures.append(str(error))

    with studies.writing(number):
        thread = threading.Thread(target=write)
        thread.start()
        thread.join(10)
    assert "Nothing was changed" in failures[0]


def test_an_error_leaves_a_handle_that_is_good(studies, place):
    number = make(place, "x")
    with pytest.raises(RewardError), studies.writing(number) as study:
        study.tell({study.ask(4)[0].pull_id: float("nan")})
    with studies.writing(number) as study:
        assert len(study.ask(4)) == 4


def test_a_study_that_is_deleted_is_forgotten(studies, place):
    number = make(place, "x")
    look(studies, number)
    with Study.open(place, "x") as study:
        study.delete()
    with pytest.raises(UnknownStudyError):
        look(studies, number)
    assert number not in studies._rows
    with (
        pytest.raises(UnknownStudyError, match="no study number"),
        studies.writing(number),
    ):
        pass


def test_a_backup_that_is_put_in_place_is_served(studies, place, tmp_path):
    number = make(place, "x")
    backup(place, tmp_path / "copy.db")
    with studies.writing(number) as study:
        study.note("not in the backup")
    assert studies.last(number) == 2
    for end in ("-wal", "-shm"):
        place.with_name(place.name + end).unlink(missing_ok=True)
    (tmp_path / "copy.db").replace(place)
    assert studies.last(number) == 1
    with studies.writing(number) as study:
        study.note("in the backup")
        assert len(study.history()) == 2
    assert look(studies, number) == 0


def test_nothing_is_kept_of_a_file_that_was_replaced(place, tmp_path):
    """A backup with as many events as the file had must not show what the file said."""
    number = make(place, "x")
    with Study.open(place, "x") as study:
        study.tell({p.pull_id: 0.0 for p in study.ask(8)})
        pulls = {p.pull_id: p.arm for p in study.ask(8)}
    backup(place, tmp_path / "copy.db")

    def tell(best):
        with Study.open(place, "x") as study:
            study.tell({pull: 50.0 if arm == best else -50.0 for pull, arm in pulls.items()})
            study.ask(8)  # what was kept back of the pilot decides

    def look(client):
        status = client.get(f"/api/v1/studies/{number}/status").json()
        svg = client.get(f"/studies/{number}/chart/evidence.svg", headers=tags)
        tags["If-None-Match"] = svg.headers["etag"]
        return {
            "last": status["last"],
            "leader": status["leader"],
            "list": client.get("/api/v1/studies").json()["studies"][0]["sentence"],
            "page": re.findall(
                r'<tr class="winner">\s*<th[^>]*>(?:<span[^>]*></span>)?(\w)<', page(client)
            ),
            "svg": svg.text if svg.status_code == 200 else svg.status_code,
        }

    def page(client):
        return client.get(f"/studies/{number}").text

    tags: dict[str, str] = {}
    with in_thread(place) as url, httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        tell("a")
        first = look(client)
        assert (first["leader"], first["page"]) == ("a", ["a"])
        assert look(client)["svg"] == 304
        for end in ("-wal", "-shm"):
            place.with_name(place.name + end).unlink(missing_ok=True)
        (tmp_path / "copy.db").replace(place)
        tell("b")
        second = look(client)
    assert second["last"] == first["last"]
    assert (second["leader"], second["page"]) == ("b", ["b"])
    assert "b is the best" in second["list"]
    assert second["svg"] not in (304, first["svg"])


def test_a_name_that_another_study_has_now_deletes_nothing(studies, place):
    number = make(place, "x")
    studies.row(number)
    with Study.open(place, "x") as study:
        study.delete()
    other = make(place, "x")
    with pytest.raises(UnknownStudyError):
        studies.delete(number)
    assert [row.id for row in studies.rows()] == [other]


def test_a_file_that_is_gone_is_said(studies, place):
    number = make(place, "x")
    place.rename(place.with_name("elsewhere.db"))
    with pytest.raises(StorageError, match="was moved or deleted"):
        studies.row(number)


def test_a_life_on_postgresql(postgresql):
    taken = {"name": "other", "arms": {"names": ["a", "b"]}, "sigma": 1.0}
    with in_thread(postgresql) as url, api(url) as client:
        study = fl.connect(url).create("life", ARMS, sigma=0.6, seed=1, check=0)
        finish(study, Lab(), 40)
        assert study.status().verdict == "winner"
        number = new_study(client, "other")
        assert client.post("/studies", json=taken).status_code == 409
        assert client.get("/studies/2147483647").status_code == 404
        client.delete(f"/studies/{number}", params={"name": "other"}).raise_for_status()
        with pytest.raises(UnknownStudyError):
            fl.connect(url).open("other")


def test_who_finds_no_place_for_a_forecast_is_told_in_a_sentence(studies, place, monkeypatch):
    monkeypatch.setattr(cache, "_WAITING", 0)
    number, other = make(place, "x"), make(place, "y")
    with Study.open(place, "x") as study:
        study.tell({p.pull_id: 0.5 for p in study.ask(8)})
    with closing(Workers()) as workers:
        found = Snapshots(studies, workers)
        with found._forecasting.take(number):
            with pytest.raises(BusyError, match=r"forecasts are being simulated .* Try again"):
                found.status(number, forecast=True)
            assert found.status(other, forecast=True)[1].forecast is None  # nothing is measured
        assert len(workers) == 0


def test_turns_are_taken():
    turns = WorkLimit("plans", at_once=1, waiting=1, seconds=0.1)
    order: list[str] = []

    def work(name):
        try:
            with turns.take():
                order.append(name)
        except BusyError:
            order.append("busy")

    with turns.take():
        waiting = threading.Thread(target=work, args=("second",))
        waiting.start()
        waiting.join(0.02)
        work("third")  # there is no place left to wait
        waiting.join(10)
    assert order == ["busy", "busy"]
    work("fourth")
    assert order[-1] == "fourth"
