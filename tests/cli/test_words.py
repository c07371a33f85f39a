"""One vocabulary for people: what commands say, from their help to the errors of a whole life.

Names of options, columns, strategies and JSON keys are exempt (`tests.words`); so are the research
commands beyond their line in `finalist --help`, and Python that is shown as such.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from docs import generate
from typer.testing import CliRunner, Result

from finalist.cli.app import app
from tests.cli.common import run, write
from tests.words import found, said

#: They speak as the papers do.
RESEARCH = {"benchmark", "reproduce", "complexity", "design", "region", "simulate"}
PEOPLES = [name for name in generate.commands() if name.split()[-1] not in RESEARCH]

#: Names with spaces, "and" and commas: sentences must keep them apart.
TEAS = """name,warmth,tone
long and hot,90,light
"mild, slow",70,dark
short and hot,95,dark
cold,20,light
plain,60,light
"""
MEANS = {"long and hot": 11.0, "mild, slow": 7.0, "short and hot": 9.5, "cold": 4.0, "plain": 8.0}


def strange(text: str) -> list[str]:
    """Return the words that do not belong; the name of a strategy does, without an article."""
    names = re.sub(r"(?<!the )\bgauntlet\b|'(?:arm|reward)'|\[default:[^]]*\]", "", text)
    return found(names)


def described(text: str) -> str:
    """Return a help text without the columns and keys that it lists."""
    kept, listing = [], False
    for part in text.split("\n\n"):
        if not listing:
            kept.append(re.split(r"the\s+keys|row\s+per\s+\w+:", part)[0])
        listing = bool(re.search(r"the\s+keys\s*$", part))
    return "\n\n".join(kept)


def test_the_checks_see_what_they_look_for() -> None:
    assert strange("every arm; with gauntlet, the gauntlet; a column 'reward'") == [
        "arm",
        "gauntlet",
    ]
    text = (
        "a pull\nhas the keys arm, pull.\n\nan arm, under the\n  keys\n\n    arm, pull\n\na reward"
    )
    assert strange(described(text)) == ["pull", "arm", "reward"]


def test_the_list_of_commands_is_for_everybody() -> None:
    text = run("--help").output
    assert strange(text) == []
    assert "..." not in text.split("Commands:")[1]  # each in a line that is not cut


@pytest.mark.parametrize("name", PEOPLES)
def test_help_speaks_of_candidates_and_measurements(name: str) -> None:
    runner = CliRunner(env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"})
    text = runner.invoke(app, [*name.split()[1:], "--help"], terminal_width=100).output
    assert "Usage:" in text
    assert strange(described(text)) == []


def fill(path: Path, seed: int) -> None:
    """Write results into a sheet."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    rng = np.random.default_rng(seed)
    for row in rows:
        value = MEANS[row[header.index("candidate")]] + 0.5 * rng.standard_normal()
        row[header.index("result")] = f"{value:.4f}"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table of candidates, where FINALIST_DB names a database."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINALIST_DB", str(tmp_path / "lab.db"))
    return write(tmp_path / "teas.csv", TEAS).parent


def live(name: str, *settings: object, batches: int, table: str = "teas.csv") -> Iterator[Result]:
    """Begin a study and go on with it until its end, or for some batches."""
    yield run("new", name, table, "--seed", 1, *settings)
    sheet = Path("batch.csv")
    for number in range(batches):
        sheet.unlink(missing_ok=True)
        yield run("ask", name)
        yield run("ask", name, "-o", sheet)
        if not sheet.exists():
            break
        fill(sheet, number)
        yield run("tell", name, sheet)
        yield run("status", name, "--no-forecast")
    yield run("status", name)


def check(results: Iterator[Result] | list[Result]) -> str:
    """Check all that was said; return it."""
    everything = ""
    for result in results:
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        text = result.stdout + result.stderr
        assert strange(text) == [], text
        everything += text
    return everything


@pytest.mark.parametrize(
    ("settings", "end"),
    [
        (("--sigma", 0.5), "is the best, after"),
        (("--sigma", "unknown"), "Batch 1"),
        (("--sigma", 0.5, "--epsilon", 3), "of the best, after"),
        (("--sigma", 0.5, "--top", 2), "are the 2 best"),
        (("--sigma", 20, "--budget", 20), "The budget of 20 measurements is used up"),
        (("--sigma", 2, "--budget", 40, "--strategy", "sequential-halving"), "is recommended"),
        (("--sigma", 2, "--budget", 10, "--strategy", "top-two"), "is recommended"),
        (("--sigma", 0.5, "--strategy", "kn", "--epsilon", 1), "is selected, after"),
        (("--sigma", 0.5, "--model", "separate", "--check", 0), "is the best, after"),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, tuple) else "",
)
@pytest.mark.usefixtures("lab")
def test_a_life_is_told_in_the_same_words(settings: tuple[object, ...], end: str) -> None:
    assert end in check(live("teas", *settings, batches=12))


