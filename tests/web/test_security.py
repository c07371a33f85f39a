"""Who may ask for what: exposure, hostile requests, requests from other sites; on real servers."""

import hmac
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from finalist.web.headers import CONTENT_POLICY
from finalist.web.security import tokens
from finalist.web.security.guard import MAX_BODY, MAX_BODY_UNKNOWN
from finalist.web.security.tokens import (
    MAX_FAILURES,
    Failures,
    Sessions,
    hash_of,
    store_hash,
    token_file,
)
from tests.web.browsers import browser, go
from tests.web.servers import HOST, Process, api, browser_of, in_thread, new_study

TOKEN = "correct-horse-battery-staple-42"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with in_thread(tmp_path_factory.mktemp("security") / "lab.db") as url:
        yield url


@pytest.fixture
def guarded(tmp_path):
    with in_thread(tmp_path / "lab.db", token_hash=hash_of(TOKEN)) as url:
        yield url


def found(pattern: str, text: str) -> str:
    """Return what a pattern finds in its first group."""
    match = re.search(pattern, text)
    assert match is not None, text
    return match[1]


def raw(url: str, *lines: str, body: bytes = b"") -> tuple[int, bytes]:
    """Send bytes as they are; return the status and everything that came back."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        answer = b""
        while piece := _received(connection):
            answer += piece
    return int(answer.split(b" ", 2)[1]) if answer else 0, answer


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""


# ---- what every answer says ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/api/v1/studies"),
        ("GET", "/api/v1/openapi.json"),
        ("GET", "/api/v1/studies/999"),
        ("GET", "/nothing"),
        ("GET", "/static/nothing"),
        ("GET", "/static/style.css"),
        ("POST", "/api/v1/studies"),
        ("OPTIONS", "/api/v1/studies"),
        ("HEAD", "/api/v1/studies"),
        ("TRACE", "/"),
    ],
)
def test_every_answer_keeps_scripts_out(url, method, path):
    answer = httpx.request(method, url + path, trust_env=False)
    assert answer.status_code < 500
    assert answer.headers["content-security-policy"] == CONTENT_POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] in ("no-store", "no-cache")
    assert "server" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers


def test_the_policy_has_no_way_around_it():
    assert "unsafe" not in CONTENT_POLICY
    assert "*" not in CONTENT_POLICY
    assert CONTENT_POLICY.startswith("default-src 'none'")


def test_an_unexpected_error_says_nothing_about_the_inside(url, monkeypatch):
    def fail(self):
        raise LookupError("a secret")

    monkeypatch.setattr("finalist.web.cache.Snapshots.lines", fail)
    answer = httpx.get(f"{url}/api/v1/studies", trust_env=False)
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.json()["error"] == "unexpected"
    assert answer.headers["content-security-policy"] == CONTENT_POLICY


# ---- the Host header -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil", "0"]
)
@pytest.mark.parametrize("path", ["/", "/api/v1/studies", "/static/style.css"])
def test_a_foreign_host_is_refused(url, host, path):
    status, answer = raw(url, f"GET {path} HTTP/1.1", f"Host: {host}", "Connection: close")
    assert status == 421
    assert b"studies" not in answer.split(b"\r\n\r\n", 1)[1].replace(b"All studies", b"")


@pytest.mark.parametrize("host", ["", "a b", "[::1", "127.0.0.1:x", "user@127.0.0.1", "a/b"])
def test_a_host_that_is_none_is_refused(url, host):
    status, _ = raw(url, "GET / HTTP/1.1", f"Host: {host}", "Connection: close")
    assert status == 400


def test_two_hosts_or_none_are_refused(url):
    two = raw(url, "GET / HTTP/1.1", "Host: 127.0.0.1", "Host: evil", "Connection: close")
    assert two[0] == 400
    assert raw(url, "GET / HTTP/1.0")[0] == 400


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "LOCALHOST", "[::1]:8765"])
def test_names_of_this_machine_are_good(url, host):
    lines = ("GET /api/v1/studies HTTP/1.1", f"Host: {host}", "Connection: close")
    assert raw(url, *lines)[0] == 200


def test_names_that_are_allowed(tmp_path):
    with in_thread(tmp_path / "lab.db", hosts=("Lab-PC", "*.*.*.*")) as url:
        for host, status in (
            ("lab-pc:8765", 200),
            ("192.168.1.20", 200),
            ("[fe80::1]", 200),
            ("evil.example", 421),
            ("1.2.3", 421),
        ):
            lines = ("GET /api/v1/studies HTTP/1.1", f"Host: {host}", "Connection: close")
            assert raw(url, *lines)[0] == status, host


# ---- requests from other sites ---------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "SAME", "Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/studies", "/login"])
def test_another_site_changes_nothing(url, headers, path):
    headers = {name: value.replace("SAME", url) for name, value in headers.items()}
    body = {"name": "crossed", "arms": {"names": ["a", "b"]}, "sigma": 1.0}
    answer = httpx.post(url + path, json=body, headers=headers, trust_env=False)
    assert answer.status_code == 403
    with api(url) as client:
        assert client.get("/studies", params={"name": "crossed"}).json()["studies"] == []


def test_another_site_deletes_nothing(url):
    with api(url) as client:
        number = new_study(client, "to be kept")
        path, where = f"/studies/{number}", {"name": "to be kept"}
        evil = {"Origin": "https://evil.example"}
        assert client.delete(path, params=where, headers=evil).status_code == 403
        assert client.get(path).status_code == 200


@pytest.mark.parametrize("headers", [{}, {"Origin": "SAME", "Sec-Fetch-Site": "same-origin"}])
def test_this_site_and_programs_may(url, headers):
    headers = {name: value.replace("SAME", url) for name, value in headers.items()}
    with api(url, headers=headers) as client:
        new_study(client, f"allowed {len(headers)}")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_that_a_form_could_send_is_no_json(url, kind):
    body = '{"name": "formed", "arms": {"names": ["a", "b"]}, "sigma": 1.0}'
    answer = httpx.post(
        f"{url}/api/v1/studies", content=body, headers={"Content-Type": kind}, trust_env=False
    )
    assert answer.status_code == 415
    assert answer.json()["remedy"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),  # a program, or a very old browser
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),  # another port of this machine
        ({"Origin": "SAME"}, 303),
        ({"Sec-Fetch-Site": "same-origin"}, 303),
    ],
)
def test_a_form_has_to_say_that_it_is_of_this_server(guarded, headers, status):
    headers = {name: value.replace("SAME", guarded) for name, value in headers.items()}
    answer = httpx.post(f"{guarded}/login", data={"token": TOKEN}, headers=headers, trust_env=False)
    assert answer.status_code == status
    assert ("set-cookie" in answer.headers) is (status == 303)


# ---- sizes -----------------------------------------------------------------------------------


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(url):
    lines = ("POST /api/v1/studies HTTP/1.1", "Host: localhost", "Content-Type: application/json")
    status, _ = raw(url, *lines, f"Content-Length: {MAX_BODY + 1}")
    assert status == 413
    status, _ = raw(url, *lines, f"Content-Length: {10**30}")
    assert status in (400, 413)


def test_a_body_in_pieces_is_counted(url):
    sent = 0

    def pieces():
        nonlocal sent
        for _ in range(2 * MAX_BODY // 2**16):
            sent += 2**16
            yield b" " * 2**16

    try:
        answer = httpx.post(
            f"{url}/api/v1/studies", content=pieces(), headers=JSON, timeout=180, trust_env=False
        )
        assert answer.status_code == 413
    except httpx.TransportError:  # the server answers and hangs up while we still send
        assert sent + 2**20 > MAX_BODY
    with api(url) as client:
        assert client.get("/studies").status_code == 200


def test_a_body_just_small_enough_is_read(url):
    answer = httpx.post(
        f"{url}/api/v1/studies",
        content=b" " * MAX_BODY,
        headers=JSON,
        timeout=60,
        trust_env=False,
    )
    assert answer.status_code == 422


def test_who_has_no_token_sends_little(guarded):
    with browser_of(guarded) as browser:
        answer = browser.post("/login", content=b"x" * (MAX_BODY_UNKNOWN + 1))
    assert answer.status_code == 413


def test_headers_without_end_are_refused(url):
    status, _ = raw(url, "GET / HTTP/1.1", "Host: localhost", "X: " + "y" * 200_000)
    assert status in (0, 400, 431)


def test_a_slow_body_is_not_waited_for(url, monkeypatch):
    monkeypatch.setattr("finalist.web.security.guard.BODY_TIME", 0.3)
    lines = ("POST /api/v1/studies HTTP/1.1", "Host: localhost", "Content-Type: application/json")
    begin = time.monotonic()
    assert raw(url, *lines, "Content-Length: 100", body=b"{")[0] == 408
    assert time.monotonic() - begin < 10


# ---- the token -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/api/v1/studies", "/api/v1/openapi.json", "/api/v1/events"])
def test_without_the_token_nothing_is_told(guarded, path):
    answer = httpx.get(guarded + path, trust_env=False)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert set(answer.json()) == {"error", "message", "remedy"}
    good = {"Authorization": f"Bearer {TOKEN}"}
    if path != "/api/v1/events":
        assert httpx.get(guarded + path, headers=good, trust_env=False).status_code == 200
    for bad in (TOKEN[:-1], TOKEN + "x", TOKEN.upper(), hash_of(TOKEN)):
        headers = {"Authorization": f"Bearer {bad}"}
        assert httpx.get(guarded + path, headers=headers, trust_env=False).status_code == 401


def test_a_basic_password_is_no_token(guarded):
    answer = httpx.get(f"{guarded}/api/v1/studies", auth=("x", TOKEN), trust_env=False)
    assert answer.status_code == 401


def sign_in(browser: httpx.Client, token: str, **more: str) -> httpx.Response:
    headers = {"Origin": str(browser.base_url).rstrip("/")}
    return browser.post("/login", data={"token": token, **more}, headers=headers)


def test_signing_in_and_out(guarded):
    with browser_of(guarded) as browser:
        page = browser.get("/studies/1?x=1", headers={"Accept": "text/html"})
        assert page.status_code == 303
        assert page.headers["location"] == "/login?next=%2Fstudies%2F1%3Fx%3D1"
        assert browser.get("/static/style.css").status_code == 200
        wrong = sign_in(browser, "wrong")
        assert wrong.status_code == 401
        assert "not the token" in wrong.text
        right = sign_in(browser, TOKEN, next="/studies/1")
        assert (right.status_code, right.headers["location"]) == (303, "/studies/1")
        cookie = right.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert TOKEN not in right.headers["set-cookie"]
        assert browser.get("/api/v1/studies").status_code == 200
        port = guarded.rsplit(":")[-1]
        copied = browser.cookies[f"finalist_session_{port}"]
        assert browser.post("/logout").headers["location"] == "/login"
        assert browser.get("/api/v1/studies").status_code == 401
    with browser_of(guarded) as thief:  # signed out for everyone
        thief.cookies.set(f"finalist_session_{port}", copied)
        assert thief.get("/api/v1/studies").status_code == 401


def test_news_end_when_a_browser_signs_out(guarded):
    with browser_of(guarded, timeout=20) as browser:
        sign_in(browser, TOKEN)
        with browser.stream("GET", "/api/v1/events") as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("retry")
            browser.post("/logout")
            with api(guarded, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
                new_study(client, "secret")
            assert "".join(lines) == ""  # it ends, and nothing was told


@pytest.mark.parametrize(
    "where", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_signing_in_leads_nowhere_else(guarded, where):
    with browser_of(guarded) as browser:
        assert sign_in(browser, TOKEN, next=where).headers["location"] == "/"


def test_sessions_end_and_cannot_be_made_up(monkeypatch):
    sessions = Sessions()
    session = sessions.begin(now=1000.0)
    assert sessions.is_good(session, now=1001.0)
    assert not sessions.is_good(session, now=1000.0 + tokens.SESSION + 1)
    for forged in (session[:-1], session + "x", hash_of(session), "", ".", "é", "\ud800"):
        assert not sessions.is_good(forged, now=1001.0)
    assert not Sessions().is_good(session, now=1001.0)
    monkeypatch.setattr(tokens, "MAX_SESSIONS", 3)
    later = [sessions.begin(now=1000.0) for _ in range(3)]
    assert [sessions.is_good(s, now=1001.0) for s in (session, *later)] == [False] + 3 * [True]


def test_nothing_on_the_disk_lets_anybody_in(tmp_path):
    """Whoever has a copy of the files has everything but the token, and what was made of it."""
    place, known = tmp_path / "lab.db", hash_of(TOKEN)
    tokens.store_hash(place, known)
    with (
        in_thread(place, token_hash=tokens.stored_hash(place)) as url,
        httpx.Client(base_url=url, trust_env=False) as browser,
    ):
        port = url.rsplit(":")[-1]
        sign_in(browser, TOKEN)
        session = browser.cookies[f"finalist_session_{port}"]
        files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        for secret in (TOKEN, session, hash_of(session)):
            assert secret.encode() not in files
        end = str(int(time.time()) + 3600)
        seal = hmac.new(bytes.fromhex(known), f"session until {end}".encode(), "sha256")
        for forged in (known, f"{end}.{seal.hexdigest()}", TOKEN):
            headers = {"Cookie": f"finalist_session_{port}={forged}; finalist_session={forged}"}
            answer = httpx.get(f"{url}/api/v1/studies", headers=headers, trust_env=False)
            assert answer.status_code == 401


def test_a_form_that_was_open_over_a_restart_is_not_lost(tmp_path):
    place, known = tmp_path / "lab.db", hash_of(TOKEN)
    with httpx.Client(trust_env=False) as browser:
        with in_thread(place, token_hash=known) as url:
            browser.base_url, browser.headers["Origin"] = url, url
            sign_in(browser, TOKEN)
            form = {"pasted": "name,x\na,1\nb,2\n"}
        with in_thread(place, token_hash=known, port=int(url.rsplit(":")[-1])):
            page = browser.post("/new", data=form)
            assert page.status_code == 401
            assert "Sign in again" in page.text
            assert "Nothing was changed" in page.text
            assert 'href="/login" target="_blank"' in page.text
            assert browser.post("/logout").headers["location"] == "/login"
            assert sign_in(browser, TOKEN).status_code == 303
            assert (
                "2 candidates" in browser.post("/new", data=form).text
            )  # as the browser sends it again


def test_a_browser_sends_a_form_again_after_signing_in_again(tmp_path):
    """As the page says: sign in in a new tab, come back, load again."""
    place, known = tmp_path / "lab.db", hash_of(TOKEN)
    with browser() as chromium, ExitStack() as servers:
        context = chromium.new_context()
        page = context.new_page()
        url = servers.enter_context(in_thread(place, token_hash=known))
        page.goto(f"{url}/new")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Sign in").click()
        (tmp_path / "trees.csv").write_text("name,x\noak,1\nash,2\n")
        page.set_input_files("#file", tmp_path / "trees.csv")
        servers.close()
        with in_thread(place, token_hash=known, port=int(url.rsplit(":")[-1])):
            go(page.get_by_role("button", name="Look at the table"))
            assert page.get_by_role("heading", name="Sign in again").is_visible()
            with context.expect_page() as opened:
                page.get_by_role("main").get_by_role("link", name="Sign in").click()
            opened.value.get_by_label("Token").fill(TOKEN)
            opened.value.get_by_role("button", name="Sign in").click()
            opened.value.get_by_role("heading", name="Find the best of several").wait_for()
            page.reload()
            assert page.get_by_text("2 candidates").is_visible()
        context.close()


def test_a_page_in_a_browser_follows_again_after_signing_in_again(tmp_path):
    """A browser gives up a stream that was refused; the page does not."""
    place, known = tmp_path / "lab.db", hash_of(TOKEN)
    with browser() as chromium, ExitStack() as servers:
        context = chromium.new_context()
        page, other = context.new_page(), context.new_page()
        url = servers.enter_context(in_thread(place, token_hash=known))
        with api(url, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
            new_study(client, "watched")
        for tab in (page, other):
            tab.goto(f"{url}/login?next=/studies/1")
            tab.get_by_label("Token").fill(TOKEN)
            tab.get_by_role("button", name="Sign in").click()
            tab.get_by_role("heading", name="watched").wait_for()
        servers.close()
        with in_thread(place, token_hash=known, port=int(url.rsplit(":")[-1])):
            with page.expect_response(lambda answer: answer.status == 401, timeout=20_000):
                pass
            other.goto(f"{url}/login")
            other.get_by_label("Token").fill(TOKEN)
            other.get_by_role("button", name="Sign in").click()
            other.get_by_role("link", name="watched").wait_for()
            with api(url, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
                client.post("/studies/1/ask", json={"size": 3}).raise_for_status()
            page.locator("table.batch").wait_for(timeout=30_000)
        context.close()


def test_without_a_token_forms_outlive_a_restart(tmp_path):
    with httpx.Client(trust_env=False) as browser:
        with in_thread(tmp_path / "lab.db") as url:
            browser.base_url, browser.headers["Origin"] = url, url
            form = {"pasted": "name,x\na,1\nb,2\n"}
        with in_thread(tmp_path / "lab.db", port=int(url.rsplit(":")[-1])):
            assert "2 candidates" in browser.post("/new", data=form).text


def test_two_servers_on_one_machine_do_not_sign_each_other_out(tmp_path):
    known = hash_of(TOKEN)
    with (
        in_thread(tmp_path / "a.db", token_hash=known) as one,
        in_thread(tmp_path / "b.db", token_hash=known) as two,
        httpx.Client(trust_env=False) as browser,  # which knows hosts apart, but not ports
    ):
        for url in (one, two):
            browser.base_url, browser.headers["Origin"] = url, url
            sign_in(browser, TOKEN)
        for url in (one, two):
            assert browser.get(f"{url}/api/v1/studies").status_code == 200
        names = {cookie.name for cookie in browser.cookies.jar}
        ports = [url.rsplit(":")[-1] for url in (one, two)]
        assert names == {f"finalist_session_{port}" for port in ports}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_too_many_wrong_tokens_lock_nobody_out_who_has_the_right_one(guarded):
    """Behind a proxy all clients have one address; guessing 256 bits is hopeless anyway."""
    with browser_of(guarded) as client:
        for status in [401] * MAX_FAILURES + [429] * 3:
            answer = client.get("/api/v1/studies", headers=bearer("wrong"))
            assert answer.status_code == status
        assert 0 < int(answer.headers["retry-after"]) <= 61
        assert sign_in(client, "wrong").status_code == 429
        for _ in range(3):
            assert client.get("/api/v1/studies", headers=bearer(TOKEN)).status_code == 200
        assert sign_in(client, TOKEN).status_code == 303
        assert client.get("/api/v1/studies").status_code == 200
        assert client.get("/api/v1/studies", headers=bearer("wrong")).status_code == 429


# ---- a new token while a server runs ---------------------------------------------------------


@pytest.fixture
def followed(tmp_path):
    place = tmp_path / "lab.db"
    store_hash(place, hash_of(TOKEN))
    with in_thread(place, token_file=token_file(place)) as url:
        yield place, url


def test_a_new_token_takes_the_place_of_the_old_one_at_once(followed):
    place, url = followed
    with (
        httpx.Client(base_url=url, trust_env=False, timeout=20) as browser,
        httpx.Client(base_url=url, trust_env=False, timeout=20) as program,
    ):
        sign_in(browser, TOKEN)
        assert browser.get("/api/v1/studies").status_code == 200
        with (
            browser.stream("GET", "/api/v1/events") as one,
            program.stream("GET", "/api/v1/events", headers=bearer(TOKEN)) as two,
        ):
            streams = [one.iter_lines(), two.iter_lines()]
            assert all(next(lines).startswith("retry") for lines in streams)
            store_hash(place, hash_of("n" * 30))
            begin = time.monotonic()
            assert ["".join(lines) for lines in streams] == ["", ""]
            assert time.monotonic() - begin < 5  # not only at the next sign of life
        assert browser.get("/api/v1/studies").status_code == 401
        assert program.get("/api/v1/studies", headers=bearer(TOKEN)).status_code == 401
        assert program.get("/api/v1/studies", headers=bearer("n" * 30)).status_code == 200
        assert sign_in(browser, TOKEN).status_code == 401
        assert sign_in(browser, "n" * 30).status_code == 303
        assert browser.get("/api/v1/studies").status_code == 200


def test_a_token_that_is_made_while_a_server_runs_is_asked_for(tmp_path):
    place = tmp_path / "lab.db"
    with in_thread(place, token_file=token_file(place)) as url:
        assert httpx.get(f"{url}/api/v1/studies", trust_env=False).status_code == 200
        store_hash(place, hash_of(TOKEN))
        assert httpx.get(f"{url}/api/v1/studies", trust_env=False).status_code == 401
        good = httpx.get(f"{url}/api/v1/studies", headers=bearer(TOKEN), trust_env=False)
        assert good.status_code == 200


def test_a_hash_that_goes_away_or_is_broken_opens_no_door(followed):
    place, url = followed
    kept = place.with_name(place.name + ".token")
    kept.unlink()
    for token, status in ((TOKEN, 200), ("wrong", 401)):
        answer = httpx.get(f"{url}/api/v1/studies", headers=bearer(token), trust_env=False)
        assert answer.status_code == status
    assert httpx.get(f"{url}/api/v1/studies", trust_env=False).status_code == 401
    kept.write_text("broken")
    for token in (TOKEN, "broken", "-"):
        answer = httpx.get(f"{url}/api/v1/studies", headers=bearer(token), trust_env=False)
        assert answer.status_code == 401
    store_hash(place, hash_of(TOKEN))
    answer = httpx.get(f"{url}/api/v1/studies", headers=bearer(TOKEN), trust_env=False)
    assert answer.status_code == 200


def test_a_new_token_is_made_also_if_a_server_has_the_port(tmp_path):
    """As it has when it is the server whose token is to change."""
    place = tmp_path / "lab.db"
    with Process(place, "--new-token") as server:
        old = found(r"Token \(shown only now\): (\S+)", "".join(server.said))
        again = serve(place, "--new-token", "--port", str(server.port))
        new = found(r"Token \(shown only now\): (\S+)", again.stdout)
        assert again.returncode == 2
        assert "from now on" in again.stderr
        for token, status in ((old, 401), (new, 200)):
            answer = httpx.get(
                f"{server.url}/api/v1/studies", headers=bearer(token), trust_env=False
            )
            assert answer.status_code == status


def test_who_shares_a_machine_is_told_to_make_a_token(monkeypatch):
    """There is no token on loopback unless somebody makes one; docs/server.md says why."""
    from finalist.cli.serve import other_people

    pwd = pytest.importorskip("pwd")
    entry = pwd.getpwuid(os.getuid())
    me, shell = os.getuid(), "/bin/sh"

    def of(uid: int, shell: str) -> Any:
        return pwd.struct_passwd((entry[0], "x", uid, uid, "", "/", shell))

    for found_, expected in (
        ([of(0, shell), of(me, shell), of(33, shell), of(65534, shell)], 0),
        ([of(1001, "/usr/sbin/nologin"), of(1002, "/bin/false"), of(1003, "")], 0),
        ([of(2001, shell), of(2002, shell), of(2002, shell)], 2),
    ):
        monkeypatch.setattr(pwd, "getpwall", lambda found_=found_: found_)
        assert other_people() == expected


# ---- behind TLS ------------------------------------------------------------------------------


def test_cookies_are_secure_behind_tls(tmp_path):
    settings: dict[str, Any] = {"token_hash": hash_of(TOKEN), "hosts": ("lab.example.org",)}
    for behind in (False, True):
        with in_thread(tmp_path / f"{behind}.db", behind_tls=behind, **settings) as url:
            headers = {"Host": "lab.example.org", "X-Forwarded-Proto": "https"}
            with httpx.Client(base_url=url, trust_env=False, headers=headers) as browser:
                # a browser talks to the proxy, which is the one to speak TLS
                sent = {"Origin": "https://lab.example.org"}
                answer = browser.post("/login", data={"token": TOKEN}, headers=sent)
                assert answer.status_code == 303
                assert ("Secure" in answer.headers["set-cookie"]) is behind
                sent["Cookie"] = answer.headers["set-cookie"].partition(";")[0]
                assert browser.get("/api/v1/studies", headers=sent).status_code == 200
                gone = browser.post("/logout", headers=sent).headers["set-cookie"]
                assert ("Secure" in gone) is behind


def test_failures_are_forgotten_in_time_and_counted_by_network(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("finalist.web.security.tokens.time.monotonic", lambda: now[0])
    failures = Failures()
    for _ in range(MAX_FAILURES):
        assert failures.wait("2001:db8::1") == 0
        failures.count("2001:db8::1")
    assert failures.wait("2001:db8::2") == 61
    assert failures.wait("2001:db8:0:1::2") == 0
    assert failures.wait("10.0.0.1") == 0
    failures.count("::ffff:10.0.0.1")
    assert {"10.0.0.1", "2001:db8::/64"} == set(failures._times)
    now[0] += 61
    assert failures.wait("2001:db8::1") == 0
    for number in range(11_000):
        failures.count(str(number))
    assert len(failures._times) <= 10_000


# ---- exposure --------------------------------------------------------------------------------


def serve(place: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a server that is expected to refuse."""
    return subprocess.run(
        [sys.executable, "-m", "finalist", "serve", "--db", str(place), "--port", "0", *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


def listening(pid: int) -> set[str]:
    """Return the addresses on which a process listens."""
    import psutil  # type: ignore[import-untyped]

    connections = psutil.Process(pid).net_connections(kind="tcp")
    return {c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN}


def test_it_is_for_this_machine_unless_there_is_a_token(tmp_path):
    place = tmp_path / "lab.db"
    for host in ("0.0.0.0", "::"):
        refused = serve(place, "--host", host)
        assert refused.returncode == 2
        assert "--new-token" in refused.stderr
        assert not place.exists()
    short = serve(place, "--host", "0.0.0.0", FINALIST_TOKEN="short")
    assert (short.returncode, "at least 24" in short.stderr) == (2, True)


def test_a_new_token_is_printed_once_and_kept_as_a_hash(tmp_path):
    place = tmp_path / "lab.db"
    with Process(place, "--new-token", "--host", "0.0.0.0") as server:
        token = found(r"Token \(shown only now\): (\S+)", "".join(server.said))
        assert len(token) >= 43
        assert listening(server.process.pid) == {"0.0.0.0"}
        answer = httpx.get(f"{server.url}/api/v1/studies", trust_env=False)
        assert answer.status_code == 401
        good = {"Authorization": f"Bearer {token}"}
        answer = httpx.get(f"{server.url}/api/v1/studies", headers=good, trust_env=False)
        assert answer.status_code == 200
        code, errors = server.end()
        assert code == -signal.SIGTERM
        assert "not encrypted" in errors
        assert "Traceback" not in errors
    kept = tmp_path / "lab.db.token"
    assert kept.read_text().strip() == hash_of(token)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    for path in tmp_path.iterdir():
        assert token.encode() not in path.read_bytes()
    with Process(place) as server:  # from now on it is always asked for
        assert token not in "".join(server.said)
        assert listening(server.process.pid) == {HOST}
        answer = httpx.get(f"{server.url}/api/v1/studies", headers=good, trust_env=False)
        assert answer.status_code == 200
        assert httpx.get(f"{server.url}/api/v1/studies", trust_env=False).status_code == 401
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(30) == 0


def test_a_broken_hash_lets_nobody_in(tmp_path):
    (tmp_path / "lab.db.token").write_text("")
    refused = serve(tmp_path / "lab.db")
    assert refused.returncode == 2
    assert "does not hold the hash of a token" in refused.stderr


def test_a_port_that_is_taken(tmp_path):
    with socket.create_server((HOST, 0)) as taken:
        refused = serve(tmp_path / "lab.db", "--port", str(taken.getsockname()[1]))
    assert refused.returncode == 2
    assert "Choose another --port" in refused.stderr


# ---- hostile input ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/studies/..%2f..%2fetc%2fpasswd",
        "/api/v1/studies/%00",
        "/api/v1/studies/1%00",
        "/api/v1/studies/-1",
        "/api/v1/studies/0",
        "/api/v1/studies/99999999999999999999999",
        "/api/v1/studies/1e5",
        "/api/v1/studies/%F0%9F%90%89",
        "/api/v1/studies/%ff%fe",
        "/api/v1/studies/" + "9" * 5000,
        "/api/v1/studies/" + "x" * 5000,
        "/api/v1/studies/1/pulls/-1",
        "/api/v1/studies/' OR 1=1 --",
        "/api/v1//studies",
        "/api/v1/studies/",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static/....//app.py",
        "/static//etc/passwd",
        "/static/%00",
        "/static/" + "x" * 5000,
        "/studies/../../etc/passwd",
        "/login?next=" + "x" * 5000,
        "/api/v1/studies?name=%00",
        "/api/v1/studies?name=%ff",
        "/api/v1/studies?name=" + "x" * 5000,
        "/api/v1/studies?name=<script>alert(1)</script>",
    ],
)
def test_hostile_paths(url, path):
    status, answer = raw(
        url, f"GET {path.replace(' ', '%20')} HTTP/1.1", "Host: localhost", "Connection: close"
    )
    assert status in (200, 303, 400, 404, 405, 422), answer[:300]
    assert b"root:" not in answer
    assert b"create_app" not in answer
    if status == 200:
        assert answer.endswith(b'{"studies":[]}') or "/login" in path


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'"x"',
        b"1e400",
        b'{"results": [{"pull_id": 1, "reward": NaN}]}',
        b'{"results": [{"pull_id": 1, "reward": Infinity}]}',
        b'{"results": [{"pull_id": 1, "reward": 1e400}]}',
        b'{"results": [{"pull_id": 1, "reward": 1e200}]}',
        b'{"results": [{"pull_id": 1, "reward": "1"}]}',
        b'{"results": [{"pull_id": 1, "reward": true}]}',
        b'{"results": [{"pull_id": 1, "reward": null}]}',
        b'{"results": [{"pull_id": 1.5, "reward": 1}]}',
        b'{"results": [{"pull_id": true, "reward": 1}]}',
        b'{"results": [{"pull_id": 1e400, "reward": 1}]}',
        b'{"results": [{"pull_id": ' + b"9" * 5000 + b', "reward": 1}]}',
        b'{"results": [{"pull_id": 1, "pull_id": 2, "reward": 1}]}',
        b'{"results": [{"pull_id": 1, "reward": 1, "arm": "\\ud800"}]}',
        b'{"results": [{"pull_id": 1, "reward": 1, "notes": {"reward": "2"}}]}',
        b'{"results": [{"pull_id": 1, "reward": 1}, {"pull_id": 1, "reward": 2}]}',
        b'{"results": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b'{"results": "results.csv"}',
        b'{"results": "/etc/passwd"}',
    ],
)
def test_hostile_bodies_change_nothing(url, body):
    with api(url) as client:
        known = client.get("/studies", params={"name": "hostile"}).json()["studies"]
        number = known[0]["number"] if known else new_study(client, "hostile")
        client.post(f"/studies/{number}/ask", json={"size": 6}).raise_for_status()
        before = client.get(f"/studies/{number}").json()["last"]
        answer = client.post(f"/studies/{number}/tell", content=body, headers=JSON)
        assert answer.status_code == 422, answer.text
        assert answer.json()["message"]
        assert len(answer.content) < 3000
        assert client.get(f"/studies/{number}").json()["last"] == before


