"""Compiled code on disk: shared where it can be, never in the way, never from strangers."""

import errno
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from finalist.compiled import cache as compiled
from finalist.compiled import folders as compiled_folders
from finalist.compiled.alone import alone
from tests.unit.forked import Forks

SRC = Path(__file__).parents[2] / "src"
TOY = """
from finalist.compiled.cache import kept

@kept(error_model="numpy")
def answer(x):
    return x + {number}
"""
ASK = "import toy, json; print(json.dumps([toy.answer(0.0), {hits}]))"
HITS = "sum(toy.answer.stats.cache_hits.values())"


class Toy:
    """A module with one compiled function, and processes that call it."""

    def __init__(self, place: Path, forks: Forks) -> None:
        self.place, self.cache, self.forks = place, place / "cache", forks
        self.write(1)

    def write(self, number: int) -> None:
        (self.place / "toy.py").write_text(TOY.format(number=number))

    def run(self, before: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        given = {"NUMBA_CACHE_DIR": str(self.cache), **environment}
        return self.forks.run(f"{before}\n{ASK.format(hits=HITS)}", self.place, **given)

    def says(self, before: str = "", **environment: str) -> tuple[float, int, str]:
        done = self.run(before, **environment)
        assert done.returncode == 0, done.stderr
        value, hits = json.loads(done.stdout)
        return value, hits, done.stderr

    def files(self) -> list[Path]:
        return sorted((self.cache / "finalist").glob("*"))


#: One function made twice, from pieces of the same type.
MADE = """
from numba import njit
from finalist.compiled.cache import kept

def made(piece, more):
    @kept(error_model="numpy")
    def answer(x):
        return piece(x) + more
    return answer

@njit
def twice(x):
    return 2.0 * x

@njit
def thrice(x):
    return 3.0 * x

first, second, third = made(twice, 1.0), made(thrice, 1.0), made(thrice, 5.0)

class answer:
    stats = first.stats
    def __new__(cls, x):
        return [first(1.0), second(1.0), third(1.0)]
"""


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    found = Forks(tmp_path_factory.mktemp("forks"))
    yield found
    found.close()


@pytest.fixture
def toy(tmp_path, forks):
    return Toy(tmp_path, forks)


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """Nothing but temporary files can be written; forget what was chosen before and after."""
    (tmp_path / "occupied").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "occupied"))
    monkeypatch.delenv(compiled_folders.VARIABLE, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(compiled_folders, "_removal", None)
    cached = (compiled_folders._writable, compiled_folders._make_temporary)
    for function in cached:
        function.cache_clear()
    yield tmp_path
    compiled_folders.remove()
    for function in cached:
        function.cache_clear()


def test_only_one_module_decides_about_the_cache():
    for path in sorted(SRC.rglob("*.py")):
        if path.parent.name != "compiled":
            assert not re.search(r"cache=True|enable_caching|NUMBA_CACHE_DIR", path.read_text()), (
                path
            )


def test_a_later_process_loads_what_an_earlier_one_compiled(toy):
    assert toy.says() == (1.0, 0, "")
    assert toy.says() == (1.0, 1, "")
    (file,) = toy.files()
    assert file.name.startswith("toy.answer.")


def test_the_search_for_garbage_pauses_while_something_is_compiled(toy):
    (toy.place / "seen.py").write_text(
        "import gc, sys\n"
        "from numba.core import event\n"
        "class Seen(event.Listener):\n"
        "    def on_start(self, _): print(gc.isenabled(), file=sys.stderr)\n"
        "    def on_end(self, _): pass\n"
        "event.register('numba:compile', Seen())\n"
    )
    value, hits, said = toy.says("import seen")
    assert (value, hits, said.split()) == (1.0, 0, ["False"])


def test_a_changed_source_is_compiled_again(toy):
    assert toy.says()[:2] == (1.0, 0)
    toy.write(2)
    assert toy.says() == (2.0, 0, "")
    toy.write(1)
    assert toy.says() == (1.0, 1, "")


def test_a_changed_file_of_the_same_folder_is_noticed(toy):
    piece = toy.place / "piece.py"
    own = TOY.replace("import kept", "import kept\nfrom piece import more")
    (toy.place / "toy.py").write_text(own.replace("x + {number}", "x + more()"))
    for number in (3, 4):
        piece.write_text(f"from numba import njit\n@njit\ndef more():\n    return {number}\n")
        assert toy.says() == (float(number), 0, "")
        assert toy.says() == (float(number), 1, "")


def test_functions_made_from_different_pieces_are_kept_apart(toy):
    (toy.place / "toy.py").write_text(MADE)
    for hits in (0, 1):
        assert toy.says() == ([3.0, 4.0, 8.0], hits, "")
    assert len(toy.files()) == 3
    assert all(re.fullmatch(r"[\w.-]+", file.name) for file in toy.files())


@pytest.mark.parametrize("step", ["os.fsync", "os.replace"])
def test_a_process_that_is_killed_while_it_writes_leaves_no_old_code(toy, step):
    toy.says()
    toy.write(2)
    kill = f"import os, signal; {step} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
    assert toy.run(kill).returncode == -signal.SIGKILL
    assert toy.says() == (2.0, 0, "")
    assert toy.says() == (2.0, 1, "")


def test_of_two_processes_one_compiles_and_the_other_waits_for_it(toy, tmp_path_factory):
    slow = "import os, time\nsync = os.fsync\nos.fsync = lambda f: (time.sleep(1), sync(f))"
    forks = Forks(tmp_path_factory.mktemp("others"))
    with ThreadPoolExecutor() as pool, closing(forks):
        first, until = pool.submit(Toy(toy.place, forks).says, slow), time.monotonic() + 60
        while not any(file.suffix == ".lock" for file in toy.files()):
            assert time.monotonic() < until
            time.sleep(0.01)
        assert toy.says() == (1.0, 1, "")
        assert first.result() == (1.0, 0, "")  # before its process is closed
    assert len(toy.files()) == 1, "no lock is left"


def test_what_cannot_be_compiled_is_not_waited_for(toy):
    (toy.place / "toy.py").write_text(TOY.format(number="'text'"))
    for _ in range(2):
        assert "TypingError" in toy.run("").stderr
        assert toy.files() == []


def test_nobody_waits_for_ever(toy):
    path = toy.place / "held.lock"
    given = f"import pathlib\npath = pathlib.Path({str(path)!r})"
    impatient = "from finalist.compiled import alone as a\na.PATIENCE = 0.2"
    with alone(path):
        assert toy.says(f"{given}\n{impatient}\nwith a.alone(path): pass") == (1.0, 0, "")


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "foreign"])
def test_a_damaged_file_is_compiled_again_and_replaced(toy, damage):
    toy.says()
    (file,) = toy.files()
    content = file.read_bytes()
    middle = len(content) // 2
    file.write_bytes(
        {
            "cut": content[:middle],
            "empty": b"",
            "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            "foreign": sha256(b"hello").digest() + b"hello",
        }[damage]
    )
    value, hits, said = toy.says()
    assert (value, hits) == (1.0, 0)
    assert len(said.splitlines()) == 1
    assert "is damaged" in said
    assert toy.says() == (1.0, 1, "")


