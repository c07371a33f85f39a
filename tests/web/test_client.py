"""fl.connect: the same as Study, also when answers are lost and the server is killed."""

import inspect
import socket
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import finalist as fl
from finalist.client import RemoteStudy, Server
from finalist.errors import (
    ArmsError,
    ConflictError,
    FileFormatError,
    FinalistError,
    NameTakenError,
    ProblemError,
    RemoteError,
    RewardError,
    StudyError,
    UnknownArmError,
    UnknownPullError,
    UnknownStudyError,
)
from finalist.web.security.tokens import hash_of
from tests.study.lab import ARMS, Lab, finish
from tests.web.servers import Process, in_thread


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with in_thread(tmp_path_factory.mktemp("client") / "lab.db") as url:
        yield url


def public(cls):
    return {
        name: value
        for name, value in vars(cls).items()
        if not name.startswith("_") and not isinstance(value, classmethod)
    }


def test_it_has_the_methods_of_a_study():
    mine, theirs = public(fl.Study), public(RemoteStudy)
    here = {"snapshot", "events"}  # what pages are made from, beside the database
    assert mine.keys() - here == theirs.keys()
    for name, method in mine.items():
        if name not in here and inspect.isfunction(method):
            words = list(inspect.signature(method).parameters.items())
            assert [(n, p.default, p.kind) for n, p in words] == [
                (n, p.default, p.kind)
                for n, p in inspect.signature(theirs[name]).parameters.items()
            ], name
    create = list(inspect.signature(fl.Study.create).parameters)
    assert list(inspect.signature(Server.create).parameters) == ["self", *create[1:]]


def same(one, other):
    """Compare statuses: everything but the draws of the forecast, which are arrays."""
    assert one.to_dict() == other.to_dict()


def test_a_whole_life_is_the_same_as_without_a_server(url, tmp_path):
    words: dict[str, Any] = {"sigma": 0.6, "seed": 7, "delta": 0.1, "metadata": {"who": "me"}}
    far = fl.connect(url).create("twin", ARMS, **words)
    near = fl.Study.create(tmp_path / "near.db", "twin", ARMS, **words)
    assert far.settings == near.settings
    assert far.metadata == near.metadata == {"who": "me"}
    assert far.arms == near.arms
    lab = Lab()
    for study in (far, near):
        batch = study.ask(12)
        study.void(batch[0].pull_id, "it fell")
        study.missing(batch[1].pull_id, "no seed")
        study.tell({batch[2].pull_id: 9.0})
        study.amend(batch[2].pull_id, lab.measure(batch[2]), "misread")
        study.note("a lamp")
        study.tell(lab.rewards(study.ask()))
    same(far.status(), near.status())
    assert far.ask(5) == near.ask(5)
    assert far.ask(worker="me") == near.ask(worker="me")
    assert finish(far, lab, 20) == finish(near, lab, 20)
    same(far.status(), near.status())
    assert far.status().verdict == "winner"
    for mine, theirs in zip(far.evidence(), near.evidence(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    no_times = [{k: v for k, v in e.items() if k != "at"} for e in far.history()]
    assert no_times == [{k: v for k, v in e.items() if k != "at"} for e in near.history()]
    columns = ["pull_id", "batch", "arm", "state", "reward", "worker", "note"]
    pd.testing.assert_frame_equal(far.to_frame()[columns], near.to_frame()[columns])
    again = far.fork("twin 2", 2)
    assert again.status(forecast=False).batches == 1
    apart = far.fork("twin 3", model="separate")
    assert apart.status(forecast=False).assumptions[-1].endswith("in all")
    enough = far.fork("twin 4", epsilon=0.5)
    assert enough.settings["epsilon"] == 0.5
    assert enough.status(forecast=False).epsilon == 0.5
    assert fl.connect(url).open("twin").created == far.created
    near.close()


def test_other_words_of_a_life(url):
    lab = fl.connect(url + "/")
    arms = fl.Arms.unstructured(["a", "b", "c"])
    study = lab.create("words", arms, fl.Gauntlet(growth=0.2), noise="sub-gaussian", sigma=0.5)
    assert study.settings["strategy"]["settings"] == {"growth": 0.2}
    assert study.settings["noise"] == {"model": "sub-gaussian", "sigma": 0.5}
    assert study.arms == arms
    assert study.import_history([("a", 1.0), ("b", 0.5)]) == 2
    assert "0.025" in study.withdraw("c")
    assert study.stop("tea").verdict == "undecided"
    study.resume()
    assert "words" in lab.studies()
    with study:
        study.delete()
    assert "words" not in lab.studies()
    coins = lab.create("coins", arms, noise="bernoulli")
    assert coins.settings["noise"]["model"] == "bernoulli"
    assert lab.create("one", arms, sigma=1).settings["noise"] == {"model": "gaussian", "sigma": 1.0}
    assert lab.create("unknown", arms, sigma=None).settings["noise"]["sigma"] is None


def test_results_in_every_form(url, tmp_path):
    study = fl.connect(url).create("forms", fl.Arms.unstructured(["a", "b"]), sigma=1.0)
    batch = study.ask(8)
    batch.to_csv(tmp_path / "batch.csv")
    text = (tmp_path / "batch.csv").read_text().splitlines()
    filled = [text[0], *(line[:-1] + "0.5," for line in text[1:4])]
    (tmp_path / "batch.csv").write_text("\n".join(filled))
    assert study.tell(tmp_path / "batch.csv") == 3
    assert study.tell(str(tmp_path / "batch.csv")) == 0
    table = pd.DataFrame({"pull_id": [4], "arm": [batch[3].arm], "reward": [0.5], "lamp": ["2"]})
    assert study.tell(table) == 1
    assert '"lamp"' in study.to_frame()["note"][3]
    assert study.tell([(np.int64(5), np.float64(0.25))]) == 1
    assert study.tell({6: 1}, client_id="mine") == 1
    assert study.tell({6: 1}, client_id="mine") == 1  # the answer of the first call
    assert study.tell({}) == 0


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: x.lab.open("nobody"), UnknownStudyError),
        (lambda x: x.lab.create("errors", ARMS, sigma=1.0), NameTakenError),
        (lambda x: x.lab.create("x", ARMS, sigma=-1.0), FinalistError),
        (lambda x: x.lab.create("x", "arms"), ProblemError),
        (lambda x: x.study.tell({99: 1.0}), UnknownPullError),
        (lambda x: x.study.tell({1: float("nan")}), RewardError),
        (lambda x: x.study.tell({1: 2.0}), ConflictError),
        (lambda x: x.study.tell("nothing.csv"), FileFormatError),
        (lambda x: x.study.ask(0), StudyError),
        (lambda x: x.study.void(1, "seen"), ConflictError),
        (lambda x: x.study.note(""), StudyError),
        (lambda x: x.study.withdraw("nobody"), FinalistError),
        (lambda x: x.study.import_history([("nobody", 1.0)]), FinalistError),
    ],
)
def test_errors_are_those_of_the_library(url, call, error):
    lab = fl.connect(url)
    study = (
        lab.open("errors") if "errors" in lab.studies() else lab.create("errors", ARMS, sigma=1.0)
    )
    if not study.history()[1:]:
        study.ask(12)
        study.tell({1: 1.0})
    with pytest.raises(error) as found:
        call(SimpleNamespace(lab=lab, study=study))
    assert str(found.value)


