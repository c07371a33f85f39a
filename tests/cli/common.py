"""What the tests of the command line share."""

from pathlib import Path

from typer.testing import CliRunner, Result

from finalist.cli import app

MAGIC = {"png": b"\x89PNG\r\n\x1a\n", "svg": b"<svg", "pdf": b"%PDF-"}

#: Hostile names, and `copy`, which is the first arm again.
ARMS = """name,a,b
[red]x[/red],1,0
=1+1,0,1
<script>,0.5,0.5
copy,1,0
"two
lines",0.2,0.8
"""


def run(*arguments: object) -> Result:
    """Run `finalist` in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def check_refused(result: Result, *parts: str) -> None:
    """Wrong input: exit code 2, nothing on stdout, and an error line with these parts."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("Error: ")
    for part in parts:
        assert part in last
    assert "Traceback" not in result.stderr
