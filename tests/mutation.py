"""Break one place of the source in a copy of it, and run tests on the copy.

`tests.mutants` does so with constants, `tests.study.guards` with guards. The working tree is never
changed. Compiled code can be shared by the copies: it is kept by the content of its source file, so
what is broken is compiled again and the rest is not.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "finalist"


def copy_source(folder: Path) -> None:
    """Make a copy of finalist in a folder."""
    shutil.copytree(SOURCE, folder / "finalist", ignore=shutil.ignore_patterns("__pycache__"))


def replace_in(folder: Path, file: str, text: str, instead: str) -> None:
    """Replace the first place where a file of the copy has a text."""
    path = folder / "finalist" / file
    whole = path.read_text()
    assert text in whole, f"{file} has no longer: {text}"
    path.write_text(whole.replace(text, instead, 1))


def run_tests(
    folder: Path, *arguments: str, compiled: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run pytest with the copy of finalist in a folder.

    Parameters
    ----------
    folder : Path
    *arguments : str
        Of pytest.
    compiled : Path, optional
        A folder for compiled code that other copies share.
    """
    env = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    if compiled is not None:
        env["NUMBA_CACHE_DIR"] = str(compiled)
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
    )