def test_unknown_arms(url):
    study = fl.connect(url).create("unknown arms", ARMS, sigma=1.0)
    with pytest.raises(UnknownArmError):
        study.withdraw("nobody")
    with pytest.raises(UnknownArmError):
        study.import_history([("nobody", 1.0)])
    with pytest.raises(ArmsError):
        study.add(fl.Arms([[np.nan]]))


@pytest.mark.parametrize(
    "address", ["lab-pc", "ftp://x", "http://", "http://x:99999", "http://a?b"]
)
def test_addresses_that_are_none(address):
    with pytest.raises(RemoteError, match="must look like"):
        fl.connect(address)


def test_a_token(tmp_path):
    token = "a" * 32
    with in_thread(tmp_path / "lab.db", token_hash=hash_of(token)) as url:
        assert fl.connect(url, token).studies() == []
        with pytest.raises(RemoteError, match="not the token"):
            fl.connect(url, "b" * 32).studies()
        with pytest.raises(RemoteError, match="requires a token"):
            fl.connect(url).studies()


# ---- answers that are lost ---------------------------------------------------------------


class Faulty:
    """A proxy that loses answers: the server has done what it was asked, and nobody hears it."""

    def __init__(self, port, lose):
        self.port, self.lose, self.count = port, lose, 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                near, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(near,), daemon=True).start()

    def _pass_on(self, near):
        with near, socket.create_connection(("127.0.0.1", self.port)) as far:
            request = self._whole(near)
            far.sendall(request)
            answer = b""
            while piece := far.recv(65536):
                answer += piece
            self.count += 1
            lost = self.lose(self.count, request)
            if isinstance(lost, bytes):  # which comes instead
                near.sendall(lost)
            elif not lost:
                near.sendall(answer)

    @staticmethod
    def _whole(near):
        text = b""
        while b"\r\n\r\n" not in text:
            text += near.recv(65536)
        head, _, body = text.partition(b"\r\n\r\n")
        lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-len")]
        size = int(lengths[0].split(b":")[1]) if lengths else 0
        while len(body) < size:
            piece = near.recv(65536)
            text, body = text + piece, body + piece
        return text

    def close(self):
        self.socket.close()


