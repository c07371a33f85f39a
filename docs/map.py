"""The map of the packages, drawn from the import graph, and two walks through them, counted.

python docs/map.py           # draws docs/images/map.png
python docs/map.py --walks   # prints the files that a reward and a click pass through
"""

import argparse
import configparser
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from finalist.charts.theme import ACCENT, INK, finish, save
from finalist.text import counted

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "finalist"
#: Rows of the picture: packages with a name of their own. The others are helpers of all.
LEFT_OUT = ("__main__", "_moved", "errors", "files", "sqlite_files", "text")


def layers() -> list[str]:
    """Return the packages from the top, as `.importlinter` orders them."""
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    words = config["importlinter:contract:layers"]["layers"].replace("|", " ").split()
    return [word for word in words if word not in LEFT_OUT]


def imports() -> Counter[tuple[str, str]]:
    """Count the imports between packages."""
    import grimp

    graph = grimp.build_graph("finalist", exclude_type_checking_imports=True)
    found: Counter[tuple[str, str]] = Counter()
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            pair = tuple(name.split(".")[1] if "." in name else "" for name in (module, other))
            if pair[0] != pair[1]:
                found[pair[0], pair[1]] += 1
    return found


def size_of(package: str) -> str:
    """Return how many files and lines of all kinds a package has."""
    place = SOURCE / package
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    lines = sum(len(file.read_text().splitlines()) for file in files)
    return f"{counted(len(files), 'file')}, {lines:,} lines"


def map_picture(folder: Path) -> None:
    """Draw a row for each package and an arc for each pair of which one imports the other."""
    rows = layers()
    place = {package: i for i, package in enumerate(rows)}
    points = []
    for (above, below), count in imports().items():
        if above in place and below in place:
            top, bottom = place[above], place[below]
            for t in np.linspace(0.0, np.pi, 40):
                reach = 0.5 * (bottom - top)
                points.append(
                    {
                        "pair": f"{above} {below}",
                        "x": reach * np.sin(t),
                        "y": (top + bottom) / 2 - reach * np.cos(t),
                        "t": t,
                        "imports": count,
                    }
                )
    named = pd.DataFrame({"package": rows, "y": range(len(rows)), "size": map(size_of, rows)})
    down = alt.Scale(domain=[-0.5, len(rows) - 0.5], reverse=True)
    axis = alt.Axis(labels=False, ticks=False, domain=False, grid=False, title=None)
    across = alt.Scale(domain=[-5.5, len(rows) / 2])
    arcs = (
        alt.Chart(pd.DataFrame(points))
        .mark_line(color=ACCENT, opacity=0.45)
        .encode(
            x=alt.X("x:Q", scale=across, axis=axis),
            y=alt.Y("y:Q", scale=down, axis=axis),
            detail="pair:N",
            order="t:Q",
            strokeWidth=alt.StrokeWidth(
                "imports:Q", scale=alt.Scale(type="sqrt", range=[0.4, 5]), legend=None
            ),
        )
    )
    base = alt.Chart(named).encode(y=alt.Y("y:Q", scale=down, axis=axis))
    names = base.mark_text(align="right", fontWeight="bold", fontSize=13, color=INK).encode(
        x=alt.datum(-0.25), text="package:N"
    )
    sizes = base.mark_text(align="left", fontSize=11, color=INK, opacity=0.7).encode(
        x=alt.datum(-5.4), text="size:N"
    )
    chart = alt.layer(arcs, names, sizes).properties(width=620, height=24 * len(rows))
    finished = finish(
        chart,
        "Who imports whom",
        ["Every arc goes from a package down to one that it imports; wide arcs are many imports."],
    )
    save(finished, folder / "map.png")


@contextmanager
def passed() -> Iterator[set[str]]:
    """Collect the source files whose functions are called, in all threads; imports do not count."""
    files: set[str] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and str(SOURCE) in code.co_filename:
            files.add(str(Path(code.co_filename).relative_to(SOURCE)))

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def walk_of_a_reward(folder: Path) -> set[str]:
    """Tell a study one file of results at the command line; return the files passed."""
    from typer.testing import CliRunner

    import finalist as fl
    from finalist.cli.app import app

    place = folder / "reward.db"
    with fl.Study.create(place, "alloys", fl.Arms.unstructured(3), sigma=1.0) as study:
        for _ in range(3):
            study.tell({pull.pull_id: float(pull.arm == "x1") for pull in study.ask()})
        lines = [f"{pull.pull_id},{float(pull.arm == 'x1')}" for pull in study.ask()]
    results = folder / "results.csv"
    results.write_text("\n".join(["pull_id,reward", *lines]))
    words = ["tell", "alloys", str(results), "--db", str(place)]
    CliRunner().invoke(app, words)  # once, so that what is imported late is there
    with fl.Study.open(place, "alloys") as study:
        lines = [f"{pull.pull_id},{float(pull.arm == 'x1')}" for pull in study.ask()]
    results.write_text("\n".join(["pull_id,reward", *lines]))
    with passed() as files:
        answer = CliRunner().invoke(app, words)
    if "Stored" not in answer.output:
        raise SystemExit(answer.output)
    return files


def walk_of_a_click(folder: Path) -> set[str]:
    """Click on "next batch" on the page of a study; return the files passed until it is shown."""
    from starlette.testclient import TestClient

    import finalist as fl
    from finalist.web.app import create_app

    place = folder / "click.db"
    with fl.Study.create(place, "alloys", fl.Arms.unstructured(3), sigma=1.0) as study:
        study.tell({pull.pull_id: float(pull.arm == "x1") for pull in study.ask()})
    with passed() as files, TestClient(create_app(place), base_url="http://127.0.0.1") as browser:
        form, origin = {"size": "4"}, {"Origin": "http://127.0.0.1"}
        browser.get("/studies/1")
        browser.post("/studies/1/ask", data=form, headers=origin)  # so that late imports are done
        files.clear()
        answer = browser.post("/studies/1/ask", data=form, headers=origin)
    if answer.status_code != 200:
        raise SystemExit(answer.text)
    return files


def main() -> None:
    """Draw the map, or count the walks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--walks", action="store_true", help="print the files passed")
    if not parser.parse_args().walks:
        map_picture(ROOT / "docs" / "images")
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, walk in (("a reward", walk_of_a_reward), ("a click", walk_of_a_click)):
            files = walk(Path(folder))
            print(f"{name}: {len(files)} files")
            print("  " + "\n  ".join(sorted(files)))


if __name__ == "__main__":
    main()
