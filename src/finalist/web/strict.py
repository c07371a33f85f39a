"""Unambiguous JSON: no NaN, no infinite numbers, no repeated keys, no broken Unicode."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from anyio.to_thread import run_sync
from fastapi import Request
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response

from finalist.web.errors import RefusedError

#: Bodies of so many bytes or more are parsed in a thread.
LARGE = 100_000
#: An escaped surrogate, which may lack its other half.
_SURROGATE = re.compile(rb"\\u[dD][89abcdefABCDEF]")


def read_json(body: bytes) -> Any:
    """Parse JSON; raises ValueError with the reason.

    Examples
    --------
    >>> read_json(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ValueError: the key 'a' is repeated
    """
    try:
        text = body.decode("utf-8")
        found = json.loads(
            text, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite
        )
        if _SURROGATE.search(body):
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        raise ValueError("a text is not valid Unicode") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at character {error.pos}") from None
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice[:60]!r} is repeated")
    return found


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


class StrictRequest(Request):
    """A request whose body is parsed by `read_json`."""

    async def json(self) -> Any:
        """Return the parsed body."""
        body = await self.body()
        try:
            # A large body must not hold up other requests.
            return read_json(body) if len(body) < LARGE else await run_sync(read_json, body)
        except ValueError as error:
            raise HTTPException(422, f"the body is not valid JSON: {error}.") from None


class StrictRoute(APIRoute):
    """A route whose bodies are JSON and declared as such."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, behind a check of the content type."""
        handle = super().get_route_handler()
        takes_json = self.body_field is not None

        async def handle_strictly(request: Request) -> Response:
            if takes_json:
                kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
                if kind != "application/json":
                    raise RefusedError(
                        415,
                        "content type",
                        "the body is not declared as JSON.",
                        "Send it with 'Content-Type: application/json'.",
                    )
            return await handle(StrictRequest(request.scope, request.receive))

        return handle_strictly
