"""How much one may take of the server: connections, their time, threads; on real sockets."""

import asyncio
import json
import socket
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from typing import Any, cast

import h11
import httpx
import pytest
import uvicorn
from h11._receivebuffer import ReceiveBuffer
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

import finalist as fl
from finalist.errors import BusyError
from finalist.study import Study
from finalist.web import pool
from finalist.web.app import THREADS
from finalist.web.headers import CONTENT_POLICY
from finalist.web.live import MAX_PAGES
from finalist.web.pool import Studies
from finalist.web.security.connections import Limits, limited
from finalist.web.security.tokens import hash_of
from finalist.web.workers.pool import PLAN
from tests.web.servers import APPS, HOST, SERVERS, api, browser_of, in_thread, new_study
from tests.web.test_security import TOKEN, found

TWO = fl.Arms.unstructured(["a", "b"])
GET = b"GET /api/v1/studies HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /api/v1/studies HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
#: Seconds that are short, and those after which even a slow machine is through with them.
SHORT, LONG = 0.4, 20.0


def test_uvicorn_and_h11_have_the_insides_that_connections_use():
    config = uvicorn.Config(cast(Any, APPS), http=limited(Limits()), log_config=None)
    with closing(asyncio.new_event_loop()) as loop:
        connection = limited(Limits())(config, ServerState(), {}, loop)
    words = "app client conn connections cycle flow loop transport"
    assert all(hasattr(connection, word) for word in words.split())
    overridden = "connection_made data_received on_response_complete timeout_keep_alive_handler"
    overridden += " shutdown pause_writing resume_writing connection_lost send_400_response"
    assert all(callable(getattr(H11Protocol, word)) for word in overridden.split())
    assert type(connection.conn._receive_buffer) is ReceiveBuffer
    assert callable(ReceiveBuffer.maybe_extract_lines)
    assert connection.conn.their_state is h11.IDLE
    assert connection.conn.trailing_data == (b"", False)
    assert {"resume_reading", "write_paused"} <= set(dir(FlowControl)) | set(
        vars(FlowControl(transport=cast(Any, None)))
    )


def connect(url, **options):
    """Return a socket that has said nothing yet."""
    near = socket.socket()
    near.settimeout(LONG)
    for option, value in options.items():
        near.setsockopt(socket.SOL_SOCKET, getattr(socket, option), value)
    near.connect((HOST, int(url.rsplit(":")[-1])))
    return closing(near)


def rest_of(near):
    """Return everything that comes until the server closes the connection."""
    text = b""
    try:
        while piece := near.recv(65536):
            text += piece
    except ConnectionResetError:
        pass
    return text


def status_of(near):
    """Read one answer and return its status."""
    text = b""
    while b"\r\n\r\n" not in text:
        piece = near.recv(65536)
        assert piece, text
        text += piece
    head, _, body = text.partition(b"\r\n\r\n")
    left = int(found(r"content-length: ([0-9]+)", head.decode().lower())) - len(body)
    while left > 0:
        left -= len(near.recv(left))
    return int(head.split()[1])


def dribble(near, *, every=SHORT / 8):
    """Send a letter now and then; return after how many seconds the server has had enough."""
    begin = time.monotonic()
    near.settimeout(every)
    while time.monotonic() < begin + LONG:
        try:
            near.sendall(b"x")
            if not near.recv(65536):
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - begin


def connected(url, count):
    """Wait until the server has so many connections."""
    until = time.monotonic() + LONG
    while (found := len(SERVERS[url].server_state.connections)) != count:
        assert time.monotonic() < until, found
        time.sleep(0.01)


# ---- slow connections ------------------------------------------------------------------------


def test_who_says_nothing_is_not_waited_for(tmp_path):
    with in_thread(tmp_path / "lab.db", limits=Limits(headers=SHORT)) as url, ExitStack() as opened:
        begin = time.monotonic()
        silent = [opened.enter_context(connect(url)) for _ in range(5)]
        assert [rest_of(near) for near in silent] == [b""] * 5
        assert time.monotonic() - begin > 0.9 * SHORT
        connected(url, 0)


