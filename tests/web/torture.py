"""The API on a real scale: requests nobody would send, and many clients at once.

    python -m tests.web.torture [--cases 10000] [--lives 2000] [--clients 50] [--seconds 30]

The tests do the same on a small scale. Prints what was done, and fails on the first answer that
is the server's fault, and on the first reward that is lost.
"""

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.records import Record
from tests.web import fuzz, load
from tests.web.servers import in_thread


def main() -> None:
    """Run everything, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--lives", type=int, default=2_000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    record = Record("torture-server", "Faults and load of the server")
    with tempfile.TemporaryDirectory() as folder:
        for name, run, count in (
            ("requests made up from the description", fuzz.by_description, given.cases),
            ("lives with extreme values", fuzz.lives, given.lives),
        ):
            with in_thread(Path(folder) / f"{run.__name__}.db") as url:
                begin = time.monotonic()
                seen = run(url, count, given.seed)
                record.say(f"{count:,} {name}, {time.monotonic() - begin:.0f} s: {_shown(seen)}")
        found = load.run(Path(folder) / "load.db", given.clients, given.seconds)
        record.say(found.words(given.clients, given.seconds))


def _shown(seen: Counter[int]) -> str:
    answers = ", ".join(f"{count:,} times {status}" for status, count in sorted(seen.items()))
    return f"{sum(seen.values()):,} answers, none the server's fault ({answers})"


if __name__ == "__main__":
    main()
