"""Every request ends: at its deadline, or when its client goes; on real servers."""

import threading
import time

import httpx
import numpy as np
import psutil  # type: ignore[import-untyped]
import pytest

import finalist as fl
from finalist.errors import DeadlineError, StudyError
from finalist.study import Study
from finalist.web import create_app, uploads
from finalist.web.lifetime import DEADLINE
from finalist.web.uploads import MAX_RESULTS
from finalist.web.workers.issuer import QUICK
from finalist.web.workers.pool import PLAN
from tests.web.labs import person, plane_study
from tests.web.servers import APPS, api, browser_of, in_thread, new_study
from tests.web.test_security import found
from tests.web.test_server import connect
from tests.web.test_workers import ENDLESS, LONG, running, wait_until

SHORT = 1.0
#: More than is chosen from at once.
MANY = 40


@pytest.fixture
def slow(tmp_path):
    """A server on which requests have little time, with a study of many arms."""
    place = tmp_path / "lab.db"
    with in_thread(place, deadline=SHORT) as url, api(url) as client:
        yield url, client


def many(client, name="many"):
    assert MANY**3 > QUICK
    return new_study(client, name, arms={"names": [f"arm {i}" for i in range(MANY)]})


def at_work(url):
    """Wait until a worker has something to do, and return its number."""
    workers = APPS[url].state.workers
    wait_until(lambda: len(workers) == 1)
    return psutil.Process(running(workers).pop())


def is_gone(process):
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


# ---- plans -----------------------------------------------------------------------------------


def test_a_plan_ends_at_its_deadline_and_says_what_to_do(slow):
    url, client = slow
    begin = time.monotonic()
    late = client.post("/plan", json=ENDLESS)
    assert SHORT <= time.monotonic() - begin < SHORT + 5
    assert late.status_code == 504
    assert late.json()["error"] == "DeadlineError"
    assert "1 seconds" in late.json()["message"]
    for words in ("fewer candidates", "fewer draws", "finalist plan", "--deadline"):
        assert words in late.json()["message"]
    assert "retry-after" not in late.headers
    assert len(APPS[url].state.workers) == 0
    assert APPS[url].state.workers.limits[PLAN].inside == 0


def test_a_plan_on_the_page_ends_at_its_deadline_and_keeps_what_was_typed(tmp_path):
    rows = "name,x,y\n" + "".join(f"a{i},{np.cos(i)},{np.sin(i)}\n" for i in range(2000))
    with (
        in_thread(tmp_path / "lab.db", deadline=SHORT) as url,
        browser_of(url, timeout=LONG) as browser,
    ):
        page = browser.post("/new", data={"pasted": rows})
        arms = found(r'name="arms" value="([^"]+)"', page.text)
        form = {"arms": arms, "name": "typed by a person", "known": "known"}
        form |= {"sigma": "100", "gap": "0.0001", "do": "plan", "intercept": "no"}
        late = browser.post("/new/study", data=form)
    assert late.status_code == 504
    assert "typed by a person" in late.text
    assert "fewer candidates" in late.text


def test_a_plan_ends_when_its_client_goes_and_the_next_has_its_turn(tmp_path):
    with in_thread(tmp_path / "lab.db") as url, api(url) as client:
        body = httpx.Request("POST", f"{url}/api/v1/plan", json=ENDLESS).read()
        head = f"POST /api/v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        with connect(url) as near:
            near.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
            worker = at_work(url)
            time.sleep(0.5)
            assert not is_gone(worker)
        begin = time.monotonic()
        wait_until(lambda: is_gone(worker))
        wait_until(lambda: APPS[url].state.workers.limits[PLAN].inside == 0)
        assert time.monotonic() - begin < 5
        small = {"arms": {"names": ["a", "b"]}, "sigma": 1.0, "gap": 1.0, "draws": 2}
        client.post("/plan", json=small).raise_for_status()
        assert len(APPS[url].state.workers) == 1  # which is kept


def test_a_client_that_has_sent_its_next_request_is_heard_leaving(tmp_path):
    with in_thread(tmp_path / "lab.db") as url:
        body = httpx.Request("POST", f"{url}/api/v1/plan", json=ENDLESS).read()
        head = f"POST /api/v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        with connect(url) as near:
            near.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
            worker = at_work(url)
            near.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(0.2)
        wait_until(lambda: is_gone(worker), seconds=10)


# ---- asking ----------------------------------------------------------------------------------


def _slow_ask(place, size, worker):
    time.sleep(LONG)


