"""How fast and how heavy pages are, over loopback: 100 studies; 1,000 candidates, 10^5 results.

    python -m benchmarks.pages

Studies are on a SQLite file in a temporary folder. A server gets ready and reads them when it
starts; "at once" is a list that is asked for before that, "first" the first look after it, "after
news" the first one after a reward was told. Writes benchmarks/results/pages.md. The exit code is 1
when a target is missed.
"""

import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
from tests import instances
from tests.web.browsers import browser
from tests.web.servers import in_thread

import finalist as fl
from benchmarks.harness import Report, Table, Target
from finalist.study import Study
from finalist.web.server import compile_templates

RESULTS = Path(__file__).parent / "results" / "pages.md"
STUDIES, ARMS, REWARDS = 100, 1000, 100_000
#: Kilobytes of a page as it is sent, with what it loads besides charts.
WEIGHT = 300
#: Seconds.
LIST, STUDY = 0.1, 0.5


def make_small(place: str) -> None:
    """Make 100 studies with about 200 rewards each."""
    arms = fl.Arms(instances.unit_sphere(12, 5, 0))
    for number in range(STUDIES):
        rng = np.random.default_rng(number)
        with Study.create(place, f"study {number}", arms, sigma=1.0, seed=number) as study:
            for _ in range(8):
                batch = study.ask(size=24)
                study.tell({pull.pull_id: rng.standard_normal() for pull in batch})


def make_large(place: str) -> None:
    """Make a study with 1,000 arms and 10^5 rewards that goes on."""
    arms = fl.Arms(instances.unit_sphere(ARMS, 8, 1))
    rng = np.random.default_rng(1)
    with Study.create(place, "large", arms, sigma=1.0, seed=1) as study:
        while study.status(forecast=False).pulls < REWARDS:
            batch = study.ask(size=2000)
            study.tell({pull.pull_id: rng.standard_normal() for pull in batch})
        study.ask(size=96)


def seconds(client: httpx.Client, path: str) -> float:
    """Return how long a page takes."""
    begin = time.perf_counter()
    client.get(path).raise_for_status()
    return time.perf_counter() - begin


def measure_list(folder: str) -> dict[str, list[float]]:
    """Return the seconds of the list of studies."""
    place = f"{folder}/small.db"
    make_small(place)
    with (
        in_thread(place, deadline=600) as url,
        httpx.Client(base_url=url, timeout=60, trust_env=False) as client,
    ):
        seconds(client, "/new")
        at_once = [seconds(client, "/")]
        client.get("/api/v1/studies").raise_for_status()  # waits until all are read
        later = [seconds(client, "/") for _ in range(20)]
    return {
        f"list of {STUDIES} studies, at once": at_once,
        f"list of {STUDIES} studies": later,
    }


def measure_study(folder: str) -> dict[str, list[float]]:
    """Return the seconds of the page of a large study."""
    place, news = f"{folder}/large.db", []
    make_large(place)
    with (
        in_thread(place, deadline=600) as url,
        httpx.Client(base_url=url, timeout=60, trust_env=False) as client,
    ):
        client.get("/api/v1/studies").raise_for_status()
        seconds(client, "/new")
        first = [seconds(client, "/studies/1")]
        later = [seconds(client, "/studies/1") for _ in range(20)]
        with Study.open(place, "large") as study:
            for pull in study.ask(size=10):
                study.tell({pull.pull_id: 0.5})
                news.append(seconds(client, "/studies/1"))
    what = f"study of {ARMS:,} arms and {REWARDS:,} rewards"
    return {f"{what}, first": first, f"{what}, after news": news, what: later}


#: What Chromium says of the first paint, and of all it has loaded by then.
PAINTED = """() => new Promise((done) => {
  const look = () => {
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    if (!paint) return setTimeout(look, 20);
    done(paint.startTime / 1000);
  };
  look();
})"""


def measure_paint(folder: str) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return seconds to the first paint of a study of 1,000 candidates, and kilobytes of its page.

    Of the page that is shown and of one with all candidates, in Chromium over loopback.
    """
    place, seconds_, weights = f"{folder}/large.db", {}, {}
    with in_thread(place, deadline=600) as url, browser() as chromium:
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            client.get("/api/v1/studies").raise_for_status()
            for path, what in (("/studies/1", "shown"), ("/studies/1?all=1", "all candidates")):
                parts = [path, "/static/style.css", "/static/rows.css", "/static/app.js",
                         "/static/bench.js", "/static/values.js"]  # fmt: skip
                sizes = [len(client.get(part).content) for part in parts]
                weights[f"page of {ARMS:,} candidates, {what}"] = sum(sizes) / 1000.0
        for path, what in (("/studies/1", "shown"), ("/studies/1?all=1", "all candidates")):
            found = []
            for _ in range(5):
                page = chromium.new_page()
                page.goto(url + path, wait_until="commit")
                found.append(float(page.evaluate(PAINTED)))
                page.close()
            seconds_[f"first paint of {ARMS:,} candidates, {what}"] = found
    return seconds_, weights


def main() -> int:
    """Measure everything."""
    report = Report("Pages")
    compile_templates()
    with tempfile.TemporaryDirectory() as folder:
        found = measure_list(folder) | measure_study(folder)
        painted, weights = measure_paint(folder)
    rows = []
    for what, values in found.items():
        target = LIST if what.startswith("list") else STUDY
        held = max(values)
        rows.append((what, str(len(values)), f"{np.median(values):.3g} s", f"{held:.3g} s"))
        if "at once" in what:  # depends on what else the machine does
            continue
        promised = f"at most {target:g} s"
        report.targets.append(Target(what, promised, f"{held:.3g} s", held <= target))
    columns = ("page", "repetitions", "median", "most")
    report.add(Table("Over loopback, charts not included", columns, rows, ""))
    rows = [
        (what, str(len(v)), f"{np.median(v):.3g} s", f"{max(v):.3g} s")
        for what, v in painted.items()
    ]
    report.add(Table("In Chromium, over loopback", columns, rows, ""))
    sizes = [(what, f"{size:.0f} kB") for what, size in weights.items()]
    for what, size in weights.items():
        if what.endswith("shown"):
            report.targets.append(
                Target(what, f"at most {WEIGHT} kB", f"{size:.0f} kB", size <= WEIGHT)
            )
    about = "With style sheets and scripts, uncompressed; charts that are pictures come later."
    report.add(Table("Weight", ("page", "size"), sizes, about))
    return report.finish(RESULTS)


if __name__ == "__main__":
    sys.exit(main())
