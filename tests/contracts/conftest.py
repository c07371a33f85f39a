"""One other process of each kind for all strategies: each would import everything again."""

import os
import pickle
import subprocess
import sys
from functools import cache

import pytest

from finalist.strategies import Strategy
from finalist.testing import elsewhere

LOOP = """
import pickle, sys
from finalist.testing.elsewhere import pulls_of
while True:
    pickle.dump(pulls_of(pickle.load(sys.stdin.buffer)), sys.stdout.buffer)
    sys.stdout.flush()
"""


@pytest.fixture(autouse=True, scope="session")
def _shared_processes():
    """Ask the same two about all strategies; `tests/unit/test_testing.py` starts new ones."""
    started: list[subprocess.Popen[bytes]] = []

    @cache
    def process(seed: str) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(place or os.getcwd() for place in sys.path)
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed}
        pipe, command = subprocess.PIPE, [sys.executable, "-c", LOOP]
        started.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment))
        return started[-1]

    def pulls_elsewhere(strategy: Strategy, seed: str) -> str:
        there = process(seed)
        assert there.stdin is not None
        assert there.stdout is not None
        there.stdin.write(elsewhere._packed(strategy))
        there.stdin.flush()
        found: str = pickle.load(there.stdout)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elsewhere, "_pulls_elsewhere", pulls_elsewhere)
        yield
    for one in started:
        one.kill()
        one.communicate()
