"""Addresses of this machine: which of them others can reach, and under which names."""

import ipaddress
import socket

from finalist.errors import StudyError

#: Names that always mean this machine.
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only.

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
    """Return the Host names under which clients reach a server at this address."""
    if is_loopback(host):
        return (*LOOPBACK, _in_url(host))
    names = {socket.gethostname().lower(), socket.getfqdn().lower()}
    any_address = host in ("0.0.0.0", "::", "[::]")
    return (*LOOPBACK, *sorted(names), "*.*.*.*" if any_address else _in_url(host).lower())


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, or raise with the reason."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the protocol is named
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host.strip("[]"), port))
        bound.listen(2048)  # clients that connect before the server is ready wait
    except (OSError, OverflowError) as error:
        bound.close()
        raise StudyError(
            f"cannot listen on {host}, port {port}: {getattr(error, 'strerror', None) or error}. "
            "Choose another --port, or stop the program that uses it."
        ) from error
    return bound


def address_of(host: str, bound: socket.socket) -> str:
    """Return the address to open in a browser."""
    shown = "127.0.0.1" if host == "0.0.0.0" else "[::1]" if host in ("::", "[::]") else host
    return f"http://{_in_url(shown)}:{bound.getsockname()[1]}/"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
