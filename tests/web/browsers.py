"""Chromium for tests: the machine's own, never a download."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

#: No word to anybody: nothing is fetched but the pages under test.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> str | None:
    """Return the browser of this machine; CHROMIUM may say which."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, _NAMES)), None)


MISSING = (
    "NO BROWSER: the pages are not tested in one. Get it with 'apt install chromium' (Debian), "
    "'brew install --cask chromium' (macOS), or set CHROMIUM to the path of Chrome or Chromium; "
    "and 'pip install playwright'."
)


@contextmanager
def browser(**settings: Any) -> "Iterator[Browser]":
    """Give a browser, or skip the test and say how to get one."""
    path = find()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.skip(MISSING)
    if path is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=list(FLAGS), **settings)
        try:
            yield opened
        finally:
            opened.close()


def go(locator: "Locator") -> None:
    """Click what leads to another page, and wait until that has arrived."""
    with locator.page.expect_navigation():
        locator.click()
