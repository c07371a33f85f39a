"""The reference page of the API, made from its OpenAPI description."""

import json
import shlex
from typing import Any

from fastapi import APIRouter, Request, Response

from finalist.web.depends import ERRORS
from finalist.web.render import render

router = APIRouter(include_in_schema=False)
_TITLES = {
    "studies": "Studies and their lives",
    "measuring": "Ask and tell",
    "looking": "Look, and take everything with you",
    "planning": "Before a study",
    "events": "News",
}
ERROR_WORDS = [(status, str(about["description"])) for status, about in ERRORS.items()]


@router.get("/docs")
def reference(request: Request) -> Response:
    """Show what the API can do."""
    base = str(request.base_url).rstrip("/")
    groups = calls_of(request.app.openapi(), base)
    return render(request, "reference.html", base=base, groups=groups, errors=ERROR_WORDS)


def calls_of(description: dict[str, Any], base: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return what the API can do, in groups with a title.

    Parameters
    ----------
    description : dict
        The description for programs (OpenAPI).
    base : str
        The address of the server, for examples.
    """
    groups: dict[str, list[dict[str, Any]]] = {tag: [] for tag in _TITLES}
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            call = _call(description, base, method.upper(), path, operation)
            groups[operation["tags"][0]].append(call)
    return [(_TITLES[tag], calls) for tag, calls in groups.items()]


def _call(
    description: dict[str, Any], base: str, method: str, path: str, operation: dict[str, Any]
) -> dict[str, Any]:
    example = _example(description, operation)
    return {
        "method": method,
        "path": path,
        "words": operation["description"],
        "parameters": [
            {
                "name": parameter["name"],
                "where": parameter["in"],
                "words": parameter.get("description", ""),
                "required": parameter.get("required", False),
            }
            for parameter in operation.get("parameters", [])
        ],
        "example": None if example is None else json.dumps(example, indent=2),
        "command": _command(base, method, path, operation, example),
    }


def _example(description: dict[str, Any], operation: dict[str, Any]) -> Any:
    """Return a body to send, None if there is none or it is a table."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    name = schema.get("$ref", "").rpartition("/")[2]
    examples = description["components"]["schemas"].get(name, {}).get("examples", [None])
    return examples[0]


def _command(base: str, method: str, path: str, operation: dict[str, Any], example: Any) -> str:
    """Return the same as a command to copy."""
    words = ["curl"] if method == "GET" else ["curl", "-X", method]
    if path.endswith("/events"):
        words.append("-N")
    if example is not None:
        words += ["-H", "Content-Type: application/json", "-d", json.dumps(example)]
    elif "text/csv" in operation.get("requestBody", {}).get("content", {}):
        words += ["-H", "Content-Type: text/csv", "--data-binary", "@table.csv"]
    address = base + path.replace("{number}", "1").replace("{pull}", "17")
    return shlex.join([*words, address])
