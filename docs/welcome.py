"""The picture of the first screen: `python -m docs.welcome` (of an example with a fixed seed).

Three looks at one study with simulated results: the candidates in the order of their names, how far
each is behind the one in front, and who is ruled out. Written to web/static for both themes.
"""

import tempfile
from pathlib import Path

from finalist.charts.looks import Seen, looks_chart
from finalist.charts.theme import to_svg
from finalist.study import Study
from finalist.web.example import SIZE, candidates, settings, simulate
from finalist.web.pages.standing import Row, Standing, standing
from finalist.web.render import HERE

SEED = 6


def looks() -> dict[str, Standing]:
    """Return how the example stands after its first batch, in the middle and at its end."""
    found: dict[str, Standing] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        Study.create(f"{folder}/a.db", "a", candidates(), **settings(SEED)) as study,
    ):
        while study.ask(SIZE):
            simulate(study)
            status = study.status(forecast=False)
            found[f"after {status.pulls} results"] = standing(study.snapshot(), status)
    words = list(found)
    return {word: found[word] for word in (words[0], words[len(words) // 2], words[-1])}


def _seen(row: Row) -> Seen:
    state = "out" if row.ruled else row.state
    return row.name, state, row.behind or 0.0, row.low, row.high


def main() -> None:
    """Draw it for both themes."""
    seen = {word: [_seen(row) for row in one.rows] for word, one in looks().items()}
    chart = looks_chart(seen, list(candidates().names))
    for theme in ("light", "dark"):
        path: Path = HERE / "static" / f"welcome-{theme}.svg"
        path.write_text(to_svg(chart, theme) + "\n", encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
