"""The torture on a small scale; `make torture` does it on a large one."""

from tests.study import torture


def test_killed_processes_lose_nothing(where):
    found = torture.kills(where, 25, seed=3)
    assert found["kills"] == 25
    assert found["rewards"] > 50  # they were not killed before they did anything


def test_several_writers_lose_nothing(where):
    found = torture.writers(where, 3, 40)
    assert found["tells"] >= 120
