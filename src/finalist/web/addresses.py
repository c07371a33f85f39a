"""Addresses of this machine: which of them others can reach, and what they are called."""

import ipaddress
import socket

from finalist.errors import StudyError

#: Names of this machine that always mean this machine.
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


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
    """Return a socket that listens; say what is wrong if it cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once only if the protocol is named
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host.strip("[]"), port))
        bound.listen(2048)  # who comes before the server is ready waits
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
