"""Break constants, one at a time, and see that a test goes red: python -m tests.mutants [word ...].

Slack hides a wrong constant from every simulation. `mutants.toml` lists places, each with what
stands there and what does when it is broken (a level, a share, a factor, a sign, strictness), and
the tests that are to notice. All of them together write `benchmarks/results/mutants.md`; words
choose those whose file or place has one of them.
"""

import platform
import re
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import finalist
from tests.mutation import copy_source, replace_in, run_tests
from tests.records import RESULTS

#: Where a test file of the list is, unless a folder is named: "study/constants_study".
UNIT = "unit"


@dataclass(frozen=True)
class Mutant:
    """A broken constant.

    Attributes
    ----------
    file : str
        In `src/finalist`.
    place : str
        What it is, for people.
    text, instead : str
        What stands there, once in the file, and what does when it is broken.
    tests : tuple of str
        The test files that are to notice.
    """

    file: str
    place: str
    text: str
    instead: str
    tests: tuple[str, ...]


def read_mutants() -> tuple[Mutant, ...]:
    """Return the list of `mutants.toml`."""
    groups = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["broken"]
    return tuple(
        Mutant(group["file"], place, text, instead, tuple(map(_test_file, group["tests"])))
        for group in groups
        for place, text, instead in group["places"]
    )


def _test_file(name: str) -> str:
    folder, _, file = name.rpartition("/")
    return f"tests/{folder or UNIT}/test_{file}.py"


MUTANTS = read_mutants()


def red_test(mutant: Mutant, compiled: Path) -> str | None:
    """Return the test that fails first where a constant is broken; None if none does."""
    with tempfile.TemporaryDirectory() as folder:
        copy_source(Path(folder))
        replace_in(Path(folder), mutant.file, mutant.text, mutant.instead)
        run = run_tests(Path(folder), "-q", "-x", *mutant.tests, compiled=compiled)
    # 2 would be a module that cannot be imported: nothing was tested then.
    assert run.returncode in (0, 1), run.stdout + run.stderr
    if run.returncode == 0:
        return None
    found = re.search(r"^(?:FAILED|ERROR) (?:\S*/)?(\S+?\.py::.+?)(?: - |$)", run.stdout, re.M)
    assert found is not None, run.stdout
    return found[1]


def main() -> int:
    """Break all that were chosen; print a line for each, and write the table if it is whole."""
    words = sys.argv[1:]
    chosen = [m for m in MUTANTS if not words or any(w in f"{m.file} {m.place}" for w in words)]
    rows, survived = [], 0
    with tempfile.TemporaryDirectory() as compiled:
        for mutant in chosen:
            red = red_test(mutant, Path(compiled))
            survived += red is None
            print(f"{mutant.file}: {mutant.place}: {red or 'SURVIVED'}", flush=True)
            change = f"{_code(mutant.text)} becomes {_code(mutant.instead)}"
            went = "**SURVIVED**" if red is None else f"`{red}`"
            rows.append(f"| {mutant.place} | `{mutant.file}` | {change} | {went} |")
    result = f"{len(chosen) - survived} of {len(chosen)} broken constants turn a test red."
    print(result)
    if not words:
        _write(rows, result)
    return 1 if survived else 0


def _code(text: str) -> str:
    """Return text for a cell of a table, on one line."""
    return "`" + " ".join(text.split()).replace("|", "\\|") + "`"


def _write(rows: list[str], result: str) -> None:
    versions = f"finalist {finalist.__version__}, Python {platform.python_version()}"
    lines = [
        "# Broken constants",
        "",
        f"`make mutants` (`python -m tests.mutants`), {datetime.now(UTC):%Y-%m-%d}, {versions}.",
        "",
        f"{result} One place is broken at a time, in a copy of the source.",
        "",
        "| place | file | broken | test that went red first |",
        "|---|---|---|---|",
        *rows,
    ]
    (RESULTS / "mutants.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
