"""Each page as it was in 0.1.0 beside the page as it is now, at both widths.

    git archive 8046a03 | tar x -C OLD
    python -m docs.before_after OLD

Both versions make the same studies, each with its own code, and serve them with their own pages;
the machine's own Chromium photographs them 1,280 and 390 pixels wide. One picture a page, written
to docs/images as WebP: before, wide and phone, then now, wide and phone.
"""

import base64
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from docs.screenshots import DRAWN, plan
from tests.web.browsers import browser

HERE = Path(__file__).parent
WIDTHS, HEIGHT = (1280, 390), 1100
#: Pages by the name of their picture: the address, and the part that is scrolled to, if any.
PAGES = {
    "first": ("/", None),
    "list": ("/", None),
    "new": ("/new", None),
    "question": (None, "main"),
    "plan": (None, "#plan"),
    "study": ("/studies/4", None),
    "bench": ("/studies/4", "#next"),
    "candidates": ("/studies/4", "#arms"),
    "charts": ("/studies/4", "#charts"),
    "winner": ("/studies/1", None),
    "failed": ("/studies/4/pulls/{open}", None),
    "forecast": ("/studies/4/forecast", None),
    "change": ("/studies/4", "#change"),
    "add": ("/studies/4/add", None),
    "report": ("/studies/1/report.html", None),
    "error": ("/studies/99", None),
}
#: Draws pictures side by side, as large as is said, and gives them as WebP.
_JOIN = """async ([pictures, scale, gap, quality]) => {
  const images = await Promise.all(pictures.map(async (data) => {
    const image = new Image();
    image.src = "data:image/png;base64," + data;
    await image.decode();
    return image;
  }));
  const canvas = document.createElement("canvas"), brush = canvas.getContext("2d");
  canvas.width = images.reduce((sum, image) => sum + image.width * scale + gap, gap);
  canvas.height = Math.max(...images.map((image) => image.height)) * scale + 2 * gap;
  brush.fillStyle = "#8a96a3";
  brush.fillRect(0, 0, canvas.width, canvas.height);
  brush.imageSmoothingQuality = "high";
  let left = gap;
  for (const image of images) {
    brush.drawImage(image, left, gap, image.width * scale, image.height * scale);
    left += image.width * scale + gap;
  }
  return canvas.toDataURL("image/webp", quality).split(",")[1];
}"""
SCALE, GAP, QUALITY = 0.5, 8, 0.6


def join(page: Any, pictures: list[str], path: Path) -> None:
    """Write pictures side by side, by an empty page of the browser."""
    joined = page.evaluate(_JOIN, [pictures, SCALE, GAP, QUALITY])
    path.write_bytes(base64.b64decode(joined))
    print(path, len(path.read_bytes()) // 1000, "kB")


@contextmanager
def served(tree: Path, folder: Path, *, empty: bool = False) -> Iterator[str]:
    """Make the studies of a version, or none, and serve them; give the address."""
    env = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}
    code = "from docs.screenshots import make_studies; make_studies('lab.db')"
    if not empty:
        subprocess.run([sys.executable, "-c", code], check=True, cwd=folder, env=env)
    place = "empty.db" if empty else "lab.db"
    command = [sys.executable, "-u", "-m", "finalist", "serve", "--db", place, "--no-open"]
    deadline = ["--deadline", "600"] if tree == HERE.parent else []  # 0.1.0 had none
    with subprocess.Popen(
        [*command, "--port", "0", *deadline], stdout=subprocess.PIPE, text=True, cwd=folder, env=env
    ) as process:
        assert process.stdout is not None
        found = (re.search(r"http://[\w.]+:\d+", line) for line in process.stdout)
        try:
            yield next(match[0] for match in found if match)
        finally:
            process.terminate()


def photographs(url: str, page: Any) -> dict[str, str]:
    """Return each page as it is shown now, encoded."""
    page.goto(f"{url}/api/v1/studies")  # reads them all
    waiting = page.request.get(f"{url}/api/v1/studies/4/open.csv").text()
    number = re.search(r"^\D*(\d+)", waiting.split("\n")[1])
    assert number is not None
    taken = {}
    for name, (path, part) in PAGES.items():
        if name == "first":
            continue
        if path is None:
            if name == "question" or "question" not in PAGES:
                plan(page, url)  # both are of one page
        elif name == "report":
            page.goto("about:blank")  # as a file that somebody was sent
            page.set_content(page.request.get(url + path).text())
        else:
            page.goto(url + path.format(open=number[1]))
        page.evaluate(DRAWN)
        if part:
            page.evaluate("(part) => document.querySelector(part).scrollIntoView()", part)
        taken[name] = base64.b64encode(page.screenshot()).decode()
    return taken


def main(old: Path, target: Path, names: list[str]) -> None:
    """Take all pictures, or those that are named."""
    for name in set(PAGES) - set(names or PAGES):
        del PAGES[name]
    with browser() as chromium:
        rows: dict[str, list[str]] = {name: [] for name in PAGES}
        for tree in (old, HERE.parent):
            with tempfile.TemporaryDirectory() as folder, served(tree, Path(folder)) as url:
                for width in WIDTHS:
                    page = chromium.new_page(viewport={"width": width, "height": HEIGHT})
                    page.set_default_timeout(600_000)
                    for name, picture in photographs(url, page).items():
                        rows[name].append(picture)
                    if "first" in PAGES:
                        with served(tree, Path(folder), empty=True) as nothing:
                            page.goto(nothing)
                            page.evaluate(DRAWN)
                            rows["first"].append(base64.b64encode(page.screenshot()).decode())
                    page.close()
        page = chromium.new_page()
        for name, pictures in rows.items():
            join(page, pictures, target / f"before-after-{name}.webp")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), HERE / "images", sys.argv[2:])
