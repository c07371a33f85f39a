"""A place for studies: a SQLite file, and a real PostgreSQL that is started for the tests."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from tests.study.servers import start_postgresql


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


@pytest.fixture
def postgresql(server: str) -> Iterator[str]:
    """Return the address of an empty database."""
    name = f"study_{uuid4().hex}"
    _ask(server.format("postgres"), f"CREATE DATABASE {name}")
    yield server.format(name)
    _ask(server.format("postgres"), f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the place of a database that is yet to be made, on both databases in turn."""
    if request.param == "sqlite":
        return str(tmp_path / "lab.db")
    address: str = request.getfixturevalue("postgresql")
    return address


def _ask(address: str, *queries: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for query in queries:
            connection.execute(query)
