"""The page and the HTTP API: studies in the browser and on other machines.

`create_app` loads on first use, so that a command that is refused is refused at once.
"""

from typing import TYPE_CHECKING

from finalist.extras import EXTRAS, need

if TYPE_CHECKING:
    from finalist.web.app import create_app

need("The page, the API and reports", *EXTRAS["page"], *EXTRAS["charts"])

__all__ = ["create_app"]


def __getattr__(name: str) -> object:
    if name != "create_app":
        raise AttributeError(f"module 'finalist.web' has no attribute {name!r}")
    from finalist.web.app import create_app

    return create_app
