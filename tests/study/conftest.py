"""Settings for all tests of studies."""

import pytest


@pytest.fixture(autouse=True)
def _few_draws(few_draws: None) -> None:
    """Forecast from a few draws in every test here."""
