"""The pictures of the page: `make screenshots`.

A server is started on studies made from real measurements; every page is photographed by the
machine's own Chromium, in light and dark and as a phone shows it. All pictures are in
docs/_build/screenshots, to look at; those that the documentation shows are copied to docs/images.
"""

import re
import shutil
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
from tests.web.browsers import browser
from tests.web.servers import in_thread

import finalist as fl
from finalist import data
from finalist.study import Study

#: Covers the noise of every arm of the oats.
SIGMA, SIZE = 31.0, 24
#: Makes a page load all its drawings now, and waits for them.
DRAWN = """() => Promise.all([...document.images].map((image) => {
  image.loading = "eager";
  return image.complete || new Promise((done) => { image.onload = image.onerror = done; });
}))"""
WIDE, PHONE = {"width": 1180, "height": 860}, {"width": 390, "height": 844}


def make_studies(place: Path) -> None:
    """Make what the pictures show: the newest study is at work, another has its winner."""
    table = data.load("oats")

    def begin(name: str, seed: int, batches: int) -> tuple[Study, np.random.Generator]:
        study = Study.create(
            place,
            name,
            table.arms,
            sigma=SIGMA,
            noise="sub-gaussian",
            objective=table.objective,
            seed=seed,
            metadata={"batch_size": SIZE},
        )
        rng = np.random.default_rng(seed)
        for _ in range(batches):
            if not (batch := study.ask(size=SIZE)):
                break
            tell(study, batch, rng)
        return study, rng

    def tell(study: Study, pulls: Any, rng: np.random.Generator) -> None:
        arms = table.arms
        study.tell({p.pull_id: float(table.draw(arms.index(p.arm), 1, rng)[0]) for p in pulls})

    done, _ = begin("oats, field trial", 15, 10_000)
    done.note("Harvest of the last plots was on a dry day.")
    done.close()
    alloys = fl.Arms(
        [[1.0, 0.0], [0.0, 1.0], [0.8, 0.6], [0.5, 0.7], [-0.3, 0.4]],
        names=[f"alloy {letter}" for letter in "ABCDE"],
    )
    with Study.create(place, "alloys", alloys, sigma=1.0, seed=4) as study:
        rng = np.random.default_rng(1)
        for _ in range(6):
            batch = study.ask(size=16)
            means = alloys.means(np.array([1.0, 0.45]))
            study.tell({p.pull_id: means[alloys.index(p.arm)] + rng.normal() for p in batch})
    Study.create(place, "tablets", fl.Arms.unstructured(5), sigma=None, seed=4).close()
    work, rng = begin("oats, next year", 3, 12)
    tell(work, work.ask(size=SIZE)[:5], rng)
    work.note("Plot 14 was flooded.")
    work.close()


def photograph(page: Any, path: Path, part: str | None = None, *, block: str = "start") -> None:
    """Save what a page shows, with its drawings, from a part of it on, or up to it."""
    page.evaluate(DRAWN)
    if part is not None:
        page.evaluate(f"document.querySelector('{part}').scrollIntoView({{block: '{block}'}})")
    page.screenshot(path=path)
    print(path)


def arms_table() -> bytes:
    """Return the arms of the oats as a file."""
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        data.load("oats").arms.to_csv(file.name)
        return Path(file.name).read_bytes()


def plan(page: Any, url: str) -> None:
    """Go to the second step of a new study and have a plan made."""
    page.goto(f"{url}/new")
    upload = {"name": "oats.csv", "mimeType": "text/csv", "buffer": arms_table()}
    page.set_input_files("#file", upload)
    page.get_by_role("button", name="Look at the table").click()
    page.get_by_label("Name of the study").fill("oats, next year")
    page.get_by_label("You measure at a time").fill("24")
    page.get_by_label("A lead that matters").fill("10")
    page.get_by_label("A guess of the noise").fill("31")
    page.get_by_role("button", name="Make a plan").click()
    page.locator("#plan [role=status]").wait_for(timeout=600_000)


def main(folder: Path) -> None:
    """Take all pictures."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, chdir(home), browser() as chromium:
        place = Path("lab.db")  # the list says where it is
        make_studies(place)
        with in_thread(place, deadline=600) as url:
            for theme in ("light", "dark"):
                context = chromium.new_context(color_scheme=theme, viewport=WIDE)
                context.set_default_timeout(600_000)
                page = context.new_page()
                with in_thread(Path("empty.db")) as empty:
                    page.goto(empty)
                    photograph(page, folder / f"page-first-{theme}.png")
                page.goto(f"{url}/api/v1/studies")  # reads them all
                page.goto(f"{url}/")
                photograph(page, folder / f"page-list-{theme}.png")
                page.goto(f"{url}/studies/4")
                photograph(page, folder / f"page-study-{theme}.png")
                photograph(page, folder / f"page-charts-{theme}.png", "#charts")
                page.goto(f"{url}/studies/1")
                photograph(page, folder / f"page-winner-{theme}.png")
                page.goto(f"{url}/studies/2")
                photograph(page, folder / f"page-plane-{theme}.png", ".chart.plane")
                photograph(page, folder / f"page-change-{theme}.png", "#change")
                page.goto(f"{url}/new")
                photograph(page, folder / f"page-new-{theme}.png")
                plan(page, url)
                photograph(page, folder / f"page-plan-{theme}.png", "main", block="end")
                context.close()
            context = chromium.new_context(viewport=PHONE)
            page = context.new_page()
            page.goto(f"{url}/studies/4")
            photograph(page, folder / "page-phone.png", "#next")
            context.close()


def publish(folder: Path, docs: Path) -> None:
    """Copy the pictures that the documentation shows."""
    for name in re.findall(r"images/(page-[a-z-]+\.png)", (docs / "page.md").read_text()):
        shutil.copy(folder / name, docs / "images" / name)


if __name__ == "__main__":
    docs = Path(__file__).parent
    taken = Path(sys.argv[1]) if len(sys.argv) > 1 else docs / "_build" / "screenshots"
    main(taken)
    publish(taken, docs)
