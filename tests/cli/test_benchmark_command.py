"""`finalist benchmark`: what it prints, writes and refuses."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from finalist.cli.research.benchmark import HELP
from finalist.lab.benchmark import SUITES
from tests.benchmark.common import blocks, tiny
from tests.cli.common import MAGIC, check_refused, run, write

ROOT = Path(__file__).parents[2]
SMALL = ("--suite", "quick", "--runs", 2, "--deltas", "0.05", "--jobs", 1)


@pytest.fixture(autouse=True)
def tiny_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUITES, "quick", tiny)


def test_it_prints_a_table_and_writes_files(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "field"
    words = ("benchmark", *SMALL, "--strategies", "xy-adaptive,fully-adaptive", "--out", folder)
    result = run(*words, "--strategies", "track-and-stop")
    assert result.exit_code == 0, result.output
    for word in ("delta = 0.05", "ratio", "xy-adaptive", "fully-adaptive", "knows"):
        assert word in result.stdout
    assert "track-and-stop: 1 cell not simulated because: these 4 arms" in (result.stdout)
    assert max(map(len, result.stdout.split("Written:")[0].splitlines())) <= 100
    assert "…" not in result.stdout
    for stem in ("ratio-0.05", "survival-0.05"):
        for suffix in ("png", "svg"):
            path = folder / f"{stem}.{suffix}"
            assert path.read_bytes().startswith(MAGIC[suffix])
            assert str(path) in result.stdout
    for name in ("benchmark.md", "index.html", "cells.csv"):
        assert (folder / name).stat().st_size > 500
    assert blocks(folder / "results.sqlite") == 5


def test_json_has_every_cell(tmp_path: Path) -> None:
    store = tmp_path / "kept.sqlite"
    words = ("benchmark", *SMALL, "--strategies", "xy-oracle:bound=soare", "--store", store)
    result = run(*words, "--format", "json", "--out", tmp_path, "--seed", 3, "--max-ratio", 50)
    content = json.loads(result.stdout)
    assert content["settings"]["runs"] == 2
    assert content["settings"]["command"] == (
        "finalist benchmark --suite quick --strategies xy-oracle:bound=soare --runs 2 "
        "--deltas 0.05 --max-ratio 50 --seed 3"
    )
    cells = content["cells"]
    assert [cell["instance"] for cell in cells] == ["unstructured, 3 arms", "plums"]
    for cell in cells:
        assert cell["strategy"] == "xy-oracle:bound=soare"
        assert cell["marks"] == "knows theta"
        assert cell["ratio_low"] is cell["ratio_high"] is cell["mean_pulls_low"] is None  # 2 runs
        assert cell["mean_pulls"] == pytest.approx(cell["ratio"] * cell["lower_bound"])
        assert cell["max_pulls"] == pytest.approx(50 * cell["lower_bound"], abs=1)
    assert all(Path(path).is_file() for path in content["files"])
    assert store.exists()
    assert not (tmp_path / "results.sqlite").exists()


def test_wrong_input_is_refused(tmp_path: Path) -> None:
    def refused(*words: object, says: str) -> None:
        check_refused(run("benchmark", "--out", tmp_path, *words), says)

    refused("--suite", "no", says="suite is 'no'")
    refused("--strategies", "best", says="strategy is 'best'")
    refused("--strategies", "g:bound=loose", *SMALL, says="bound is 'loose'")
    refused("--strategies", "g:x=1", *SMALL, says="g has no setting 'x'")
    refused("--runs", 1, says="runs is 1")
    refused("--deltas", "0.05;0.1", says="--deltas '0.05;0.1'")
    refused("--strategies", " ,", says="strategy is ' ,'; write names")
    refused("--deltas", "0.6", "--suite", "quick", says="delta is 0.6; it must be between 0 and")
    refused("--deltas", "0", "--suite", "quick", says="delta is 0")
    refused("--max-ratio", 0, says="max_ratio is 0")
    refused("--seed", -1, "--suite", "quick", says="seed is -1")
    refused("--strategies", "g", *SMALL[:-1], 0, says="n_jobs is 0")
    refused("--store", tmp_path / "no" / "x.sqlite", *SMALL, says="there is no folder")
    path = write(tmp_path / "mine.sqlite", "mine")
    refused("--store", path, *SMALL, says=str(path))
    assert path.read_text() == "mine"
    refused("--scheduler", "nonsense://x", *SMALL, says="no Dask scheduler at 'nonsense://x'")


def test_empty_words_between_commas_are_ignored(tmp_path: Path) -> None:
    words = ("benchmark", *SMALL, "--strategies", "xy-oracle,,v ,", "--format", "json")
    content = json.loads(run(*words, "--out", tmp_path).stdout)
    assert {cell["strategy"] for cell in content["cells"]} == {"xy-oracle", "v"}
    assert "--strategies xy-oracle,v --runs" in content["settings"]["command"]


def test_what_is_no_address_is_refused_at_once_and_without_a_traceback(tmp_path: Path) -> None:
    words = [*map(str, SMALL), "--strategies", "xy-oracle", "--out", str(tmp_path)]
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "finalist", "benchmark", *words, "--scheduler", "nix"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "there is no Dask scheduler at 'nix' (this is not an address)" in done.stderr
    assert time.monotonic() - begin < 18  # Dask alone waits for 20 seconds


def test_the_workers_of_the_help_have_one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask reads the command of the help as one process for every core, with one thread."""
    from click.testing import CliRunner
    from distributed.cli import dask_worker

    made: list[tuple[str, int]] = []

    def noted(address: str, *_: object, nthreads: int, **__: object) -> None:
        made.append((address, nthreads))
        if len(made) == 3:
            raise SystemExit(0)

    (line,) = [line for line in HELP.splitlines() if "dask worker" in line]
    monkeypatch.setattr(dask_worker, "CPU_COUNT", 3)
    monkeypatch.setattr(dask_worker, "Nanny", noted)
    CliRunner().invoke(dask_worker.main, line.split()[2:])
    assert made == [("tcp://10.0.0.1:8786", 1)] * 3


def test_interrupts_keep_what_is_finished(tmp_path: Path) -> None:
    words = ["--suite", "quick", "--strategies", "xy-adaptive", "--runs", "20000", "--jobs", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "finalist", "benchmark", *words, "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    store = tmp_path / "results.sqlite"
    try:
        until = time.monotonic() + 120
        while not store.exists() or blocks(store) < 3:
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert out == ""
    assert err.startswith("Interrupted. 0 of 8 cells are finished")
    assert f"are in {store}. Run the same command again" in err
    assert "Traceback" not in err
    assert blocks(store) >= 3
