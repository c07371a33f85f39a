"""What servers and clients of all tests share: workers, forecasts of a few draws, certificates."""

import httpx
import pytest

from tests.web import quick
from tests.web.servers import SharedWorkers


@pytest.fixture(autouse=True, scope="session")
def _one_ssl_context():
    """Read the certificates of the machine once, not for each client: all speak plain HTTP here."""
    context = httpx.create_ssl_context()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx._transports.default.create_ssl_context", lambda **_: context)
        yield


@pytest.fixture(autouse=True, scope="session")
def _shared_workers():
    """Keep the workers of a server for the next one, and let them forecast from a few draws."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("finalist.web.app.Workers", SharedWorkers)
        patch.setattr("finalist.web.workers.jobs.status", quick.status)
        yield
    for worker in SharedWorkers.kept:
        worker.end()


@pytest.fixture(autouse=True)
def _few_draws(few_draws: None) -> None:
    """Forecast from as few in this process, so that both agree."""