def test_a_full_disk_does_not_stop_a_call(toy):
    full = "import os\ndef full(*_): raise OSError(28, 'No space left on device')\nos.fsync = full"
    value, hits, said = toy.says(full)
    assert (value, hits) == (1.0, 0)
    assert len(said.splitlines()) == 1
    assert "No space left on device" in said
    assert toy.files() == []


def test_a_folder_that_vanishes_does_not_stop_a_call(toy):
    gone = "from finalist.compiled import folders\nimport shutil; shutil.rmtree(folders.to_write())"
    value, _, said = toy.says(gone)
    assert value == 1.0
    assert len(said.splitlines()) == 1


def test_without_the_compiler_functions_are_plain(toy):
    code = "import toy; print(toy.answer(0.0))"
    given = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{SRC}:{toy.place}"}
    done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True)
    assert done.stdout == "1.0\n", done.stderr


def test_a_temporary_folder_is_private_named_once_and_removed(nowhere, caplog):
    made = compiled_folders.to_write()
    assert made is not None
    assert made.parent == nowhere
    assert made.stat().st_mode & 0o777 == 0o700
    assert compiled_folders.to_write() == made
    assert compiled_folders.to_read()[-1] == made
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("finalist", "WARNING")
    assert str(made) in record.message
    compiled_folders.remove()
    assert not made.exists()
    assert compiled_folders.to_write() is None, "somebody else may take its name"
    assert compiled_folders.to_read() == [nowhere / "occupied" / "finalist"]


