"""Settings for every test; with FINALIST_SHAPES=1 array shapes in annotations are checked too."""

import gc
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from hypothesis import settings

from tests.study.servers import start_postgresql

settings.register_profile("finalist", deadline=None, derandomize=True)
settings.load_profile("finalist")

# A shell starts `make test &` with Ctrl-C switched off, for all processes that tests start too.
signal.signal(signal.SIGINT, signal.default_int_handler)

if os.environ.get("FINALIST_SHAPES"):
    from jaxtyping import install_import_hook

    import tests.typechecker  # noqa: F401  (the hook looks it up by name)

    # Everything but the command line and the compiled kernels, which the hook would break.
    SOURCE = Path(__file__).parents[1] / "src"
    FILES = [path.relative_to(SOURCE).with_suffix("") for path in SOURCE.rglob("*.py")]
    MODULES = [
        ".".join(file.parts)
        for file in sorted(FILES)
        if not ("cli" in file.parts or file.name.startswith("__"))
        and not any(part.endswith("kernels") for part in file.parts)
    ]
    install_import_hook(MODULES, "tests.typechecker.checked")


# Garbage collections took a tenth of the time of tests: there is none while everything is imported,
# then few of all objects, and they leave out what imports made.
gc.disable()


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 20, 100)
    gc.enable()


@pytest.fixture
def few_draws(monkeypatch):
    """Make forecasts from 3 draws instead of 20: most of the time of a status is that.

    `tests/unit/test_planning.py` tests what forecasts say. Other processes are not touched; for
    workers of servers there is `tests/web/quick.py`.
    """
    from finalist.planning import forecast

    monkeypatch.setitem(forecast.__kwdefaults__, "draws", 3)


@pytest.fixture
def few_runs(monkeypatch):
    """Cut simulations and plans of a page or an example to 5 runs, its strategy's trials to 60.

    It is to run and to be right; what many runs show is in `tests/statistical`. With 60 runs a
    strategy with a quarter of its widths is still caught.
    """
    import finalist as fl
    from finalist.testing.rules_of_errors import TRIALS

    def fewer(function, word):
        def few(*given, **words):
            return function(*given, **{**words, word: min(words.get(word, 5), 5), "n_jobs": 1})

        return few

    monkeypatch.setattr(fl, "simulate", fewer(fl.simulate, "runs"))
    for name in ("plan", "model_prices", "margin_prices"):
        monkeypatch.setattr(fl, name, fewer(getattr(fl, name), "draws"))
    for name, trial in TRIALS.items():
        monkeypatch.setitem(TRIALS, name, replace(trial, runs=min(trial.runs, 60)))


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Start a PostgreSQL of this process's own; return an address with {} for the database."""
    try:
        started = start_postgresql()
    except Exception as error:
        pytest.skip(f"NOTHING IS TESTED ON POSTGRESQL: the server does not start: {error!r}")
    try:
        _ask(started.get_uri(), "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
        yield started.get_uri(database="{}")
    finally:
        started.cleanup()


@pytest.fixture(scope="session")
def _one_database(server: str) -> str:
    """Make one database for all tests: making and dropping one takes a large part of a second."""
    name = f"study_{uuid4().hex}"
    _ask(server.format("postgres"), f"CREATE DATABASE {name}")
    return name


@pytest.fixture
def postgresql(server: str, _one_database: str) -> Iterator[str]:
    """Return the address of an empty database."""
    yield server.format(_one_database)
    others = f"FROM pg_stat_activity WHERE datname = '{_one_database}'"
    _ask(server.format("postgres"), f"SELECT pg_terminate_backend(pid) {others}")
    _ask(server.format(_one_database), "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")


def _ask(address: str, *queries: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for query in queries:
            connection.execute(query)


#: How reasons begin for which tests are left out that should not be.
LOUD = ("NO BROWSER", "NO READ-ONLY MOUNT", "NO OTHER USER", "NOTHING IS TESTED")


def pytest_terminal_summary(terminalreporter):
    """Say loudly, once, that tests were left out because the machine lacks something."""
    reasons = {
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple) and any(word in report.longrepr[2] for word in LOUD)
    }
    for reason in sorted(reasons):
        terminalreporter.write_sep("!", "tests left out", yellow=True, bold=True)
        terminalreporter.write_line(reason, yellow=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the place of a database that is yet to be made, on both databases in turn."""
    if request.param == "sqlite":
        return str(tmp_path / "lab.db")
    address: str = request.getfixturevalue("postgresql")
    return address
