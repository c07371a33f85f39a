"""Is what is built what somebody needs who has only pip?

    python -m tests.installations [--pythons python3.11,python3.12,python3.13]

The wheel is installed into clean environments, alone and with each extra, the source distribution
and the folder itself, editable and not, with all of them: no compiler is found there, and no
dependency may be built. Each does what `tests/smoke.py` asks of it. Other Pythons have the wheel
with everything. `make dist` builds what this tries; it takes about a minute for each environment.
Loops are compiled in the first one of each Python, and found by the others.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from finalist.extras import EXTRAS

ROOT = Path(__file__).parents[1]


def attempts(pythons: list[str]) -> list[tuple[str, str, str, bool]]:
    """Return a Python, what is installed, its extra, and whether it stays where it is."""
    wheel, source = (str(next((ROOT / "dist").glob(kind))) for kind in ("*.whl", "*.tar.gz"))
    here = str(ROOT)
    return [
        *((sys.executable, wheel, extra, False) for extra in ("", *EXTRAS, "all")),
        *((sys.executable, what, "all", False) for what in (source, here)),
        (sys.executable, here, "all", True),
        *((python, wheel, "all", False) for python in pythons),
    ]


def attempt(python: str, what: str, extra: str, editable: bool, compiled: Path) -> bool:
    """Install it somewhere and use it; return whether it works."""
    begin, folder = time.monotonic(), Path(tempfile.mkdtemp())
    # No compiler: whoever calls one fails. Python keeps its bytecode, whatever this shell says.
    environment = {**os.environ, "CC": "false", "CXX": "false", "FC": "false"}
    environment |= {"NUMBA_CACHE_DIR": str(compiled), "PYTHONDONTWRITEBYTECODE": ""}
    environment.pop("PYTHONPATH", None)  # what is installed is tried, nothing else
    inside = str(folder / "bin" / "python")
    target = f"{what}[{extra}]" if extra else what
    pip = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += ["--no-compile", "--constraint", str(ROOT / "constraints.txt"), "--prefer-binary"]
    pip += ["--editable"] if editable else []
    try:
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        subprocess.run([*pip, target], check=True, env=environment)
        smoke = [inside, "-P", str(ROOT / "tests" / "smoke.py"), *([extra] if extra else [])]
        done = subprocess.run(smoke, env=environment, cwd=folder, check=False)
    except subprocess.CalledProcessError as error:
        print(error, flush=True)
        return False
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    kind = "editable" if editable else Path(what).name
    name = f"{Path(python).name}, {kind}{f'[{extra}]' if extra else ''}"
    good = done.returncode == 0
    print(f"{name}: {'works' if good else 'FAILS'} ({time.monotonic() - begin:.0f} s)", flush=True)
    return good


def main() -> int:
    """Try all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pythons", default="", help="others to try, with commas between")
    named = parser.parse_args().pythons
    pythons = [one for one in named.split(",") if one]
    with tempfile.TemporaryDirectory() as compiled:
        found = [attempt(*one, Path(compiled)) for one in attempts(pythons)]
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