@pytest.mark.usefixtures("lab")
def test_what_happens_to_single_measurements_is_said_in_them_too() -> None:
    check(live("teas", "--sigma", 0.5, batches=0))
    sheet = Path("batch.csv")
    check([run("ask", "teas", "--size", 6, "-o", sheet)])
    header, *rows = sheet.read_text().splitlines()
    assert header == "pull_id,candidate,warmth,tone,result,note"
    failed = rows[0].rsplit(",", 2)[0] + ",failed,dropped"
    write(sheet, "\n".join([header, failed]))
    said_now = check(
        [
            run("tell", "teas", sheet),
            run("void", "teas", 2, "--reason", "dropped"),
            run("missing", "teas", 3, "--reason", "none left"),
            run("amend", "teas", 4, 1.5, "--reason", "a slip"),
            run("amend", "teas", 99, 1.5, "--reason", "a slip"),
            run("void", "teas", 2, "--reason", "again"),
            run("note", "teas", "a new lamp"),
        ]
    )
    assert "Measurement 2 is void" in said_now
    assert "there is no measurement 99" in said_now
    sheet.unlink()
    check([run("ask", "teas", "-o", sheet)])
    fill(sheet, 0)
    check([run("tell", "teas", sheet)])
    check(
        [
            run("void", "teas", 4, "--reason", "late"),
            run("stop", "teas", "--reason", "the season is over"),
            run("status", "teas"),
            run("resume", "teas"),
            run("budget", "teas", 80),
            run("budget", "teas", 1),
            run("budget", "teas", "--none"),
            run("fork", "teas", "again", "--until", 1),
            run("fork", "teas", "near", "--epsilon", 0.5),
            run("status", "near"),
            run("list"),
            run("delete", "near"),
            run("report", "teas", "-o", "report.html"),
            run("status", "nothing"),
            run("db", "check"),
        ]
    )


@pytest.mark.usefixtures("lab")
def test_the_report_and_the_demo_are_for_everybody(tmp_path: Path) -> None:
    check(live("teas", "--sigma", 0.5, batches=12))
    assert run("report", "teas", "-o", "report.html").exit_code == 0
    assert strange(said(Path("report.html").read_text())) == []
    shown = run("demo", "--out", tmp_path / "demo").stdout
    python = shown[shown.index("In Python:") : shown.index("The study of this demo")]
    assert strange(shown.replace(python, "")) == []


@pytest.mark.parametrize(
    "words",
    [
        ("new", "x", "teas.csv"),
        ("new", "x", "teas.csv", "--sigma", -1),
        ("new", "x", "teas.csv", "--sigma", 1, "--delta", 2),
        ("new", "x", "teas.csv", "--sigma", 1, "--epsilon", -1),
        ("new", "x", "teas.csv", "--sigma", 1, "--top", 9),
        ("new", "x", "teas.csv", "--sigma", 1, "--budget", 0),
        ("new", "x", "teas.csv", "--sigma", 1, "--max-pulls-per-arm", 0),
        ("new", "x", "teas.csv", "--sigma", 1, "--strategy", "kn"),
        ("new", "x", "teas.csv", "--sigma", 1, "--strategy", "g-budget"),
        ("new", "x", "teas.csv", "--sigma", 1, "--strategy", "uniform", "--batch-intercept"),
        ("new", "x", "teas.csv", "--sigma", 1, "--column", "tone=colour"),
        ("new", "x", "teas.csv", "--sigma", 1, "--cost-column", "price"),
        ("new", "x", "empty.csv", "--sigma", 1),
        ("new", "x", "twice.csv", "--sigma", 1),
        ("new", "x", "gap.csv", "--sigma", 1),
        ("tell", "teas", "teas.csv"),
        ("tell", "teas", "gap.csv"),
        ("ask", "teas", "--size", 0),
        ("amend", "teas", 1, 2.0, "--reason", "early"),
        ("sigma", "gap.csv"),
        ("plan", "teas.csv", "--sigma", 1),
        ("plan", "teas.csv", "--sigma", 1, "--gap", -1),
        ("fork", "teas", "y", "--until", 9),
    ],
    ids=lambda words: " ".join(map(str, words)),
)
@pytest.mark.usefixtures("lab")
def test_errors_use_the_same_words(words: tuple[object, ...]) -> None:
    write(Path("empty.csv"), "name,dose\n")
    write(Path("twice.csv"), "name,dose\na,1.5\na,2.25\n")
    write(Path("gap.csv"), "name,dose\na,1.5\nb,\n")
    assert run("new", "teas", "teas.csv", "--sigma", 0.5).exit_code == 0
    assert run("ask", "teas", "-o", "batch.csv").exit_code == 0
    result = run(*words)
    assert result.exit_code == 2, result.output
    check([result])


@pytest.mark.usefixtures("lab")
def test_names_are_quoted_where_a_sentence_needs_it() -> None:
    text = check(live("teas", "--sigma", 4, batches=6))
    sentences = re.findall(r".* possible after .*|Certain now: the .*|Known now: .*", text)
    assert sentences
    for line in sentences:
        for name in ("long and hot", "short and hot", "mild, slow"):
            assert line.count(name) == line.count(f'"{name}"'), line