def test_numbers_that_are_too_large_for_the_mathematics(url):
    with api(url) as client:
        for value in (1e308, 1e200, 1e160, 5e-324, 1e-300):
            arms = {"features": [[value, 0.0], [0.0, value], [value, value]]}
            body = {"name": f"huge {value}", "arms": arms, "sigma": 1.0}
            answer = client.post("/studies", json=body)
            assert answer.status_code in (201, 422), answer.text
            if answer.status_code == 201:
                path = f"/studies/{answer.json()['number']}"
                assert client.post(f"{path}/ask", json={"size": 5}).status_code in (200, 422)
                assert client.get(f"{path}/status").status_code in (200, 422)


def test_keys_that_are_none(url):
    with api(url) as client:
        number = new_study(client, "keys")
        client.post(f"/studies/{number}/ask", json={"size": 6}).raise_for_status()
        body = {"results": [{"pull_id": 1, "reward": 1.0}]}
        for key in ("", "x" * 256, "\xe9", "a\tb"):
            headers = {b"Idempotency-Key": key.encode("latin-1")}
            answer = client.post(f"/studies/{number}/tell", json=body, headers=headers)
            assert answer.status_code == 422, key
        assert client.get(f"/studies/{number}").json()["last"] == 2


def test_requests_that_are_none(url):
    for text in (
        b"\x16\x03\x01\x02\x00",
        b"GET\r\n\r\n",
        b"\r\n\r\n" * 10,
        b"GET / HTTP/9\r\n\r\n",
    ):
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(text)
            connection.shutdown(socket.SHUT_WR)
            assert b" 500 " not in (_received(connection) or b"")
    assert httpx.get(f"{url}/api/v1/studies", trust_env=False).status_code == 200
