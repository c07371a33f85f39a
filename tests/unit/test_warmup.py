"""`finalist warmup`: nothing is left to compile; and what is said while something is."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.common import run

ROOT = Path(__file__).parents[2]
#: What is loaded or compiled after a warm-up, by strategies on the problems of the golden runs.
AFTER = """
import json
from finalist.compiled.cache import Kept
from finalist.lab.warmup import warm_up
asked, load = [], Kept.load_overload

def counted(self, sig, context):
    asked.append(self._name)
    return load(self, sig, context)

Kept.load_overload = counted
{first}
warmed = len(asked)
from tests.golden_runs import cases
for case in cases():
    if case.seed == 1 and not case.refused():
        case.run()
print(json.dumps([warmed, asked[warmed:]]))
"""


def left(first: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", AFTER.format(first=first)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    warmed, after = json.loads(done.stdout)
    return warmed, after


def test_after_a_warm_up_nothing_is_left_to_compile() -> None:
    warmed, after = left("warm_up()")
    assert after == []
    assert warmed >= 30


def test_a_warm_up_that_forgets_something_is_noticed() -> None:
    forgets = "from finalist.lab import warmup; warmup._SIZES = (None,); warm_up()"
    assert left(forgets)[1] != []


def test_the_command_says_where_compiled_code_is(tmp_path: Path) -> None:
    found = json.loads(run("warmup", "--format", "json").stdout)
    assert Path(found["folder"]).is_dir()
    assert isinstance(found["compiled"], list)
    assert "is kept in" in run("warmup").stdout


TOY = """
from finalist.compiled.cache import kept

@kept(error_model="numpy")
def twice(x):
    return 2.0 * x
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of Unix")
@pytest.mark.parametrize("place", ["terminal", "notebook", "script"])
def test_a_person_at_a_terminal_or_a_notebook_is_told_once(tmp_path: Path, place: str) -> None:
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "ipykernel.py").write_text("")  # what runs the cells of a notebook
    first = "ipykernel" if place == "notebook" else "os"
    code = f"import {first}, toy; print(toy.twice(1.0), toy.twice(1))"
    terminal = place == "terminal"
    said = []
    for _ in range(2):  # the second process has nothing to compile
        ours, theirs = pty.openpty()
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=theirs if terminal else subprocess.PIPE,
            check=True,
        )
        os.close(theirs)
        assert done.stdout == b"2.0 2.0\n"
        said.append(_read(ours) if terminal else done.stderr.decode())
        os.close(ours)
    assert said[1] == ""
    assert said[0].count("Compiling") == (place != "script")


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 10_000).decode()
    except OSError:  # nothing was written, and nobody can any more
        return ""
