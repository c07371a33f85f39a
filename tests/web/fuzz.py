"""Requests that nobody would send: by the description of the API, and from lives gone wrong.

No answer may be the server's fault (a status of 500 or more), and every error has words.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import quote

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode

from finalist.web.depends import ODS, XLSX
from tests.web.servers import api, new_study

#: Operations that go on for ever.
_ENDLESS = "/events"
_MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


def check(answer: httpx.Response) -> int:
    """Fail if the server did."""
    request = answer.request
    sent = (request.method, str(request.url)[:300], request.content[:2000])
    assert answer.status_code < 500, (answer.status_code, answer.text[:500], sent)
    assert answer.headers["content-security-policy"], sent
    if answer.status_code >= 400:
        content = answer.json()
        assert content["message"], sent
        assert content["error"], sent
        assert content["error"] != "arithmetic", sent  # the library must refuse by itself
        assert len(answer.content) < 6000, sent
    return answer.status_code


# ---- by the description ------------------------------------------------------------------------


def by_description(url: str, cases: int, number: int = 0) -> Counter[int]:
    """Send about so many requests that schemathesis makes up; return how often each status came."""
    description = httpx.get(f"{url}/api/v1/openapi.json", trust_env=False).json()
    found = schemathesis.openapi.from_dict(description).get_all_operations()
    all_: list[Any] = [cast(Any, result).ok() for result in found]
    operations = [operation for operation in all_ if not operation.path.endswith(_ENDLESS)]
    each = max(1, -(-cases // (len(operations) * len(_MODES))))
    seen: Counter[int] = Counter()
    with api(url) as client:
        targets = [new_study(client, f"target {number} {i}") for i in range(3)]
        for target in targets:
            client.post(f"/studies/{target}/ask", json={"size": 6}).raise_for_status()
        for operation in operations:
            for mode in _MODES:
                _send(client, url, operation, mode, each, targets, number, seen)
    return seen


def _send(
    client: httpx.Client,
    url: str,
    operation: Any,
    mode: GenerationMode,
    each: int,
    targets: list[int],
    number: int,
    seen: Counter[int],
) -> None:
    rng = random.Random(f"{number} {operation.label} {mode}")

    @seed(number)
    @settings(
        max_examples=each,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        path = {name: str(value) for name, value in (case.path_parameters or {}).items()}
        if "number" in path and rng.random() < 0.8:
            path["number"] = str(rng.choice(targets))
        if "pull" in path and rng.random() < 0.8:
            path["pull"] = str(rng.randint(1, 8))
        place = case.path
        for name, value in path.items():
            place = place.replace("{" + name + "}", quote(value, safe=""))
        try:
            answer = client.request(
                case.method,
                url + place,
                params=_texts(case.query),
                headers={**_texts(case.headers), **_content_type(case)},
                content=_content(case),
            )
        except (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeError):
            return  # no client can send this
        seen[check(answer)] += 1

    send()


@schemathesis.serializer(XLSX, ODS)
def _bytes(_: Any, value: Any) -> bytes:
    """Send made-up workbooks as they are."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def _texts(values: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in (values or {}).items()}


def _content_type(case: Any) -> dict[str, str]:
    return {} if case.media_type is None else {"Content-Type": case.media_type}


def _content(case: Any) -> bytes | None:
    body = case.body
    if isinstance(body, bytes):
        return body
    if type(body).__name__ == "NotSet":
        return None
    if case.media_type == "text/csv" and isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    if isinstance(body, dict) and "gap" in body:  # a plan: not for hours
        body = {**body, "draws": 1, "max_pulls": 500}
    try:
        return json.dumps(body).encode()
    except (TypeError, ValueError):
        return str(body).encode("utf-8", "replace")


# ---- lives gone wrong --------------------------------------------------------------------------

_NUMBERS = (0.0, -0.0, 5e-324, 1e-300, 1e-100, 1e-8, 0.1, 0.5, 1.0, 3.0, 1e8, 1e100, 1e150, 1e300)
_WORDS = (
    "a",
    "<script>alert(1)</script>",
    "'; DROP TABLE studies; --",
    "=cmd|' /C calc'!A0",
    "../../etc/passwd",
    "a/b",
    "%2e%2e",
    "\u202egnp.exe",
    "💥" * 20,
    "x" * 900,
    "{{ 7 * 7 }}",
    "line\nbreak\r\nX: y",
    "\x1b[31m",
    '"',
)


