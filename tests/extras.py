"""A finalist without some extras: their modules cannot be imported.

    python -m tests.extras pandas,altair -c CODE
    python -m tests.extras pandas,altair WORDS OF A COMMAND

What is real about an environment without an extra, `make dist` tries in one.
"""

import os
import subprocess
import sys
from pathlib import Path

from finalist.extras import EXTRAS

#: Every module of every extra.
ALL = tuple(sorted({module for modules in EXTRAS.values() for module in modules}))


def without(words: str, *code: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command, or code after "-c", in a process in which these modules are missing."""
    command = [sys.executable, "-m", "tests.extras", ",".join(ALL), *words.split(), *code]
    root = Path(__file__).parents[1]
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def main() -> None:
    """Make the modules missing, then do what is asked for."""
    missing, *words = sys.argv[1:]
    for module in missing.split(","):
        sys.modules[module] = None  # type: ignore[assignment]  # as Python marks what is not there
    if words[0] == "-c":
        exec(compile(words[1], "code", "exec"), {})
        return
    from finalist.cli import main as program

    sys.argv = ["finalist", *words]
    program()


if __name__ == "__main__":
    main()
