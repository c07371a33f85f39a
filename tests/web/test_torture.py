"""What `make torture` does to the API, on a small scale."""

import pytest

from tests.web import fuzz, light, load
from tests.web.servers import in_thread


@pytest.fixture
def url(tmp_path):
    with in_thread(tmp_path / "lab.db") as url:
        yield url


def test_no_request_made_up_from_the_description_is_the_servers_fault(url):
    seen = fuzz.by_description(url, 140, number=11)
    assert sum(seen.values()) >= 100
    assert seen[200] > 25
    assert seen[422] > 25


def test_no_life_with_extreme_values_is_the_servers_fault(url):
    seen = fuzz.lives(url, 22, number=12)
    assert seen[201] >= 5
    assert seen[200] >= 40


def test_nothing_is_lost_when_many_tell_at_once(tmp_path):
    found = load.run(tmp_path / "lab.db", clients=12, seconds=2.0)
    assert len(found.told) >= 12  # each of them one at least, on the slowest machine
    words = found.words(12, 2.0)
    assert "none lost" in words
    assert words.count("times a plain commit of SQLite") == 3
    assert all(len(times) >= 2 for times in (*found.library, *found.alone, found.plain))


def test_pages_and_tells_have_answers_while_plans_are_made(tmp_path):
    found = light.run(tmp_path / "lab.db", 1, 1.0, plans=3, clients=2, body=light.big_plan(5_000))
    assert min(map(len, found.values())) >= 2
    page, tell = light.words_of(found, 3)
    assert "with 3 plans running" in page
    assert "ratio" in tell
