"""Pages from templates; everything that is put into one is escaped."""

from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from finalist import __version__
from finalist.web.csrf import csrf_of

HERE = Path(__file__).parent

environment = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(request: Request, template: str, code: int = 200, **context: Any) -> HTMLResponse:
    """Return a page.

    Templates have besides `context`: `csrf` for the hidden field of that name in every form,
    the status of HTTP as `code`, `has_token` (whether one can sign out), `path` of the request,
    `version`.
    """
    text = environment.get_template(template).render(
        code=code,
        csrf=csrf_of(request),
        has_token=request.app.state.token.hash() is not None,
        path=request.url.path,
        version=__version__,
        **context,
    )
    return HTMLResponse(text.encode("utf-8", "backslashreplace"), status_code=code)
