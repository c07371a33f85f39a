"""Break constants, one at a time, and see that a test goes red: python -m tests.mutants [word ...].

Slack hides a wrong constant from every simulation. `mutants.toml` lists places, each with what
stands there and what does when it is broken (a level, a share, a factor, a sign, strictness), and
the tests that are to notice. What was found is kept in `benchmarks/results/mutants.md`. Words
choose those whose file or place has one of them; then only their rows are written again, and rows
of places that are gone are left out.
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
SURVIVED = "SURVIVED"


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
TABLE = RESULTS / "mutants.md"


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


def row_start(mutant: Mutant) -> str:
    """Return the row of a mutant in the table, without the test that noticed."""
    change = f"{_code(mutant.text)} becomes {_code(mutant.instead)}"
    return f"| {mutant.place} | `{mutant.file}` | {change} | "


def _code(text: str) -> str:
    """Return text for a cell of a table, on one line."""
    return "`" + " ".join(text.split()).replace("|", "\\|") + "`"


def kept_rows() -> list[str]:
    """Return the rows of the table that was written last."""
    lines = TABLE.read_text().splitlines()
    return lines[lines.index("|---|---|---|---|") + 1 :]


def main() -> int:
    """Break all that were chosen; print a line for each, and write the table."""
    words = sys.argv[1:]
    chosen = [m for m in MUTANTS if not words or any(w in f"{m.file} {m.place}" for w in words)]
    if not chosen:
        sys.exit(f"No place has one of these words: {', '.join(words)}.")
    new = {}
    with tempfile.TemporaryDirectory() as compiled:
        for mutant in chosen:
            red = red_test(mutant, Path(compiled))
            print(f"{mutant.file}: {mutant.place}: {red or SURVIVED}", flush=True)
            new[row_start(mutant)] = f"`{red}` |" if red else f"**{SURVIVED}** |"
    print(_result(list(new.values())))
    _write(new, whole=not words)
    return 1 if any(SURVIVED in went for went in new.values()) else 0


def _result(rows: list[str]) -> str:
    red = sum(SURVIVED not in row for row in rows)
    return f"{red} of {len(rows)} broken constants turn a test red."


def _write(new: dict[str, str], whole: bool) -> None:
    """Write the table: new rows, and kept ones of places that are as they were."""
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    versions = f"finalist {finalist.__version__}, Python {platform.python_version()}"
    about = [f"`make mutants` (`python -m tests.mutants`), {today}, {versions}."]
    kept = [] if whole else kept_rows()
    if not whole:
        first = TABLE.read_text().splitlines()[2]
        again = f"`python -m tests.mutants word ...`, last on {today}, {versions}"
        about = [first, "", f"Some rows were made later, on their own: {again}."]
    rows = []
    for start in map(row_start, MUTANTS):
        found = [start + new[start]] if start in new else [r for r in kept if r.startswith(start)]
        rows.extend(found)
    lines = [
        "# Broken constants",
        "",
        *about,
        "",
        f"{_result(rows)} One place is broken at a time, in a copy of the source.",
        "",
        "| place | file | broken | test that went red first |",
        "|---|---|---|---|",
        *rows,
    ]
    TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
