"""Headers of every response: the browser runs only our code and embeds it nowhere else."""

from collections.abc import Mapping
from typing import Any

#: No inline scripts, no eval, nothing from other sites; forms go to this server only.
CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
#: Responses about studies are private and change; static files are neither.
PRIVATE = "no-store"
FILES = "no-cache"


def cookie_name(kind: str, scope: Mapping[str, Any]) -> str:
    """Return the name of a cookie of this server; browsers share cookies between ports.

    Examples
    --------
    >>> cookie_name("session", {"server": ("127.0.0.1", 8765)})
    'finalist_session_8765'
    """
    server = scope.get("server")
    return f"finalist_{kind}" if server is None else f"finalist_{kind}_{server[1]}"
