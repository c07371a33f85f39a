"""Clients of servers in tests: the certificates of the machine are read once."""

import httpx
import pytest


@pytest.fixture(autouse=True, scope="session")
def _one_ssl_context():
    """Read the certificates of the machine once, not for each client: all speak plain HTTP here."""
    context = httpx.create_ssl_context()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx._transports.default.create_ssl_context", lambda **_: context)
        yield
