"""The token of a server: made once, stored as a hash, compared in constant time.

A token has 256 random bits, so that a plain SHA-256 of it can be stored: it cannot be guessed.
"""

import hashlib
import hmac
import ipaddress
import logging
import os
import re
import secrets
import threading
import time
from collections import OrderedDict, deque
from os import PathLike
from pathlib import Path

from finalist.errors import StudyError
from finalist.files import printable
from finalist.study.databases import locate

#: Fewest characters of a token that a person chooses.
MIN_LENGTH = 24
#: Seconds for which a browser stays signed in.
SESSION = 30 * 24 * 3600
#: Sessions kept; beyond that, the oldest session is evicted.
MAX_SESSIONS = 10_000
#: Wrong tokens accepted from one address within a window of so many seconds.
MAX_FAILURES, WINDOW = 10, 60.0
#: Addresses whose failures are kept.
_MAX_ADDRESSES = 10_000
_HASH = re.compile(r"[0-9a-f]{64}")
#: No token has this hash: nobody gets in while the token file cannot be read.
_NOBODY = "-"
_log = logging.getLogger("finalist.web")


def new_token() -> str:
    """Return a new random token."""
    return secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    """Return the hash under which a token is stored.

    Examples
    --------
    >>> hash_of("a token")[:12]
    'e3316e2bafeb'
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def matches(token: str, token_hash: str) -> bool:
    """Return whether this is the token, in constant time."""
    return hmac.compare_digest(hash_of(token), token_hash)


def check_token(token: str) -> None:
    """Reject a token that could be guessed."""
    if len(token) < MIN_LENGTH or not token.isascii() or not token.isprintable() or " " in token:
        raise StudyError(
            f"a token has at least {MIN_LENGTH} printable ASCII characters and no spaces. "
            "--new-token makes a good one."
        )


# ---- where it is stored --------------------------------------------------------------------


def token_file(place: str | PathLike[str]) -> Path | None:
    """Return the file next to the database that holds the hash; None for PostgreSQL."""
    path = locate(place).path
    return None if path is None else path.with_name(path.name + ".token")


def stored_hash(place: str | PathLike[str]) -> str | None:
    """Return the stored hash of a database's token, None if there is none."""
    path = token_file(place)
    return None if path is None or not path.exists() else _read_hash(path)


def _read_hash(path: Path) -> str:
    try:
        text = path.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise StudyError(
            f"{printable(str(path))} cannot be read, so nobody could sign in ({error}). Make "
            "it readable, or make a new token with --new-token."
        ) from error
    if not _HASH.fullmatch(text):
        raise StudyError(
            f"{printable(str(path))} does not hold the hash of a token. Make a new one with "
            "--new-token, or delete the file to do without."
        )
    return text


def store_hash(place: str | PathLike[str], token_hash: str) -> Path:
    """Store the hash of a new token, which invalidates the old one."""
    path = token_file(place)
    if path is None:
        raise StudyError("a token is stored next to a SQLite file, not for PostgreSQL.")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(token_hash + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path


class Token:
    """The token that is valid now.

    The file with its hash is checked on every request and read again when it has changed: making a
    new token locks out everyone who has the old one. A file that disappears changes nothing until
    the next start; one that is corrupted lets nobody in.

    Parameters
    ----------
    file : path, optional
        With the hash, instead of `token_hash`; while it is missing, no token is required.
    """

    def __init__(self, token_hash: str | None = None, file: Path | None = None) -> None:
        if token_hash is not None and file is not None:
            raise StudyError("give the hash of a token or a file with it, not both.")
        self._hash, self._file = token_hash, file
        self._seen: tuple[int, ...] | None = None
        if file is not None and file.exists():
            self._hash, self._seen = _read_hash(file), _identity(file)

    def hash(self) -> str | None:
        """Return the hash of the token, None if none is required."""
        if self._file is not None:
            now = _identity(self._file)
            if now is not None and now != self._seen:
                try:
                    self._hash = _read_hash(self._file)
                except StudyError as error:
                    self._hash = _NOBODY
                    _log.error("%s", error)
                self._seen = now
        return self._hash


def _identity(path: Path) -> tuple[int, ...] | None:
    """Return values that change when a file does, None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


# ---- sessions ----------------------------------------------------------------------------------


class Sessions:
    """Browsers that have signed in.

    The browser keeps a random session key instead of the token; the server keeps a hash of it, in
    memory only: nothing on disk lets anybody in. A restart or a new token ends all sessions.

    Examples
    --------
    >>> sessions = Sessions()
    >>> session = sessions.begin()
    >>> sessions.is_good(session)
    True
    >>> sessions.end(session)
    >>> sessions.is_good(session)
    False
    """

    def __init__(self) -> None:
        self._ends: OrderedDict[str, tuple[float, str | None]] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, token_hash: str | None = None, now: float | None = None) -> str:
        """Return the session key for a browser that presented the token with this hash."""
        session = new_token()
        with self._lock:
            end = (time.time() if now is None else now) + SESSION
            self._ends[hash_of(session)] = end, token_hash
            while len(self._ends) > MAX_SESSIONS:
                self._ends.popitem(last=False)
        return session

    def is_good(
        self, session: str, token_hash: str | None = None, now: float | None = None
    ) -> bool:
        """Return whether a session has not expired and began with the current token."""
        end, given = self._ends.get(hash_of(session), (0.0, None))
        return end > (time.time() if now is None else now) and given == token_hash

    def end(self, session: str) -> None:
        """End a session; copies of its key are worthless then."""
        with self._lock:
            self._ends.pop(hash_of(session), None)


# ---- wrong tokens ----------------------------------------------------------------------------


class Failures:
    """Counts wrong tokens per address."""

    def __init__(self) -> None:
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, address: str) -> int:
        """Return how many seconds an address has to wait before its next try."""
        times = self._times.get(network_of(address))
        if times is None or len(times) < MAX_FAILURES:
            return 0
        left = times[0] + WINDOW - time.monotonic()
        return max(0, int(left) + 1) if left > 0 else 0

    def count(self, address: str) -> None:
        """Count a wrong token."""
        with self._lock:
            times = self._times.setdefault(network_of(address), deque(maxlen=MAX_FAILURES))
            times.append(time.monotonic())
            self._times.move_to_end(network_of(address))
            while len(self._times) > _MAX_ADDRESSES:
                self._times.popitem(last=False)


def network_of(address: str) -> str:
    """Return what one client is likely to own: an IPv4 address, or a /64 network of IPv6.

    Examples
    --------
    >>> network_of("2001:db8::1"), network_of("::ffff:10.0.0.1"), network_of("::1")
    ('2001:db8::/64', '10.0.0.1', '::1')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address) or parsed.is_loopback:
        return str(parsed)
    if parsed.ipv4_mapped is not None:  # on a dual-stack socket
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))
