"""The token of a server: made once, kept as a hash, compared in constant time.

A token has 256 random bits, so that a plain SHA-256 of it can be kept: there is nothing to guess.
"""

import hashlib
import hmac
import ipaddress
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
from finalist.study.database_files import locate

#: Characters of a token that a person chooses, at least.
SHORTEST = 24
#: Seconds for which a browser stays signed in.
SESSION = 30 * 24 * 3600
#: Wrong tokens from one address, and the seconds in which they are counted.
MOST_FAILURES, WINDOW = 10, 60.0
#: Addresses whose failures are remembered.
_MOST_ADDRESSES = 10_000
_HASH = re.compile(r"[0-9a-f]{64}")


def new_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    """Return what is kept of a token.

    Examples
    --------
    >>> hash_of("a token")[:12]
    'e3316e2bafeb'
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def matches(token: str, token_hash: str) -> bool:
    """Return whether this is the token, in a time that does not depend on it."""
    return hmac.compare_digest(hash_of(token), token_hash)


def check_token(token: str) -> None:
    """Refuse a token that could be guessed."""
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise StudyError(
            f"a token has {SHORTEST} or more characters, plain letters, digits and signs without "
            "spaces. --new-token makes a good one."
        )


# ---- where it is kept ----------------------------------------------------------------------


def token_file(place: str | PathLike[str]) -> Path | None:
    """Return the file beside the database that has the hash; None for PostgreSQL."""
    path = locate(place).path
    return None if path is None else path.with_name(path.name + ".token")


def stored_hash(place: str | PathLike[str]) -> str | None:
    """Return the hash of the token of a database, None if it has none."""
    path = token_file(place)
    if path is None or not path.exists():
        return None
    try:
        text = path.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise StudyError(
            f"{printable(str(path))} cannot be read, so nobody could sign in ({error}). Give "
            "yourself the right to read it, or make a new token with --new-token."
        ) from error
    if not _HASH.fullmatch(text):
        raise StudyError(
            f"{printable(str(path))} holds no hash of a token. Make a new one with --new-token, or "
            "delete the file to do without."
        )
    return text


def store_hash(place: str | PathLike[str], token_hash: str) -> Path:
    """Keep the hash of a new token; the old one is no longer good."""
    path = token_file(place)
    if path is None:
        raise StudyError("a token is kept beside a SQLite file, not for PostgreSQL.")
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


# ---- browsers that have signed in ------------------------------------------------------------


def new_session(token_hash: str, now: float | None = None) -> str:
    """Return what a browser keeps instead of the token; a new token ends it."""
    end = str(int((time.time() if now is None else now) + SESSION))
    return f"{end}.{_seal(token_hash, end)}"


def session_is_good(session: str, token_hash: str, now: float | None = None) -> bool:
    """Return whether a browser has signed in, not too long ago."""
    end, _, seal = session.partition(".")
    good = hmac.compare_digest(_seal(token_hash, end).encode(), seal.encode())
    whole = end.isascii() and end.isdigit() and len(end) < 15
    return good and whole and int(end) > (time.time() if now is None else now)


def _seal(token_hash: str, end: str) -> str:
    content = f"session until {end}".encode("utf-8", "surrogatepass")
    return hmac.new(bytes.fromhex(token_hash), content, hashlib.sha256).hexdigest()


# ---- wrong tokens ----------------------------------------------------------------------------


class Failures:
    """Counts wrong tokens by the address they come from."""

    def __init__(self) -> None:
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, address: str) -> int:
        """Return for how many seconds an address may not try again, 0 if it may."""
        times = self._times.get(_network(address))
        if times is None or len(times) < MOST_FAILURES:
            return 0
        left = times[0] + WINDOW - time.monotonic()
        return max(0, int(left) + 1) if left > 0 else 0

    def count(self, address: str) -> None:
        """Remember a wrong token."""
        with self._lock:
            times = self._times.setdefault(_network(address), deque(maxlen=MOST_FAILURES))
            times.append(time.monotonic())
            self._times.move_to_end(_network(address))
            while len(self._times) > _MOST_ADDRESSES:
                self._times.popitem(last=False)


def _network(address: str) -> str:
    """Return what one person has: an address, or a whole network of the new kind."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return str(parsed)
    return str(ipaddress.ip_network((parsed, 64), strict=False))
