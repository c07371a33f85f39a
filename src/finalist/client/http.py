"""Requests to a server: JSON in both directions, errors as those of the library."""

import itertools
import json
import random
import socket
import ssl
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from finalist import errors
from finalist.errors import FinalistError, RemoteError

#: Seconds before the first retry, and at most between later ones; each wait doubles.
FIRST_WAIT, MAX_WAIT = 0.1, 5.0
#: Responses of a server, or of a proxy in front of it, that are worth a retry.
_AGAIN = (502, 503, 504)
_PREFIX = "/api/v1"


class Http:
    """Talks to one server, over a new connection for each request.

    Parameters
    ----------
    timeout, patience : float
        Seconds for one response, and for all tries together.
    """

    def __init__(self, url: str, token: str | None, timeout: float, patience: float) -> None:
        parts = _split(url)
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._parts, self._token = parts, token
        self._timeout, self._patience = timeout, patience

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """Read something."""
        return self._request("GET", path, query, repeat=True)

    def delete(self, path: str, **query: str) -> dict[str, Any]:
        """Delete something."""
        return self._request("DELETE", path, query)

    def post(
        self,
        path: str,
        body: Any,
        headers: Mapping[str, str] | None = None,
        *,
        repeat: bool = False,
    ) -> dict[str, Any]:
        """Change something; `repeat` if that is idempotent."""
        content = None if body is None else json.dumps(_plain(body), allow_nan=False).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        return self._request("POST", path, {}, content, sent, repeat=repeat)

    def send(
        self, path: str, content: bytes, headers: Mapping[str, str], **query: str
    ) -> dict[str, Any]:
        """Send a file, its type among the headers; the request may be repeated."""
        return self._request("POST", path, query, content, headers, repeat=True)

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        repeat: bool = False,
    ) -> dict[str, Any]:
        """Retry until there is a response, or until a retry could do harm."""
        target = f"{self._parts.path.rstrip('/')}{_PREFIX}{quote(path)}"
        target += f"?{urlencode(query)}" if query else ""
        sent = {"Accept": "application/json", "Connection": "close", **(headers or {})}
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        until = time.monotonic() + self._patience
        for tries in itertools.count():
            wait, late = min(FIRST_WAIT * 2**tries, MAX_WAIT), time.monotonic() >= until
            try:
                status, answer, after = self._once(method, target, content, sent)
            except (OSError, HTTPException) as error:
                never_arrived = isinstance(error, ConnectionRefusedError)
                hopeless = isinstance(error, socket.gaierror | ssl.SSLError)  # with this address
                if late or hopeless or not (repeat or never_arrived):
                    raise self._lost(error, repeat or never_arrived) from error
            else:
                if status < 400:
                    return answer
                not_done = status == 503 and after is not None  # as our own servers do
                again = repeat and status in _AGAIN and answer.get("error") != "DeadlineError"
                if late or not (not_done or again):
                    raise _error(status, answer, self.url)
                wait = max(wait, min(after or 0.0, MAX_WAIT))
            time.sleep(wait * random.uniform(0.5, 1.0))
        raise AssertionError

    def _once(
        self, method: str, target: str, content: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, dict[str, Any], float | None]:
        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        assert self._parts.hostname is not None
        connection = kind(self._parts.hostname, self._parts.port, timeout=self._timeout)
        try:
            connection.request(method, target, content, dict(headers))
            response = connection.getresponse()
            text, after = response.read(), response.getheader("Retry-After")
        finally:
            connection.close()
        try:
            answer = json.loads(text)
        except ValueError:
            answer = {"error": "", "message": text[:200].decode("utf-8", "replace")}
        if not isinstance(answer, dict):
            raise RemoteError(
                f"{self.url} is not a finalist server: its response is not an object."
            )
        seconds = float(after) if after is not None and after.isdigit() else None
        return response.status, answer, seconds

    def _lost(self, error: Exception, harmless: bool) -> RemoteError:
        detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        advice = (
            "Check the address and that 'finalist serve' runs there; then try again."
            if harmless
            else "This may or may not have been done: look at the study before you repeat it."
        )
        return RemoteError(f"no response from {self.url} ({detail}). {advice}")


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment or parts.username:
        raise RemoteError(f"url is {url!r}; it must look like http://lab-pc:8765.")
    return parts


def _error(status: int, answer: Mapping[str, Any], url: str) -> FinalistError:
    """Return the error that the library would have raised."""
    kind = getattr(errors, str(answer.get("error", "")), None)
    words = [str(answer[word]) for word in ("message", "remedy") if answer.get(word)]
    text = " ".join(words) or f"{url} responded with status {status}."
    if isinstance(kind, type) and issubclass(kind, FinalistError):
        return kind(text)
    if status == 422:
        return errors.StudyError(text)
    return RemoteError(f"{url} rejected the request: {text}" if status < 500 else f"{url}: {text}")


def _plain(value: Any) -> Any:
    """Return a value with NumPy numbers as Python numbers."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") and not isinstance(value, str) else value
