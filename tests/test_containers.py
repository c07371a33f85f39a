"""finalist where nothing can be written but the study: no home, a read-only installation."""

import random
import re
import signal
import subprocess
import time
import urllib.request

import pytest

from tests.containers import Installed

ARMS = "name,x,y\na,1,0\nb,0,1\nc,1,1\n"
#: The program and its server compile for the gauntlet; to show where it is kept, a strategy whose
#: loop takes a quarter of that will do.
ASK = """
import finalist as fl, os
assert fl.__file__.startswith(os.environ["PYTHONPATH"]), fl.__file__
arms, strategy = fl.Arms.unstructured(["a", "b", "c"]), fl.TrackAndStop()
study = fl.Study.create("lab.db", "seeds", arms, strategy, sigma=1.0, seed=1)
print(len(study.ask(12)))
"""


def made(mounted):
    installed = Installed(mounted)
    (installed.data / "arms.csv").write_text(ARMS)
    yield installed
    installed.remove()


@pytest.fixture(params=["permissions", "mount"])
def either(request):
    yield from made(mounted=request.param == "mount")


@pytest.fixture
def installed():
    yield from made(mounted=False)


def check_line(said, installed):
    """Only one line says where compiled code is, and what to do about it."""
    (line,) = _compiled(said)
    assert str(installed.temporary) in line
    assert "Set NUMBA_CACHE_DIR" in line


def _compiled(said):
    return [line for line in said.splitlines() if "Compiled code" in line]


def test_the_first_ask_works_without_a_home_and_with_a_read_only_installation(either):
    done = either.python("-c", ASK)
    assert (done.returncode, done.stdout) == (0, "12\n"), done.stderr
    assert len(done.stderr.splitlines()) == 1
    check_line(done.stderr, either)
    assert list(either.temporary.iterdir()) == [], "it is removed at the end"
    assert sorted(p.name for p in either.data.iterdir()) == ["arms.csv", "lab.db"]


def test_the_program_works_there(installed):
    for words in (
        ["new", "seeds", "arms.csv", "--sigma", "1", "--db", "lab.db"],
        ["design", "arms.csv", "--chart", "design.png"],
        ["report", "seeds", "--db", "lab.db", "-o", "report.html"],
        ["db", "check", "--db", "lab.db"],
    ):
        done = installed.finalist(*words)
        assert done.returncode == 0, (words, done.stderr)
        assert "Compiled code" not in done.stderr, "nothing is compiled for this"
    asked = installed.finalist("ask", "seeds", "--db", "lab.db", "-o", "batch.csv")
    assert asked.returncode == 0, asked.stderr
    assert len(_compiled(asked.stderr)) <= 1  # a first batch rarely takes compiled code
    how = ["--sigma", "1", "--strategy", "uniform", "--runs", "4", "--jobs", "2"]
    simulated = installed.finalist("simulate", "arms.csv", "--theta", "3,1", *how)
    assert simulated.returncode == 0, simulated.stderr
    check_line(simulated.stderr, installed)
    assert list(installed.temporary.iterdir()) == []
    written = {"arms.csv", "lab.db", "design.png", "report.html", "batch.csv"}
    assert {p.name for p in installed.data.iterdir()} == written


def test_the_server_works_there_and_leaves_nothing(installed):
    installed.finalist("new", "seeds", "arms.csv", "--sigma", "1", "--db", "lab.db")
    server = subprocess.Popen(
        installed.command("-m", "finalist", "serve", "--db", "lab.db", "--no-open", "--port", "0"),
        cwd=installed.data,
        env=installed.environment(PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+:\d+/", server.stdout.readline())
        assert found is not None
        for path in ("", "studies/1", "api/v1/openapi.json"):
            with urllib.request.urlopen(found[0] + path, timeout=60) as answer:
                assert answer.status == 200, path
        asked = urllib.request.Request(
            f"{found[0]}api/v1/studies/1/ask", b'{"size": 12}', {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=120) as answer:
            assert answer.status == 200
    finally:
        server.terminate()
        _, said = server.communicate(timeout=60)
    assert server.returncode == -signal.SIGTERM
    lines = [line for line in said.splitlines() if "have accounts on this machine" not in line]
    assert lines == _compiled(said)
    assert len(lines) <= 1
    assert list(installed.temporary.iterdir()) == []


@pytest.mark.parametrize("place", ["installation", "folder"])
def test_what_was_compiled_before_it_became_read_only_is_used(installed, place):
    installed.writable()
    given = {}
    if place == "folder":
        (installed.package / "cache").mkdir()
        given = {"NUMBA_CACHE_DIR": str(installed.package / "cache")}
    built = subprocess.run(  # as whoever builds the image
        installed.command("-c", ASK)[-3:],
        cwd=installed.temporary,
        env=installed.environment(HOME=str(installed.temporary), **given),
        capture_output=True,
        text=True,
    )
    assert (built.returncode, built.stderr) == (0, "")
    for path in installed.temporary.iterdir():
        path.unlink()
    installed.read_only()
    assert list(installed.package.rglob("*.nbc"))
    done = installed.python("-c", ASK, **given)
    assert (done.returncode, done.stdout, done.stderr) == (0, "12\n", "")
    assert list(installed.temporary.iterdir()) == []


def test_processes_killed_while_they_compile_do_no_harm(installed):
    """Those that follow have the same answers; what they find is whole or not there.

    Without a fault, too, a folder that can be written is used and nothing is said.
    """
    cache = {"NUMBA_CACHE_DIR": str(installed.data / "cache")}
    start = time.monotonic()
    first = installed.python("-c", ASK)
    longest, draw = time.monotonic() - start, random.Random(0)
    for number in range(4):
        process = subprocess.Popen(
            installed.command("-c", ASK.replace("lab.db", f"{number}.db")),
            cwd=installed.data,
            env=installed.environment(**cache),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        time.sleep(longest * draw.uniform(0.6, 1.0))
        process.kill()
        process.communicate()
    for name in ("one", "two"):
        done = installed.python("-c", ASK.replace("lab.db", f"{name}.db"), **cache)
        assert (done.returncode, done.stdout, done.stderr) == (0, first.stdout, ""), done.stderr
    assert list((installed.data / "cache").rglob("*.nbc"))
