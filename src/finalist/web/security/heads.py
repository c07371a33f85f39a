"""Heads of requests that mean one thing: what two programs could read differently is refused.

A proxy in front and the server behind it have to agree where a request ends. If they do not, the
end of one request is the beginning of another, which somebody else made up. So lines end with CR
and LF, none is folded, and the length of a body is given once, in one way; everything else is
answered with 400, and the connection is closed.

h11 is lenient about line ends, as old clients were. It takes the lines of a head, and those behind
the last piece of a body, from a buffer of its own; this one looks at them as they are taken, so
that it does not matter in how many packets they came, or what else was in those.
"""

import re
from collections import Counter

import h11
from h11._receivebuffer import ReceiveBuffer

_BARE = re.compile(rb"(?<!\r)\n")
_LENGTH, _PIECES = b"content-length", b"transfer-encoding"


class StrictBuffer(ReceiveBuffer):
    r"""Hands out lines that mean one thing.

    Examples
    --------
    >>> buffer = StrictBuffer()
    >>> buffer += b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"
    >>> buffer.maybe_extract_lines()
    Traceback (most recent call last):
    h11._util.RemoteProtocolError: a line ends with LF alone
    """

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Return the lines up to the first empty one, None if that is not here yet."""
        before = bytes(self)
        lines = super().maybe_extract_lines()
        if lines is not None:
            check_lines(before[: len(before) - len(self)], lines)
        return lines


def check_lines(text: bytes, lines: list[bytearray]) -> None:
    """Refuse lines that could be read in two ways; `text` is what they were taken from."""
    if _BARE.search(text):
        raise h11.RemoteProtocolError("a line ends with LF alone")
    if any(line.startswith((b" ", b"\t")) for line in lines):
        raise h11.RemoteProtocolError("a line goes on in the next one")
    names = Counter(bytes(line.partition(b":")[0]).strip().lower() for line in lines)
    if names[_LENGTH] + names[_PIECES] > 1:
        raise h11.RemoteProtocolError("the length of the body is given more than once")
    for line in lines:
        name, _, value = line.partition(b":")
        if name.strip().lower() == _LENGTH and not value.strip().isdigit():
            raise h11.RemoteProtocolError("the length of the body is no number")
    if names[_PIECES] and lines and lines[0].endswith(b"HTTP/1.0"):
        raise h11.RemoteProtocolError("HTTP/1.0 has no bodies in pieces")
