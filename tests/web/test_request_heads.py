"""Heads of requests that two programs could read differently; on real sockets."""

import socket
import time

import pytest

from tests.web.servers import HOST, SERVERS, api, in_thread, new_study
from tests.web.test_server import connect, rest_of, status_of

GET = b"GET /api/v1/studies HTTP/1.1\r\nHost: localhost\r\n"
BODY = b'{"text":"x"}'


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with in_thread(tmp_path_factory.mktemp("heads") / "lab.db") as url, api(url) as client:
        new_study(client)
        yield url, client


def note(*headers, body=BODY, line=b"POST /api/v1/studies/1/note HTTP/1.1"):
    """Return a request that writes a note, with further headers."""
    lines = [line, b"Host: localhost", b"Content-Type: application/json", *headers]
    return b"\r\n".join([*lines, b"", body])


def chunked(content, end=b"0\r\n\r\n"):
    return b"%x\r\n%s\r\n" % (len(content), content) + end


LENGTH, PIECES = b"Content-Length: 12", b"Transfer-Encoding: chunked"
REFUSED = {
    "both": note(LENGTH, PIECES, body=chunked(BODY)),
    "both the other way": note(PIECES, LENGTH, body=chunked(BODY)),
    "two lengths": note(LENGTH, b"Content-Length: 13"),
    "the same length twice": note(LENGTH, LENGTH),
    "a list of lengths": note(b"Content-Length: 12, 12"),
    "pieces twice": note(PIECES, PIECES, body=chunked(BODY)),
    "pieces in HTTP/1.0": note(
        PIECES, body=chunked(BODY), line=b"POST /api/v1/studies/1/note HTTP/1.0"
    ),
    "a folded line": note(b"X-Folded: a\r\n b", LENGTH),
    "LF after the first line": GET.replace(b"\r\n", b"\n", 1) + b"\r\n",
    "LF after a header": GET + b"X: y\nZ: z\r\n\r\n",
    "LF at the end": GET + b"\n",
    "LF everywhere": GET.replace(b"\r\n", b"\n") + b"\n",
    "LF after the last header": GET + b"X: y\n\r\n",
    "LF that hides a header": GET + b"X: y\nTransfer-Encoding: chunked\r\n\r\n",
    "LF after the last piece": note(PIECES, body=chunked(BODY, b"0\r\n\n")),
    "LF in a trailer": note(PIECES, body=chunked(BODY, b"0\r\nA: b\nC: d\r\n\r\n")),
}


@pytest.mark.parametrize("pieces", ["whole", "letter by letter"])
@pytest.mark.parametrize("what", REFUSED)
def test_what_could_be_read_in_two_ways_is_refused_and_the_connection_closed(served, what, pieces):
    url, client = served
    before = client.get("/studies/1").json()["last"]
    with connect(url) as near:
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sent = REFUSED[what]
        step = len(sent) if pieces == "whole" else 1
        try:
            for begin in range(0, len(sent), step):
                near.sendall(sent[begin : begin + step])
                if step == 1 and sent[begin] in b"\r\n":
                    time.sleep(0.002)  # a packet of its own
            near.sendall(GET + b"\r\n")  # would be answered if the connection were still good
        except OSError:
            pass
        answer = rest_of(near)
    assert answer.startswith(b"HTTP/1.1 400 "), answer[:200]
    assert b"connection: close" in answer.lower()
    assert answer.count(b"HTTP/1.1") == 1
    assert client.get("/studies/1").json()["last"] == before


def test_line_feeds_in_bodies_are_nobodys_business(served):
    url, client = served
    before = client.get("/studies/1").json()["last"]
    body = b'{\n"text":\n\n"x"}\n\r\n\r\n\n'
    with connect(url) as near:
        near.sendall(note(b"Content-Length: %d" % len(body), body=body))
        assert status_of(near) == 200
        near.sendall(note(PIECES, body=chunked(body)))
        assert status_of(near) == 200
        near.sendall(note(PIECES, body=chunked(body, b"0\r\nX-Trailer: y\r\n\r\n")))
        assert status_of(near) == 200
    assert client.get("/studies/1").json()["last"] == before + 3


def test_requests_one_after_the_other_are_looked_at_one_by_one(served):
    """The first has its answer, the second is refused, the third is not looked at."""
    url, client = served
    before = client.get("/studies/1").json()["last"]
    with connect(url) as near:
        near.sendall(note(LENGTH) + REFUSED["LF after a header"] + note(LENGTH))
        answer = rest_of(near)
    assert [answer.count(b"HTTP/1.1 %d" % status) for status in (200, 400)] == [1, 1]
    assert client.get("/studies/1").json()["last"] == before + 1
    with connect(url) as near:
        near.sendall((GET + b"\r\n") * 2 + GET + b"Connection: close\r\n\r\n")
        assert rest_of(near).count(b"HTTP/1.1 200") == 3
    assert HOST in url
    assert url in SERVERS
