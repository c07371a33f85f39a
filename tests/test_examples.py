"""Every example runs as its first lines say, and tells what it should."""

import ast
import contextlib
import io
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))

#: What the story of each must say.
SAYS = {
    "crop_trial": [
        r"Marvellous, 0\.6 cwt. is within 6 of the best, after \d+ measurements",
        r"the loss of 4 missing measurements had nothing to do with their value",
        r"72 earlier measurements guide what is measured and are never tested",
    ],
    "dose_finding": [
        r"Tried are 0, 50, 100 mg",
        r"mg=\S+ is within 1\.\d+ of the best point of the region",
        r"In truth (55|57\.5|60|62\.5|65) mg is 0\.\d\d behind the best",
    ],
    "mixtures": [
        r"cement 23\.8, slag 17\.6, fly ash 6\.5",
        r"mix 145. is within 2 of the best, after \d+ measurements",
        r"it is 0\.0 MPa behind the best",
    ],
    "own_strategy": [r"^doubling keeps [34]\d rules; 4 do not", r"of doubling\n", r"of gauntlet\n"],
    "prompts": [
        r"within 0\.05 of the best, after [\d,]+ measurements; this is wrong with probability at",
        r"In truth it is [0-4]\.\d% behind the best",
    ],
}

#: Sums of the columns of concrete.csv, in the copy that it was taken from.
SUMS = {
    "cement": 23539.8,
    "slag": 19350.6,
    "ash": 14236.0,
    "water": 28046.6,
    "superplasticizer": 1168.8,
    "coarse_aggregate": 143389.1,
    "fine_aggregate": 115957.5,
    "strength": 3992.23,
}


def told(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out


@pytest.mark.parametrize("name", SAYS)
@pytest.mark.usefixtures("few_runs", "few_draws")
def test_an_example_tells_its_story(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from finalist.strategies import STRATEGIES

    known = dict(STRATEGIES)
    try:
        story = told(name, capsys)
    finally:
        STRATEGIES.clear()
        STRATEGIES.update(known)
    for words in SAYS[name]:
        assert re.search(words, story), (words, story)
    assert "Warning" not in story
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


def test_every_example_is_tested_and_in_the_list():
    names = {path.stem for path in EXAMPLES}
    assert names == {*SAYS, "instrument_loop"}
    listed = re.findall(r"^\| \[(\w+)\.py\]\((\w+)\.py\)", (FOLDER / "README.md").read_text(), re.M)
    assert {a for a, _ in listed} == {b for _, b in listed} == names


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_how_to_run_it(path):
    text = path.read_text()
    assert 40 <= len(text.splitlines()) <= 100
    story = ast.get_docstring(ast.parse(text)) or ""
    assert f"python examples/{path.name}" in story


def instrument(*arguments: str) -> str:
    """Return what the loop prints when it ends by itself."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["instrument_loop.py", *arguments])
        runpy.run_path(str(FOLDER / "instrument_loop.py"), run_name="__main__")
    return out.getvalue()


def test_the_instrument_loop_survives_a_power_cut(tmp_path):
    import finalist as fl

    file = str(tmp_path / "lab.db")
    command = [sys.executable, str(FOLDER / "instrument_loop.py"), file, "--power-cut", "30"]
    cut = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert cut.returncode == 1, cut.stderr
    assert "has 0 readings" in cut.stdout
    with fl.Study.open(file, "dyes") as study:
        before = study.to_frame().set_index("pull_id")["reward"].dropna()
    assert len(before) == 30

    again = instrument(file)
    assert "has 30 readings" in again
    assert '"dye E" is the best' in again
    assert "given up after 3 tries" in again
    with fl.Study.open(file, "dyes") as study:
        after = study.to_frame().set_index("pull_id")["reward"].dropna()
    pd.testing.assert_series_equal(after[before.index], before)  # nothing was measured again

    first, *verdict = instrument(file).splitlines()  # nothing left to do: the same verdict
    assert f"has {len(after)} readings" in first
    assert verdict == again.splitlines()[-len(verdict) :]


def test_half_a_line_is_no_reading():
    loop = runpy.run_path(str(FOLDER / "instrument_loop.py"))

    class Port:
        def __init__(self, answer: bytes) -> None:
            self.answer = answer

        def write(self, command: bytes) -> None:
            assert command == b"MEASURE dye A\n"

        def readline(self) -> bytes:
            return self.answer

    assert loop["reading"](Port(b"OK -1.234567\n"), "dye A") == -1.234567
    for bad in (b"", b"OK 1.2", b"OK 1.23\n", b"OK 1.234567", b"\xff#!OK 1.5\n", b"OK nan\n"):
        with pytest.raises(OSError, match="answer"):
            loop["reading"](Port(bad), "dye A")


def test_the_table_of_concrete_is_what_it_says():
    table = pd.read_csv(FOLDER / "concrete.csv")
    assert len(table) == 151
    assert table["mixture"].is_unique
    assert not table.drop(columns="mixture").duplicated().any()
    assert table["cement"].max() == 200
    sums = table.drop(columns="mixture").sum().round(2)
    assert sums.to_dict() == pytest.approx(SUMS, abs=0.005)
    X = np.column_stack(
        [np.ones(151), *(table[part] / table["water"] for part in ("cement", "slag", "ash"))]
    )
    rest = table["strength"] - X @ np.linalg.lstsq(X, table["strength"], rcond=None)[0]
    assert np.sqrt((rest**2).sum() / 147) == pytest.approx(5.9, abs=0.05)
