"""Does an installed finalist work? Run by the Python of an environment that has nothing else.

    clean/bin/python -P tests/smoke.py [EXTRA ...]

It uses what a wheel could lack: data files, templates, migrations, compiled loops, the program. Of
each extra that is named it does what needs it; whatever needs another has to say so.
"""

import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

PROGRAM = Path(sysconfig.get_path("scripts")) / "finalist"


def core(folder: Path) -> None:
    """Simulate, lead a study to its end, type in commands."""
    import finalist as fl

    arms = fl.Arms.unstructured(["a", "b", "c"])
    assert fl.simulate(arms, [1.0, 0.0, 0.0], sigma=0.5, runs=3).correct.all()
    study = fl.Study.create(folder / "lab.db", "smoke", arms, sigma=0.1, seed=1)
    while batch := study.ask():
        study.tell({pull.pull_id: float(pull.arm == "b") for pull in batch})
    assert study.status().winner == "b"
    (folder / "arms.csv").write_text("name,x,y\na,1,0\nb,0,1\nc,1,1\n")
    (folder / "arms.parquet").write_bytes(b"PAR1")
    for words in (
        "--version",
        "design arms.csv",
        "plan arms.csv --sigma 1 --gap 1 --draws 3",
        "new typed arms.csv --sigma 1 --db typed.db",
        "ask typed --db typed.db -o batch.csv",
        "db check --db typed.db",
    ):
        run(folder, words)


def run(folder: Path, words: str) -> None:
    """Type in a command."""
    subprocess.run([PROGRAM, *words.split()], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def charts(folder: Path) -> None:
    """Draw a chart."""
    run(folder, "design arms.csv --chart design.png")
    assert (folder / "design.png").stat().st_size > 5_000


def tables(folder: Path) -> None:
    """Read data as a frame, write a workbook."""
    from finalist import data

    assert len(data.load("oats").arms) == 12
    run(folder, "new sheets arms.csv --sigma 1 --db typed.db")
    run(folder, "ask sheets --db typed.db -o batch.xlsx")


def parquet(folder: Path) -> None:
    """Write and read a file."""
    import finalist as fl

    arms = fl.Arms.unstructured(["a", "b", "c"])
    arms.to_parquet(folder / "arms.parquet")
    assert fl.Arms.from_parquet(folder / "arms.parquet") == arms


def postgres(_: Path) -> None:
    """Look for a server that is not there."""
    import finalist as fl
    from finalist.errors import StorageError

    said = ""
    try:
        fl.studies("postgresql://nobody@127.0.0.1:1/lab")
    except StorageError as error:
        said = str(error)
    assert "127.0.0.1" in said


def cluster(_: Path) -> None:
    """Simulate on a cluster of this process."""
    from distributed import Client

    import finalist as fl

    with Client(n_workers=1, processes=False, dashboard_address=None) as client:
        arms = fl.Arms.unstructured(3)
        runs = client.submit(fl.simulate, arms, [1.0, 0.0, 0.0], sigma=0.5, runs=3)
        assert runs.result(timeout=120).correct.all()


def page(folder: Path) -> None:
    """Write a report, serve the page on this machine and look at it."""
    run(folder, "report typed --db typed.db -o report.html")
    assert "typed" in (folder / "report.html").read_text()
    command = [str(PROGRAM), "serve", "--db", "typed.db", "--no-open", "--port", "0"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = ""
        until = time.monotonic() + 60
        while "http://" not in line and time.monotonic() < until:
            line = server.stdout.readline()
        address = line[line.index("http://") :].split()[0].rstrip(".")
        for path in ("", "studies/1", "static/style.css", "api/v1/openapi.json"):
            with urllib.request.urlopen(address.rstrip("/") + "/" + path, timeout=20) as answer:
                assert answer.status == 200, path
    finally:
        server.terminate()
        server.wait(20)


#: What needs an extra, and how somebody without it meets that.
PARTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "charts": (charts, "design arms.csv --chart other.png"),
    "tables": (tables, "ask typed --db typed.db -o other.xlsx"),
    "parquet": (parquet, "design arms.parquet"),
    "postgres": (postgres, "list --db postgresql://nobody@127.0.0.1:1/lab"),
    "cluster": (
        cluster,
        "benchmark --suite quick --scheduler 127.0.0.1:1 --store runs.sqlite --out field",
    ),
    "page": (page, "report typed --db typed.db -o other.html"),
}
#: What brings others.
BRINGS = {"page": {"charts"}, "all": set(PARTS)}


def refused(folder: Path, extra: str, words: str) -> None:
    """Make sure that an extra that is missing is named."""
    done = subprocess.run([PROGRAM, *words.split()], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 2, (words, done.stdout, done.stderr)
    assert "pip install 'finalist[" in done.stderr, (extra, done.stderr)


def main() -> int:
    """Run all of it in an empty folder."""
    import finalist

    asked = set(sys.argv[1:])
    extras = (asked & set(PARTS)).union(*(BRINGS.get(one, set()) for one in asked))
    folder = Path(tempfile.mkdtemp())
    try:
        core(folder)
        for extra, (part, words) in PARTS.items():
            if extra in extras:
                part(folder)
            else:
                refused(folder, extra, words)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    with_extras = f" with {', '.join(sorted(asked))}" if asked else ""
    print(
        f"finalist {finalist.__version__}{with_extras} works in {Path(finalist.__file__).parent}."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
