"""The short version of `make validate`: every strategy in its default form, up to 100 runs."""

import pytest

from finalist.lab.store import Store
from finalist.strategies import STRATEGIES, promise_of
from tests.statistical.validity import INSTANCES, TooSmall, measure, strategies

#: 14 errors of 100 are too many for 0.05; a radius three times too small makes 48 of them.
RUNS = 100
#: Uniform allocation takes 0.1 s a run. Of 40, 8 errors are too many.
FEWER_RUNS = {"uniform": 40}
PROMISING = [
    name
    for name, cls in STRATEGIES.items()
    if name != "gauntlet" and promise_of(cls) == "confidence"
]
BY_NAME = {instance.name: instance for instance in INSTANCES}


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "validity.sqlite") as opened:
        yield opened


@pytest.mark.parametrize("instance", BY_NAME)
@pytest.mark.parametrize("name", PROMISING)
def test_delta_is_kept(name, instance, store):
    case = BY_NAME[instance]
    forms = [strategy for strategy in strategies(case) if strategy.name == name]
    if not forms:
        pytest.skip("the oracle knows that these arms are tied")
    claim = measure(store, case, forms[0], FEWER_RUNS.get(name, RUNS))
    assert claim.kept, claim


def test_a_radius_three_times_too_small_is_caught(store):
    assert not measure(store, BY_NAME["exactly tied"], TooSmall(), RUNS).kept
    assert measure(store, BY_NAME["exactly tied"], TooSmall(factor=1.0), RUNS).kept


def test_a_part_that_is_measured_again_goes_into_the_table(tmp_path):
    from tests.statistical.gauntlet_validity import merged

    table, made = tmp_path / "table.md", "`make validate`, finalist 1."
    header = "| case | strategy | delta | runs | rules |"
    assert merged(table, made, header, ["| a | g | 0.1 | 5 | 2 |"]) == ["| a | g | 0.1 | 5 | 2 |"]
    rows = ["| a | g | 0.1 | 5 | 2 |", "| a | h | 0.1 | 6 | 2 |"]
    table.write_text("\n".join(["# T", "", made, "", header, "|---|", *rows, ""]))
    new = ["| a | g | 0.1 | 7 | 3 |", "| b | g | 0.1 | 8 | 3 |"]
    assert merged(table, made, header, new) == [new[0], rows[1], new[1]]
    assert merged(table, made.replace("1", "2"), header, new) == new
    assert merged(table, made, header.replace("delta", "q"), new) == new
