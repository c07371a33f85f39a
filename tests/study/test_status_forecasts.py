"""Forecasts are simulated when somebody looks, for the moment of the status, and kept."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from finalist.client.values import parse_status
from finalist.study import Study, forecasts
from finalist.study.handles import status_at
from tests.cli.common import run
from tests.study.lab import ARMS, NOISY, nearly_tied


@pytest.fixture
def study(tmp_path: Path):
    with Study.create(tmp_path / "lab.db", "lab", ARMS, sigma=NOISY, seed=1) as made:
        lab = nearly_tied()
        for _ in range(4):
            made.tell(lab.rewards(made.ask(24)))
        yield made


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the pulls so far of every forecast that is simulated; a fork with a margin has 0."""
    calls: list[int] = []
    forecast = vars(forecasts)["forecast"]

    def counted(run, problem, fit, done, **words):
        calls.append(done)
        return forecast(run, problem, fit, done, **words)

    monkeypatch.setattr(forecasts, "forecast", counted)
    return calls


def own(simulated: list[int]) -> list[int]:
    return [done for done in simulated if done > 0]


def test_nothing_is_simulated_before_somebody_looks(study, simulated):
    found = study.status()
    assert found.verdict == "continue"
    assert repr(found)
    assert found == study.status()
    assert simulated == []
    assert found.forecast is not None
    assert own(simulated) == [96]


def test_what_was_simulated_is_kept_until_the_next_event(study, simulated):
    first = study.status()
    words = str(first)
    assert first.forecast.words() in words
    assert study.status().forecast is first.forecast
    assert study.status().to_dict()["forecast"] == first.to_dict()["forecast"]
    assert own(simulated) == [96]
    study.note("an event")
    again = study.status().forecast
    assert own(simulated) == [96, 96]
    assert again is not first.forecast
    study.tell(nearly_tied().rewards(study.ask(24)))
    assert study.status().forecast is not None
    assert own(simulated) == [96, 96, 120]


def test_a_status_forecasts_from_its_own_moment_however_late_somebody_looks(study, simulated):
    early, late = study.status(), study.status()
    expected = pickle.loads(pickle.dumps(late)).forecast.pulls
    with Study.open(study._log.storage.where, "lab") as other:
        before = other.status()
        lab = nearly_tied()
        for _ in range(3):
            study.tell(lab.rewards(study.ask(24)))
        other.status(forecast=False)  # it has read on
        assert before.forecast is not None
        np.testing.assert_array_equal(before.forecast.pulls, expected)
    np.testing.assert_array_equal(early.forecast.pulls, expected)
    assert set(own(simulated)) == {96}


def test_a_pickled_status_has_what_was_simulated(study, simulated):
    found = study.status()
    copy = pickle.loads(pickle.dumps(found))
    count = len(simulated)
    np.testing.assert_array_equal(copy.forecast.pulls, found.forecast.pulls)
    assert copy.margins == found.margins
    assert copy.saving == found.saving
    assert len(simulated) == count


def test_a_server_s_worker_simulates_itself(study, simulated):
    _, found = status_at(study)
    assert own(simulated) == [96]
    assert found.forecast is not None
    assert own(simulated) == [96]


def test_a_status_without_a_forecast_has_none(study, simulated):
    found = study.status(forecast=False)
    assert (found.forecast, found.margins, found.saving) == (None, (), None)
    assert found.to_dict()["forecast"] is None
    assert parse_status(found.to_dict()) == found
    assert simulated == []


@pytest.mark.parametrize(
    ("words", "count"), [((), 1), (("--no-forecast",), 0), (("--format", "csv"), 0)]
)
def test_the_command_simulates_only_what_it_prints(study, simulated, words, count):
    done = run("status", "lab", "--db", study._log.storage.where, *words)
    assert done.exit_code == 10
    assert ("Forecast: " in done.stdout) is (words == ())
    assert len(own(simulated)) == count