@pytest.mark.parametrize("before", [b"", GET + b"\r\n"])
def test_slow_headers_are_not_waited_for(tmp_path, before):
    """Also after an answer, when uvicorn's own limit ends with the first letter."""
    with (
        in_thread(tmp_path / "lab.db", limits=Limits(headers=SHORT)) as url,
        connect(url) as near,
    ):
        near.sendall(before)
        if before:
            assert status_of(near) == 200
        near.sendall(GET + b"X-Slow: ")
        assert 0.5 * SHORT < dribble(near) < LONG
        assert httpx.get(f"{url}/api/v1/studies", trust_env=False).status_code == 200


def test_a_body_that_goes_on_after_its_answer_is_not_waited_for(tmp_path):
    limits = Limits(body=SHORT)
    with (
        in_thread(tmp_path / "lab.db", limits=limits, token_hash=hash_of(TOKEN)) as url,
        connect(url) as near,
    ):
        near.sendall(POST + b"Content-Length: 10000\r\n\r\n")
        assert status_of(near) == 401
        assert 0.5 * SHORT < dribble(near) < LONG


def test_who_takes_time_within_reason_is_waited_for(tmp_path):
    """A slow upload, a used connection, a page that waits for news: all longer than headers may."""
    limits, pause = Limits(headers=1.0, stuck=1.0), 0.35
    with in_thread(tmp_path / "lab.db", limits=limits) as url, api(url) as client:
        number = new_study(client)
        with connect(url) as near, connect(url) as page:
            page.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            body = json.dumps({"size": 3}).encode().ljust(40)
            path = b"/api/v1/studies/%d/ask" % number
            head = POST.replace(b"/api/v1/studies", path) + b"Content-Length: 40\r\n"
            near.sendall(head + b"\r\n")
            for begin in range(0, 40, 10):
                time.sleep(pause)
                near.sendall(body[begin : begin + 10])
            assert status_of(near) == 200
            for _ in range(4):
                time.sleep(pause)
                near.sendall(GET + b"\r\n")
                assert status_of(near) == 200
            client.post(f"/studies/{number}/note", json={"text": "hello"}).raise_for_status()
            heard = b""
            while b'"last": 3' not in heard:
                piece = page.recv(65536)
                assert piece, heard
                heard += piece


@contextmanager
def slow_line(url):
    """Give a connection on which little is under way at a time."""
    listening = SERVERS[url].servers[0].sockets[0]
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)  # of those to come
    with connect(url, SO_RCVBUF=8192) as near:
        yield near


#: Answers that are larger than what is under way: one that makes the server wait, and some that
#: it has sent, as far as it knows, and then lets the connection rest or closes it.
LARGE = [("/api/v1/openapi.json", 1, b""), ("/static/style.css", 3, b"")]
LARGE += [(path, count, b"Connection: close\r\n") for path, count, _ in LARGE]


def ask_for(near, path, count, header):
    """Ask several times for something, and say something in the last request."""
    lines = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n".encode()
    near.sendall((lines + b"\r\n") * (count - 1) + lines + header + b"\r\n")


@pytest.mark.parametrize(("path", "count", "header"), LARGE)
def test_an_answer_that_nobody_takes_is_given_up(tmp_path, path, count, header):
    limits = Limits(stuck=SHORT, headers=SHORT)
    with in_thread(tmp_path / "lab.db", limits=limits) as url:
        with slow_line(url) as near:
            ask_for(near, path, count, header)
            connected(url, 1)
            connected(url, 0)
            assert b"\n" in rest_of(near)
        assert httpx.get(f"{url}/api/v1/studies", trust_env=False).status_code == 200