def test_without_any_place_nothing_is_kept(nowhere, monkeypatch, caplog):
    def refuse(prefix):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    assert compiled_folders.to_write() is None
    assert compiled_folders.to_write() is None
    (record,) = caplog.records
    assert "every process compiles it again" in record.message

    @compiled.kept()
    def twice(x):
        return 2 * x

    assert twice(4) == 8


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.write_text, (self.path, "caught"))


@pytest.mark.parametrize("how", ["private", "open", "link", "stranger", "file"])
def test_code_in_the_folder_of_somebody_else_is_not_run(toy, how):
    """The one that is private is run: the trap works."""
    toy.says()
    (file,) = toy.files()
    caught, folder = toy.place / "caught", toy.place / "finalist-shared"
    folder.mkdir(mode=0o700)
    packed = pickle.dumps(Trap(caught))
    (folder / file.name).write_bytes(sha256(packed).digest() + packed)
    toy.cache.chmod(0o755)
    shutil.rmtree(toy.cache)
    given = folder
    if how == "open":
        folder.chmod(0o777)
    elif how == "link":
        given = toy.place / "link"
        given.symlink_to(folder)
    elif how == "stranger":
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder to somebody else")
        os.chown(folder, 65534, 65534)
    elif how == "file":
        given = toy.place / "file"
        given.write_text("")
    value, hits, _ = toy.says(FINALIST_COMPILED=str(given))
    assert (value, hits) == (1.0, 0)
    assert caught.exists() == (how == "private")


def test_a_home_that_is_unknown_is_not_a_folder_called_tilde(monkeypatch, tmp_path):
    for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert [f.name for f in compiled_folders._lasting()] == ["__pycache__"]
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert len(compiled_folders._lasting()) == 1
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compiled_folders._lasting()[1] == tmp_path / "finalist"
    monkeypatch.setenv("NUMBA_CACHE_DIR", "given")
    assert compiled_folders._lasting() == [Path("given").absolute() / "finalist"]


SHARING = """
import multiprocessing, sys

def ask(_):
    import toy
    return toy.answer(0.0), sum(toy.answer.stats.cache_hits.values())

if __name__ == "__main__":
    from finalist.compiled.folders import prepare

    prepare()
    context = multiprocessing.get_context(sys.argv[1])
    results = []
    for _ in range(2):
        with context.Pool(1) as pool:
            results += pool.map(ask, [0])
            pool.close()
            pool.join()
    print(results)
"""


@pytest.fixture
def short():
    """A folder with a short name: multiprocessing makes a socket there, which has some 100."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_processes_share_the_temporary_folder_of_the_one_that_starts_them(toy, method, short):
    (toy.place / "occupied").write_text("")
    (toy.place / "sharing.py").write_text(SHARING)
    environment = {
        **{name: value for name, value in os.environ.items() if name != "FINALIST_COMPILED"},
        "NUMBA_CACHE_DIR": str(toy.place / "occupied"),
        "TMPDIR": str(short),
        "PYTHONPATH": f"{SRC}{os.pathsep}{toy.place}",
    }
    done = subprocess.run(
        [sys.executable, str(toy.place / "sharing.py"), method],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "[(1.0, 0), (1.0, 1)]\n", done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert list(short.iterdir()) == []


def test_an_installation_that_was_compiled_needs_no_temporary_folder(nowhere, monkeypatch, caplog):
    compiled_before = nowhere / "read-only" / "finalist"
    compiled_before.mkdir(parents=True)
    (compiled_before / "toy.nbc").write_bytes(b"")
    monkeypatch.setattr(compiled_folders, "_lasting", lambda: [compiled_before])
    monkeypatch.setattr(compiled_folders, "_writable", lambda: None)
    compiled_folders.prepare()
    assert caplog.records == []
    (compiled_before / "toy.nbc").unlink()
    compiled_folders.prepare()
    assert len(caplog.records) == 1


def test_a_home_that_may_not_be_entered_is_no_obstacle(nowhere, monkeypatch, caplog):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as inside:
        for name in ("stat", "scandir", "listdir", "mkdir"):  # as in the home of root
            inside.setattr(os, name, refuse)
        compiled_folders.prepare()
    assert len(caplog.records) == 1