def test_an_ask_among_many_arms_ends_at_its_deadline(slow, monkeypatch):
    url, client = slow
    number = many(client)
    monkeypatch.setattr("finalist.web.workers.jobs.ask", _slow_ask)
    answers = []

    def ask():
        answers.append(client.post(f"/studies/{number}/ask", json={"size": 50}))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    wait_until(lambda: len(APPS[url].state.workers) == 1)
    # meanwhile the study can be looked at and written to
    client.post(f"/studies/{number}/note", json={"text": "x"}).raise_for_status()
    client.get(f"/studies/{number}/status").raise_for_status()
    assert time.monotonic() - begin < SHORT
    for thread in threads:
        thread.join(LONG)
    assert [answer.status_code for answer in answers] == [504] * 3
    assert "finalist ask" in answers[0].json()["message"]
    assert time.monotonic() - begin < SHORT + 5
    assert len(APPS[url].state.workers) == 0
    assert client.get(f"/studies/{number}/open").json()["pulls"] == []
    with pytest.raises(DeadlineError, match="finalist ask"):  # a client does not try again
        fl.connect(url).open("many").ask()


def test_many_who_ask_at_once_have_one_batch(tmp_path):
    with in_thread(tmp_path / "lab.db") as url, api(url) as client:
        number, seen = many(client), []

        def ask(i):
            answer = client.post(f"/studies/{number}/ask", json={"size": 4, "worker": f"w{i}"})
            seen.append(answer.raise_for_status().json())

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
        pulls = [pull["pull_id"] for batch in seen for pull in batch["pulls"]]
        assert len(pulls) == len(set(pulls)) == 32
        kinds = [e["kind"] for e in client.get(f"/studies/{number}/history").json()["events"]]
        assert kinds.count("issued") == 1
        assert len(APPS[url].state.workers) == 1


def test_a_batch_chosen_by_a_worker_is_the_one_that_a_study_chooses(tmp_path):
    arms = fl.Arms.unstructured(MANY)
    with Study.create(tmp_path / "one.db", "s", arms, sigma=1.0, seed=5) as study:
        expected = [(p.pull_id, p.arm) for p in study.ask(60)]
    Study.create(tmp_path / "two.db", "s", arms, sigma=1.0, seed=5).close()
    with in_thread(tmp_path / "two.db") as url:
        assert [(p.pull_id, p.arm) for p in fl.connect(url).open("s").ask(60)] == expected


def test_a_page_says_that_an_ask_took_too_long(tmp_path, monkeypatch):
    place = tmp_path / "lab.db"
    Study.create(place, "many", fl.Arms.unstructured(MANY), sigma=1.0).close()
    monkeypatch.setattr("finalist.web.workers.jobs.ask", _slow_ask)
    with person(place, deadline=SHORT) as somebody:
        late = somebody.post("/studies/1/ask", {"size": "77"})
    assert late.status_code == 504
    assert "finalist ask" in late.text
    assert 'value="77"' in late.text


def test_a_study_that_was_replaced_or_deleted_is_not_asked(tmp_path):
    place = tmp_path / "lab.db"
    with in_thread(place) as url, api(url) as client:
        number = many(client, "one")
        client.post(f"/studies/{number}/ask", json={}).raise_for_status()
        client.delete(f"/studies/{number}", params={"name": "one"}).raise_for_status()
        again = many(client, "one")
        pulls = client.post(f"/studies/{again}/ask", json={"size": 3}).json()["pulls"]
        assert [pull["pull_id"] for pull in pulls] == [1, 2, 3]
        with Study.create(
            tmp_path / "other.db", "one", fl.Arms.unstructured(MANY + 1), sigma=1.0
        ) as other:
            kinds = [event["kind"] for event in other.history()]
        (tmp_path / "other.db").replace(place)
        for suffix in ("-wal", "-shm"):
            place.with_name(place.name + suffix).unlink(missing_ok=True)
        assert kinds == ["created"]
        assert len(client.post("/studies/1/ask", json={"size": 41}).json()["pulls"]) == 41


# ---- forecasts -------------------------------------------------------------------------------


def test_a_forecast_ends_at_its_deadline_and_is_the_studys_own(tmp_path, monkeypatch):
    place = tmp_path / "lab.db"
    plane_study(place)
    with Study.open(place, "plane") as study:
        forecast = study.status().forecast
    assert forecast is not None
    expected = [pulls if np.isfinite(pulls) else None for pulls in forecast.pulls]
    with in_thread(place) as url, api(url) as client:
        status = client.get("/studies/1/status").json()
        assert status["forecast"]["pulls"] == expected
        assert len(APPS[url].state.workers) == 1
        quick = client.get("/studies/1/status", params={"forecast": "false"}).json()
        assert quick["forecast"] is None
    monkeypatch.setattr("finalist.web.workers.jobs.status", _slow_status)
    with in_thread(place, deadline=SHORT) as url, api(url) as client:
        assert client.get("/studies/1/status").status_code == 504
        assert client.get("/studies/1/status", params={"forecast": "false"}).status_code == 200
        page = httpx.get(f"{url}/studies/1/forecast", trust_env=False)
        assert page.status_code == 504
        assert "took longer" in page.text
        assert httpx.get(f"{url}/studies/1", trust_env=False).status_code == 200


def _slow_status(place):
    time.sleep(LONG)