def lives(url: str, count: int, number: int = 0) -> Counter[int]:
    """Lead so many lives with extreme values; return how often each status came."""
    rng, seen = random.Random(number), Counter[int]()
    with api(url) as client:
        for life in range(count):
            for answer in _life(client, rng, f"life {number} {life}"):
                seen[check(answer)] += 1
    return seen


def _number(rng: random.Random) -> float:
    return rng.choice(_NUMBERS) * rng.choice((1, 1, 1, -1))


def _arms(rng: random.Random) -> dict[str, Any]:
    count, columns = rng.choice((1, 2, 3, 5, 9)), rng.choice((1, 2, 3))
    names = [f"{rng.choice(_WORDS)} {i}" for i in range(count)]
    if rng.random() < 0.3:
        return {"names": names}
    tame = rng.random() < 0.5
    draw = (lambda: rng.gauss(0, 1)) if tame else (lambda: _number(rng))
    return {"names": names, "features": [[draw() for _ in range(columns)] for _ in range(count)]}


def _life(client: httpx.Client, rng: random.Random, name: str) -> Iterator[httpx.Response]:
    body: dict[str, Any] = {
        "name": f"{rng.choice(_WORDS)} {name}",
        "arms": _arms(rng),
        "noise": rng.choice(("gaussian", "gaussian", "sub-gaussian", "bernoulli")),
        "delta": rng.choice((0.05, 0.05, 1e-300, 1e-9, 0.999)),
        "epsilon": rng.choice((0.0, 0.0, 5e-324, 0.1, 1e300)),
        "objective": rng.choice(("max", "min")),
        "strategy": rng.choice(
            ("gauntlet",) * 4 + ("uniform", "xy-adaptive", "xy", "g", "fully-adaptive", "oracle")
        ),
        "seed": rng.choice((0, 1, 2**53 - 1)),
    }
    if body["noise"] != "bernoulli":
        body["sigma"] = rng.choice((1.0, 1.0, None, *_NUMBERS))
    if rng.random() < 0.4:
        body["budget"] = rng.choice((1, 3, 50, 2**53 - 1))
    if rng.random() < 0.3:
        body["max_pulls_per_arm"] = rng.choice((1, 2, 2**53 - 1))
    made = client.post("/studies", json=body)
    yield made
    if made.status_code != 201:
        return
    path = f"/studies/{made.json()['number']}"
    pulls: list[int] = [1]
    for _ in range(8):
        step = rng.choice(("ask", "ask", "tell", "tell", "pull", "look", "other", "arms"))
        if step == "ask":
            size = rng.choice((1, 2, 6, 20, 500))
            worker = rng.choice((None, None, *_WORDS))
            answer = client.post(f"{path}/ask", json={"size": size, "worker": worker})
            if answer.status_code == 200:
                pulls = [p["pull_id"] for p in answer.json()["pulls"]] or pulls
        elif step == "tell":
            told = [{"pull_id": p, "reward": _reward(rng, body)} for p in pulls]
            answer = client.post(f"{path}/tell", json={"results": told})
        elif step == "pull":
            verb = rng.choice(("void", "missing", "amend"))
            sent: dict[str, Any] = {"reason": rng.choice(_WORDS)}
            if verb == "amend":
                sent["reward"] = _reward(rng, body)
            answer = client.post(f"{path}/pulls/{rng.choice(pulls)}/{verb}", json=sent)
        elif step == "arms":
            if rng.random() < 0.5:
                answer = client.post(f"{path}/add", json=_arms(rng))
            else:
                names = rng.sample(body["arms"]["names"], 1)
                answer = client.post(f"{path}/withdraw", json={"names": names})
        elif step == "look":
            what = rng.choice(("status", "status?forecast=false", "evidence", "export.json"))
            answer = client.get(f"{path}/{what}")
        else:
            answer = rng.choice(
                (
                    lambda: client.post(f"{path}/stop", json={"reason": rng.choice(_WORDS)}),
                    lambda: client.post(f"{path}/resume"),
                    lambda: client.post(f"{path}/undo", json={}),
                    lambda: client.post(f"{path}/note", json={"text": rng.choice(_WORDS)}),
                    lambda: client.post(f"{path}/fork", json={"name": f"{name} f", "until": 1}),
                    lambda: client.get(f"{path}/open.csv"),
                )
            )()
        yield answer
    yield client.get(f"{path}/status?forecast=false")
    yield client.get(f"{path}/export.csv")


def _reward(rng: random.Random, body: dict[str, Any]) -> float:
    if body["noise"] == "bernoulli" and rng.random() < 0.9:
        return float(rng.random() < 0.5)
    return _number(rng) if rng.random() < 0.3 else rng.gauss(0, 1)
