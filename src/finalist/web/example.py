"""An example: a study whose results are simulated, to see how a study goes before beginning one.

The candidates are those of a field trial of 1931 with oats; a result is drawn at random from the
yields that were measured there. Everything else is as in any other study.
"""

import csv
from importlib.resources import files
from typing import Any

import numpy as np

from finalist.arms import Arms
from finalist.errors import ConflictError
from finalist.shapes import Float
from finalist.study import Snapshot, Study, handles
from finalist.study.results import as_results
from finalist.web.arms_preview import Reading, preview

#: What the metadata of an example hold under "example".
OATS = "oats"
NAME = "Example: oats (simulated results)"
#: Plots at a time; differences in yield that do not matter, in quarter pounds per plot.
SIZE, MARGIN = 24, 10.0


def table() -> dict[str, Float[np.ndarray, " n"]]:
    """Return the yields of each candidate.

    Examples
    --------
    >>> found = table()
    >>> len(found), found["Victory, 0.6"]
    (12, array([174., 100.,  86., 122., 116., 113.]))
    """
    text = (files("finalist.data") / "oats.csv").read_text(encoding="utf-8")
    yields: dict[str, list[float]] = {}
    for row in csv.DictReader(text.splitlines()):
        yields.setdefault(f"{row['variety']}, {row['nitrogen']}", []).append(float(row["yield"]))
    return {name: np.array(values) for name, values in yields.items()}


def candidates() -> Arms:
    """Return the candidates, described by variety and nitrogen, where yields may bend.

    Examples
    --------
    >>> len(candidates()), candidates().rank
    (12, 5)
    """
    rows = [(name, *name.rsplit(", ", 1)) for name in table()]
    lines = ["name\tvariety\tnitrogen", *("\t".join(row) for row in rows)]
    found = preview("\n".join(lines).encode(), "the example", Reading({}, model="bending"))
    assert found.arms is not None
    return found.arms


def settings(seed: int | None = None) -> dict[str, Any]:
    """Return the arguments of `Study.create` besides name and candidates."""
    return {
        "sigma": None,
        "epsilon": MARGIN,
        "unit": "quarter pounds per plot",
        "seed": seed,
        "metadata": {"example": OATS, "batch_size": SIZE},
    }


def is_example(snapshot: Snapshot) -> bool:
    """Return whether the results of a study are simulated."""
    return bool(snapshot.row.settings["metadata"].get("example") == OATS)


def words_of(snapshot: Snapshot) -> str | None:
    """Say what an example is about; None of any other study."""
    if not is_example(snapshot):
        return None
    return (
        "A farmer asks which of three varieties of oats with which of four amounts of nitrogen "
        "yields most. Each result is drawn at random from yields of a real field trial (Yates, "
        f"1935). A difference of {MARGIN:g} quarter pounds per plot would not matter."
    )


def draw(seed: int, pull: int, values: Float[np.ndarray, " n"]) -> float:
    """Return the simulated result of a measurement: the same whenever it is drawn again."""
    return float(np.random.default_rng([seed, pull]).choice(values))


def simulate(study: Study) -> int:
    """Draw results for the open batch and store them; return how many are new."""
    snapshot = study.snapshot(events=0)
    if not is_example(snapshot):
        raise ConflictError(
            "this study is no example, and its results cannot be simulated. Nothing was changed."
        )
    if snapshot.batch is None:
        return 0
    yields, seed = table(), int(snapshot.row.settings["seed"])
    drawn: dict[int, float | str] = {
        pull.pull_id: draw(seed, pull.pull_id, yields[pull.arm]) for pull in snapshot.batch
    }
    return handles.tell(study, as_results(drawn), None).new
