"""The server: uvicorn on one address, which ends open pages when it is told to end."""

import ipaddress
import socket
from types import FrameType

import uvicorn
from fastapi import FastAPI

from finalist.errors import StudyError
from finalist.web.security import LOOPBACK

#: Requests at a time; more are told to come back.
MOST_REQUESTS = 400
#: Seconds for requests under way when the server ends.
_GRACE = 5


class Server(uvicorn.Server):
    """Ends what never ends by itself, pages that wait for news, before it waits for requests."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal to end."""
        close_events(self.config.app)
        super().handle_exit(sig, frame)


def close_events(app: object) -> None:
    """Let all open pages go."""
    events = getattr(getattr(app, "state", None), "events", None)
    if events is not None:
        events.close()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def own_hosts(host: str) -> tuple[str, ...]:
    """Return the names under which a server at this address is called."""
    if is_loopback(host):
        return (*LOOPBACK, _in_url(host))
    names = {socket.gethostname().lower(), socket.getfqdn().lower()}
    any_address = host in ("0.0.0.0", "::", "[::]")
    return (*LOOPBACK, *sorted(names), "*.*.*.*" if any_address else _in_url(host).lower())


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound; say what is wrong if it cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once only if the protocol is named
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host.strip("[]"), port))
    except (OSError, OverflowError) as error:
        bound.close()
        raise StudyError(
            f"cannot listen on {host}, port {port}: {getattr(error, 'strerror', None) or error}. "
            "Give another --port, or end the program that has it."
        ) from error
    return bound


def address_of(host: str, bound: socket.socket) -> str:
    """Return what a person types into the browser."""
    shown = "127.0.0.1" if host == "0.0.0.0" else "[::1]" if host in ("::", "[::]") else host
    return f"http://{_in_url(shown)}:{bound.getsockname()[1]}/"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def make_server(app: FastAPI) -> Server:
    """Return a server for an application; `run(sockets=[...])` serves until a signal."""
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody may say for others where they come from
        limit_concurrency=MOST_REQUESTS,
        timeout_graceful_shutdown=_GRACE,
        h11_max_incomplete_event_size=64 * 2**10,
    )
    return Server(config)