@pytest.mark.parametrize(("path", "count", "header"), LARGE)
def test_an_answer_that_is_taken_slowly_is_not_given_up(tmp_path, path, count, header):
    whole = 0
    with in_thread(tmp_path / "lab.db", limits=Limits(stuck=1.0, headers=1.0)) as url:
        expected = count * len(httpx.get(url + path, trust_env=False).content)
        with slow_line(url) as near:
            ask_for(near, path, count, header)
            begin = time.monotonic()
            while whole < expected and (piece := near.recv(2048)):
                whole += len(piece)
                time.sleep(2.5 * len(piece) / expected)
            assert time.monotonic() - begin > 2.0
            assert whole >= expected


# ---- many connections ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits", [Limits(here=3, headers=LONG), Limits(most=3, headers=LONG)], ids=["each", "all"]
)
def test_who_finds_no_place_is_told_so_in_our_words(tmp_path, limits):
    with in_thread(tmp_path / "lab.db", limits=limits) as url:
        with ExitStack() as opened:
            for _ in range(3):
                opened.enter_context(connect(url))
            connected(url, 3)
            answer = httpx.get(f"{url}/api/v1/studies", trust_env=False)
            page = httpx.get(f"{url}/", trust_env=False)
            for refused in (answer, page):
                assert refused.status_code == 503
                assert 0 < int(refused.headers["retry-after"]) <= 5
                assert refused.headers["connection"] == "close"
                assert refused.headers["content-security-policy"] == CONTENT_POLICY
                assert refused.headers["x-content-type-options"] == "nosniff"
            assert answer.json()["error"] == "BusyError"
            assert set(answer.json()) == {"error", "message", "remedy"}
            assert page.headers["content-type"].startswith("text/html")
            assert "Try again in a moment" in page.text
            with pytest.raises(BusyError, match="connection limit"):
                fl.connect(url, patience=0.0).studies()
        connected(url, 0)
        assert httpx.get(f"{url}/api/v1/studies", trust_env=False).status_code == 200


def test_a_client_waits_for_a_place(tmp_path):
    limits = Limits(here=2, headers=SHORT)
    with in_thread(tmp_path / "lab.db", limits=limits) as url, connect(url), connect(url):
        connected(url, 2)
        assert fl.connect(url).studies() == []


def test_too_many_who_find_no_place_are_not_told(tmp_path):
    limits = Limits(here=1, told=2, headers=LONG)
    with in_thread(tmp_path / "lab.db", limits=limits) as url, ExitStack() as opened:
        near = []
        for number in range(6):
            near.append(opened.enter_context(connect(url)))
            connected(url, min(number + 1, 3))
        assert [rest_of(silent) for silent in near[1:4]] == [b""] * 3
        for status, talking in ((200, near[0]), (503, near[4]), (503, near[5])):
            talking.sendall(GET + b"Connection: close\r\n\r\n")
            assert rest_of(talking).startswith(b"HTTP/1.1 %d" % status)


def test_one_address_does_not_take_all_places():
    limits = Limits()
    assert limits.each < limits.here < limits.most
    assert limits.here >= MAX_PAGES + 50  # pages behind a proxy of this machine, and workers


# ---- threads ---------------------------------------------------------------------------------


@contextmanager
def plans_being_made(url):
    """Take the turns to make plans, and all places to wait for one."""
    done, threads = threading.Event(), []
    simulating, places = APPS[url].state.workers.limits[PLAN], PLAN.at_once + PLAN.waiting

    def take():
        with simulating.take():
            done.wait(LONG)

    for _ in range(places):
        threads.append(threading.Thread(target=take))
        threads[-1].start()
    until = time.monotonic() + LONG
    while simulating.inside < places and time.monotonic() < until:
        time.sleep(0.01)
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join(LONG)


