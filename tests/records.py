"""What a long run found, on the terminal and in a file that the documentation shows."""

import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

import finalist

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


class Record:
    """Lines of a run, written as they come.

    Parameters
    ----------
    name : str
        Of the file in `benchmarks/results`, without its suffix.
    title : str
    """

    def __init__(self, name: str, title: str) -> None:
        self._path = RESULTS / f"{name}.md"
        command = " ".join(["python", *sys.orig_argv[1:]])
        begun = datetime.now(UTC).strftime("%Y-%m-%d")
        versions = f"finalist {finalist.__version__}, Python {platform.python_version()}"
        about = f"`{command}`, {begun}, {versions}"
        self._lines = [f"# {title}", "", f"{about}.", ""]

    def say(self, text: str) -> None:
        """Print a line and keep it."""
        print(text, flush=True)
        self._lines.append("- " + text.replace("\n", "; "))
        self._path.write_text("\n".join(self._lines) + "\n")
