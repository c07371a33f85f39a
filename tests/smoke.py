"""Does an installed finalist work? Run by the Python of an environment that has nothing else.

    clean/bin/python tests/smoke.py

It uses what a wheel could lack: data files, templates, migrations, compiled loops, the program.
"""

import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request
from pathlib import Path

PROGRAM = Path(sysconfig.get_path("scripts")) / "finalist"


def library(folder: Path) -> str:
    """Simulate, and lead a study to its end."""
    import finalist as fl
    from finalist import data

    assert "site-packages" in fl.__file__, f"this is not the installed one: {fl.__file__}"
    arms = fl.Arms.unstructured(["a", "b", "c"])
    assert fl.simulate(arms, [1.0, 0.0, 0.0], sigma=0.5, runs=3).correct.all()
    assert len(data.load("oats").arms) == 12
    study = fl.Study.create(folder / "lab.db", "smoke", arms, sigma=0.1, seed=1)
    while batch := study.ask():
        study.tell({pull.pull_id: float(pull.arm == "b") for pull in batch})
    assert study.status().winner == "b"
    return fl.__version__


def program(folder: Path) -> None:
    """Type in commands; draw a chart."""
    (folder / "arms.csv").write_text("name,x,y\na,1,0\nb,0,1\nc,1,1\n")
    for words in (
        ["--version"],
        ["design", "arms.csv", "--chart", "design.png"],
        ["new", "typed", "arms.csv", "--sigma", "1", "--db", "typed.db"],
        ["ask", "typed", "--db", "typed.db", "-o", "batch.csv"],
        ["report", "typed", "--db", "typed.db", "-o", "report.html"],
        ["db", "check", "--db", "typed.db"],
    ):
        subprocess.run([PROGRAM, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    assert (folder / "design.png").stat().st_size > 5_000
    assert "typed" in (folder / "report.html").read_text()


def page(folder: Path) -> None:
    """Serve the page on this machine and look at it."""
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


def main() -> int:
    """Run all of it in an empty folder."""
    folder = Path(tempfile.mkdtemp())
    try:
        version = library(folder)
        program(folder)
        page(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"finalist {version} works as it was installed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