def test_plans_of_pages_and_of_programs_take_turns_together(tmp_path):
    arms = "name,x\na,1\nb,2\n"
    with (
        in_thread(tmp_path / "lab.db") as url,
        api(url) as client,
        browser_of(url, timeout=LONG) as browser,
    ):
        page = browser.post("/new", data={"pasted": arms})
        form = {
            "arms": found(r'name="arms" value="([^"]+)"', page.text),
            "name": "typed by a person",
            "noise": "gaussian",
            "known": "known",
            "sigma": "1",
            "delta": "5",
            "epsilon": "0",
            "objective": "max",
            "strategy": "gauntlet",
            "gap": "1",
            "do": "plan",
        }
        with plans_being_made(url):
            begin = time.monotonic()
            refused = browser.post("/new/study", data=form)
            answer = client.post(
                "/plan", json={"arms": {"names": ["a", "b"]}, "sigma": 1.0, "gap": 1}
            )
            assert time.monotonic() - begin < 5
        for busy in (refused, answer):
            assert busy.status_code == 503
            assert int(busy.headers["retry-after"]) > 0
            assert "too many plans are being made" in busy.text.lower()
        assert "typed by a person" in refused.text
        assert APPS[url].state.workers.limits[PLAN].inside == 0


def test_who_writes_to_one_busy_study_leaves_threads_to_all_others(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "MAX_WRITERS_EACH", 3)
    place = tmp_path / "lab.db"
    with in_thread(place) as url, api(url) as client:
        busy, other = new_study(client, "busy"), new_study(client, "other")
        studies: Studies = APPS[url].state.studies
        answers: list[httpx.Response] = []

        def note():
            path = f"{url}/api/v1/studies/{busy}/note"
            answers.append(httpx.post(path, json={"text": "x"}, timeout=60, trust_env=False))

        threads = [threading.Thread(target=note) for _ in range(10)]
        with studies.writing(busy):
            for thread in threads:
                thread.start()
            until = time.monotonic() + LONG
            while len(answers) < 8 and time.monotonic() < until:
                time.sleep(0.01)
            assert [answer.status_code for answer in answers] == [503] * 8
            assert all(answer.headers["retry-after"] == "1" for answer in answers)
            assert "'busy'" in answers[0].json()["message"]
            client.post(f"/studies/{other}/note", json={"text": "x"}).raise_for_status()
            client.get(f"/studies/{busy}/status").raise_for_status()
        for thread in threads:
            thread.join(LONG)
        assert [answer.status_code for answer in answers] == [503] * 8 + [200] * 2


def test_a_client_waits_until_a_study_is_free(tmp_path, monkeypatch):
    """Also with what may not be done twice: the server says that it did nothing."""
    monkeypatch.setattr(pool, "MAX_WRITERS_EACH", 1)
    with in_thread(tmp_path / "lab.db") as url:
        study = fl.connect(url).create("busy", TWO, sigma=1.0)
        pull = study.ask(2)[0]
        worker = threading.Thread(target=study.void, args=(pull.pull_id, "it fell"))
        with APPS[url].state.studies.writing(1):
            worker.start()
            time.sleep(0.3)
        worker.join(LONG)
        assert [e["kind"] for e in study.history()].count("voided") == 1


def test_who_writes_leaves_threads_to_who_looks(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "MAX_WRITERS", 2)
    assert pool.MAX_WRITERS_EACH < THREADS
    with closing(Studies(tmp_path / "lab.db")) as studies:
        numbers = []
        for name in "xyz":
            with Study.create(studies.place, name, TWO, sigma=1.0) as study:
                numbers.append(study._log.row.id)
        with studies.writing(numbers[0]), studies.writing(numbers[1]):
            with pytest.raises(BusyError, match="Nothing was changed"), studies.writing(numbers[2]):
                pass
            with pytest.raises(BusyError), studies.changing():
                pass
            with pytest.raises(BusyError):
                studies.delete(numbers[2])
            with studies.reading(numbers[2]) as study:
                assert study.status(forecast=False).open_pulls == 0
        with studies.writing(numbers[2]) as study:
            study.note("now")


def test_half_of_the_threads_are_enough_for_fifty_workers():
    assert pool.MAX_WRITERS_EACH >= 50
    assert pool.MAX_WRITERS_EACH < pool.MAX_WRITERS <= THREADS - 25
