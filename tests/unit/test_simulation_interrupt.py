"""Ctrl-C, sent as a terminal does: to all processes of the group."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CODE = """
import sys, time
from pathlib import Path
import numpy as np
import psutil
import finalist as fl
from tests.fakes import Rounds

def slow(arm, n, rng):
    Path(sys.argv[2], f"{time.monotonic_ns()}").touch()
    time.sleep(float(sys.argv[3]))
    return rng.standard_normal(n)

arms = fl.Arms.unstructured(2)
try:
    result = fl.simulate(
        arms, [1.0, 0.0], Rounds(1), sigma=1.0, rewards=slow, runs=1000, n_jobs=int(sys.argv[1])
    )
    children = psutil.Process().children(recursive=True)
    left = [p for p in children if "tracker" not in str(p.cmdline())]
    print(len(result), result.requested, "interrupted" in str(result.summary()), len(left))
except KeyboardInterrupt:
    print("nothing")
"""


def interrupted(jobs: int, folder: Path, pulls: int, seconds: float) -> str:
    """Start a simulation, interrupt it after some pulls, and return what it printed."""
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, str(jobs), str(folder), str(seconds)],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    try:
        until = time.monotonic() + 60
        while len(list(folder.iterdir())) < pulls and process.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert "Traceback" not in err, err
    return out.strip()


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_finished_runs_come_back_and_no_process_stays(jobs, tmp_path):
    done, requested, told, left = interrupted(jobs, tmp_path, 12, 0.05).split()
    assert 1 <= int(done) < 100
    assert (requested, told, left) == ("1000", "True", "0")


@pytest.mark.parametrize("jobs", [1, 2])
def test_without_a_finished_run_the_interrupt_goes_on(jobs, tmp_path):
    assert interrupted(jobs, tmp_path, 1, 30.0) == "nothing"
