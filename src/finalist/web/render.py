"""Pages from templates; all values are escaped."""

from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from finalist import __version__
from finalist.web.plain import plain

HERE = Path(__file__).parent


def help_on(topic: str, words: str) -> Markup:
    """Return a link to a topic of the help, in a tab of its own: what is typed stays.

    Examples
    --------
    >>> help_on("sigma", "Which <one>?").split(" target=")[0]
    Markup('<a href="/help#sigma"')
    """
    link = (
        '<a href="/help#{}" target="_blank" rel="noopener">{}'
        '<span class="hidden"> (in a new tab)</span></a>'
    )
    return Markup(link).format(topic, words)


environment = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
environment.filters["plain"] = plain
environment.globals["help_on"] = help_on
environment.globals["file_types"] = ".csv,.tsv,.txt,.xlsx,.ods,.parquet,text/csv,text/plain"


def render(request: Request, template: str, code: int = 200, **context: Any) -> HTMLResponse:
    """Return a page.

    Besides `context`, templates get the HTTP status as `code`, `has_token` (whether one can sign
    out), the request's `path`, and `version`.
    """
    text = environment.get_template(template).render(
        code=code,
        has_token=request.app.state.token.hash() is not None,
        path=request.url.path,
        version=__version__,
        **context,
    )
    return HTMLResponse(text.encode("utf-8", "backslashreplace"), status_code=code)
