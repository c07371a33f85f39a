"""The page and the HTTP API: studies in the browser and on other machines."""

from finalist.web.app import create_app

__all__ = ["create_app"]
