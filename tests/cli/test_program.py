"""The program as a whole: light start, help, version, exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import finalist as fl
from finalist.cli.app import app
from tests.cli.common import ARMS, check_refused, run, write

COMMANDS = sorted(command.name for command in app.registered_commands if command.name)


def program(*arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run `python -m finalist` as a process of its own."""
    command = [sys.executable, "-m", "finalist", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, finalist.cli\n"
        "try: finalist.cli.app(['--help'])\n"
        "except SystemExit as done: assert done.code == 0\n"
        "heavy = {'numpy', 'numba', 'pandas', 'altair', 'fastapi', 'scipy', 'pyarrow'}\n"
        "heavy |= {'sqlalchemy', 'alembic', 'finalist.study'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stderr.strip() == "[]"
    assert "Exit codes: 0 done" in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_and_the_exit_codes(command: str) -> None:
    text = run(command, "--help").stdout
    assert f"Example:\n    finalist {command} " in text
    assert "Exit codes" in text
    assert command in run("--help").stdout


def test_version() -> None:
    assert run("--version").stdout == f"finalist {fl.__version__}\n"


def test_the_process_ends_with_the_code_and_one_line(tmp_path: Path) -> None:
    good = write(tmp_path / "arms.csv", ARMS)
    bad = write(tmp_path / "bad.csv", "name,a\nx,1\ny,oops\n")
    done = program("design", good, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["distinct_arms"] == 4
    done = program("design", bad)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert "line 3, column 'a'" in done.stderr


def test_a_name_cannot_send_commands_to_the_terminal(tmp_path: Path) -> None:
    path = write(tmp_path / "arms.csv", "name,a\n\x1b[2Jx,1\n\x1b[2Jx,2\n")
    check_refused(run("design", path), "\\x1b[2Jx")
    path = write(tmp_path / "\x1b[2J\n.csv", "name,a\nx,oops\n")
    check_refused(run("design", path), "\\x1b[2J\\n.csv, line 2")
    path = write(tmp_path / "arms.csv", "name,a\n\x1b[2Jx,1\n")
    assert "\x1b" not in run("design", path).stdout


def test_an_unexpected_error_is_not_dressed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("finalist.cli.inputs.load_arms", fail)
    result = run("design", write(tmp_path / "arms.csv", ARMS))
    assert result.exit_code == 1
    assert isinstance(result.exception, RuntimeError)


def test_an_unknown_command_is_refused() -> None:
    check_refused(run("desing"), "desing")