# ---- everything else -------------------------------------------------------------------------


def test_what_runs_in_a_thread_is_answered_at_the_deadline_too(tmp_path, monkeypatch):
    monkeypatch.setattr("finalist.web.deadlines.GRACE", 0.2)
    with in_thread(tmp_path / "lab.db", deadline=SHORT) as url, api(url) as client:
        number = new_study(client)
        note, done = Study.note, threading.Event()

        def slowly(self, text):
            done.wait(LONG)
            note(self, text)

        monkeypatch.setattr(Study, "note", slowly)
        begin = time.monotonic()
        late = client.post(f"/studies/{number}/note", json={"text": "x"})
        assert late.status_code == 504
        assert time.monotonic() - begin < SHORT + 3
        assert "may still complete" in late.json()["message"]
        assert "content-security-policy" in late.headers
        done.set()
        wait_until(lambda: client.get(f"/studies/{number}").json()["last"] == 2)


def test_news_have_no_deadline(slow):
    _, client = slow
    number = new_study(client)
    with client.stream("GET", f"/studies/{number}/events") as stream:
        lines = stream.iter_lines()
        next(lines)
        time.sleep(2 * SHORT + 2.5)
        client.post(f"/studies/{number}/note", json={"text": "x"}).raise_for_status()
        assert any('"last": 2' in line for line in lines)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_deadline_is_a_number_of_seconds(tmp_path, seconds):
    with pytest.raises(StudyError, match="deadline is"):
        create_app(tmp_path / "lab.db", deadline=seconds)


def test_how_far_a_plan_is_can_be_asked(tmp_path):
    name = "0123456789abcdef" * 2
    with in_thread(tmp_path / "lab.db") as url:
        body = httpx.Request("POST", f"{url}/api/v1/plan", json=ENDLESS | {"gap": 0.05}).read()
        head = f"POST /api/v1/plan?work={name} HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n\r\n"
        with connect(url) as near:
            near.sendall(head.encode() + body)
            at_work(url)
            seen = []

            def look():
                answer = httpx.get(f"{url}/progress/{name}", trust_env=False)
                seen.append(answer.json())
                return seen[-1]["total"] is not None

            wait_until(look)
        assert seen[-1]["total"] == 200
        assert 1 <= seen[-1]["done"] <= 200
        assert seen[-1]["deadline"] == DEADLINE
        wait_until(lambda: httpx.get(f"{url}/progress/{name}", trust_env=False).status_code == 404)
        for wrong in ("x", "0" * 31, name[::-1]):
            assert httpx.get(f"{url}/progress/{wrong}", trust_env=False).status_code == 404


# ---- tables ----------------------------------------------------------------------------------


def test_a_table_with_too_many_rows_is_refused_before_it_is_read(tmp_path, monkeypatch):
    with in_thread(tmp_path / "lab.db") as url, api(url) as client:
        number = new_study(client)
        client.post(f"/studies/{number}/ask", json={"size": 6}).raise_for_status()
        rows = b"pull_id,reward\n" + b"1,0\n" * 3_000_000
        read = threading.Event()
        monkeypatch.setattr(Study, "tell", lambda *_, **__: read.set())
        begin = time.monotonic()
        for end in (b"\n", b"\r\n", b"\r"):
            answer = client.post(
                f"/studies/{number}/tell.csv",
                content=rows.replace(b"\n", end)[: 15 * 2**20],
                headers={"Content-Type": "text/csv"},
            )
            assert answer.status_code == 413
            for words in (f"{MAX_RESULTS:,}", "in parts", "finalist tell"):
                assert words in answer.json()["message"]
        assert time.monotonic() - begin < 10
        assert not read.is_set()
        monkeypatch.undo()
        assert client.get(f"/studies/{number}").json()["last"] == 2


def test_a_page_says_how_many_rows_it_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "MAX_RESULTS", 3)
    place = tmp_path / "lab.db"
    with Study.create(place, "s", fl.Arms.unstructured(2), sigma=1.0) as study:
        study.ask(6)
    with person(place) as somebody:
        rows = "pull_id,reward\n1,0\n2,0\n3,0\n"
        assert somebody.post("/studies/1/upload", {"pasted": rows + "4,0\n"}).status_code == 413
        refused = somebody.post("/studies/1/upload", {"pasted": rows + "4,0\n"})
        assert "in parts" in refused.text
        assert somebody.post("/studies/1/upload", {"pasted": rows}).status_code == 303


def test_tables_of_arms_have_a_limit_too(slow):
    _, client = slow
    table = "name,x\n" + "".join(f"a{i},{i}\n" for i in range(20_001))
    body = {"name": "s", "sigma": 1.0, "arms_csv": table}
    for answer in (
        client.post("/studies", json=body),
        client.post("/arms/preview", content=table, headers={"Content-Type": "text/csv"}),
    ):
        assert answer.status_code == 413
        assert "20,000" in answer.json()["message"]