def test_a_lost_answer_to_tell_is_asked_for_again_and_nothing_is_doubled(url):
    study = fl.connect(url).create("lost", fl.Arms.unstructured(["a", "b"]), sigma=1.0)
    batch = study.ask(6)
    proxy = Faulty(int(url.rsplit(":")[-1]), lambda n, request: b"/tell" in request and n % 3)
    try:
        remote = fl.connect(proxy.url).open("lost")
        for pull in batch:
            assert remote.tell({pull.pull_id: 0.5}) == 1
    finally:
        proxy.close()
    told = [event for event in study.history() if event["kind"] == "told"]
    assert len(told) == len(batch)
    assert proxy.count > 2 + len(batch)


def test_what_cannot_be_repeated_is_not(url):
    study = fl.connect(url).create("once", fl.Arms.unstructured(["a", "b"]), sigma=1.0)
    batch = study.ask(6)
    proxy = Faulty(int(url.rsplit(":")[-1]), lambda _, request: b"/void" in request)
    try:
        remote = fl.connect(proxy.url).open("once")
        with pytest.raises(RemoteError, match="may or may not have been done"):
            remote.void(batch[0].pull_id, "it fell")
    finally:
        proxy.close()
    assert [e["kind"] for e in study.history()].count("voided") == 1
    assert proxy.count == 3  # two to open it, and one


def bare(status):
    """Return what says neither when to come back nor whether anything was done."""
    return b"HTTP/1.1 %d Sorry\r\nConnection: close\r\n\r\nSorry" % status


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_server_that_is_full_or_away_behind_a_proxy_is_asked_again(url, status):
    study = fl.connect(url).create(f"full {status}", fl.Arms.unstructured(["a", "b"]), sigma=1.0)
    batch = study.ask(4)
    proxy = Faulty(int(url.rsplit(":")[-1]), lambda n, _: n % 2 and bare(status))
    try:
        remote = fl.connect(proxy.url).open(f"full {status}")
        for pull in batch:
            assert remote.tell({pull.pull_id: 0.5}) == 1
        seen = proxy.count
        with pytest.raises(RemoteError, match="Sorry"):
            remote.note("once")
        assert proxy.count == seen + 1
    finally:
        proxy.close()
    kinds = [event["kind"] for event in study.history()]
    assert kinds.count("told") == len(batch)
    assert seen == 2 * (2 + len(batch))


def test_a_server_that_stays_full_is_given_up(url):
    proxy = Faulty(int(url.rsplit(":")[-1]), lambda *_: bare(503))
    begin = time.monotonic()
    try:
        with pytest.raises(RemoteError, match="Sorry"):
            fl.connect(proxy.url, patience=1.0).studies()
    finally:
        proxy.close()
    assert 1.0 <= time.monotonic() - begin < 20
    assert 3 <= proxy.count < 20


def test_a_server_that_is_not_there():
    with pytest.raises(RemoteError, match="no response from http://127"):
        fl.connect("http://127.0.0.1:9", patience=0.2).studies()


def test_a_name_that_nobody_has_is_said_at_once():
    begin = time.monotonic()
    with pytest.raises(RemoteError, match="Check the address"):
        fl.connect("http://nobody.invalid").studies()
    assert time.monotonic() - begin < 30


def test_kill_9_of_the_server_in_the_middle_loses_and_doubles_nothing(tmp_path):
    """Tell on and on while the server is killed and started again under the same address."""
    place, lab = tmp_path / "lab.db", Lab(sigma=2.0)
    fl.Study.create(place, "killed", ARMS, sigma=2.0, seed=3).close()
    told, failures, done = {}, [], threading.Event()

    def work(url):
        try:
            study = fl.connect(url).open("killed")
            while not done.is_set():
                for pull in study.ask(6):
                    reward = lab.measure(pull)
                    assert study.tell({pull.pull_id: reward}) == 1
                    told[pull.pull_id] = reward
        except Exception as error:
            failures.append(error)

    server = Process(place)
    try:
        worker = threading.Thread(target=work, args=(server.url,))
        worker.start()
        for _ in range(3):
            before = len(told)
            until = time.monotonic() + 60
            while len(told) < before + 3 and time.monotonic() < until and not failures:
                time.sleep(0.01)
            server.kill()
            server = Process(place, port=server.port)
        done.set()
        worker.join(60)
        assert not worker.is_alive()
    finally:
        server.kill()
    assert not failures
    assert len(told) > 9
    with fl.Study.open(place, "killed") as study:
        frame = study.to_frame()
        on_record = frame[frame["state"] == "told"].set_index("pull_id")["reward"].to_dict()
        assert on_record == told
        assert sum(e["count"] for e in study.history() if e["kind"] == "told") == len(told)
