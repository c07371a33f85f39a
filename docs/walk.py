"""The walk of somebody new: from the first screen to a first verdict, click by click.

    python -m docs.walk [RUNS]

Walks through the example in the machine's own Chromium as somebody does who clicks what the page
offers, prints the clicks and how long the page took, and pictures the first walk for the
documentation (docs/images/page-walk.webp). A reader's own time comes on top.
"""

import base64
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from docs.before_after import HERE, join
from tests.web.browsers import browser
from tests.web.servers import in_thread

#: What the picture shows of a page.
SHOWN = {"width": 1000, "height": 900}
MOST = 30


def walk(page: Any, url: str, pictures: list[str]) -> tuple[int, float]:
    """Click through an example to its verdict; return the clicks, and the seconds of the page."""

    def look() -> None:
        pictures.append(base64.b64encode(page.screenshot()).decode())

    seconds, clicks = 0.0, 0

    def click(name: str) -> None:
        nonlocal seconds, clicks
        begun = time.perf_counter()
        with page.expect_navigation(wait_until="domcontentloaded"):
            page.get_by_role("button", name=name).click()
        seconds += time.perf_counter() - begun
        clicks += 1

    begun = time.perf_counter()
    page.goto(url)
    seconds += time.perf_counter() - begun
    look()
    click("Try an example")
    look()
    while page.get_by_role("button", name="Simulate a batch").count() and clicks < MOST:
        click("Simulate a batch")
        if clicks == 3:
            look()
    look()
    return clicks, seconds


def main(runs: int) -> None:
    """Walk some times, each on a server of its own with no studies."""
    found, first = [], list[str]()
    with browser() as chromium:
        for run in range(runs):
            pictures: list[str] = []
            with tempfile.TemporaryDirectory() as folder, in_thread(Path(folder) / "lab.db") as url:
                page = chromium.new_page(viewport=SHOWN)
                page.set_default_timeout(120_000)
                found.append(walk(page, url, pictures))
                page.close()
            first = first or pictures
            print(f"walk {run + 1}: {found[-1][0]} clicks, {found[-1][1]:.1f} s of the page")
        join(chromium.new_page(), first, HERE / "images" / "page-walk.webp")
    clicks, seconds = zip(*found, strict=True)
    load = os.getloadavg()[0]
    print(
        f"{runs} walks: {statistics.median(clicks):g} clicks ({min(clicks)} to {max(clicks)}), "
        f"{statistics.median(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f}); load "
        f"{load:.1f}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
