"""Make the studies that later versions must go on with: python -m tests.study.make_golden_studies.

Two whole lives in one file of schema 1, with every kind of event, and beside it what this version
says about them. A later version must say the same, from the log alone.
"""

import json
from pathlib import Path

import finalist as fl
from finalist.study import Study
from tests.study.lab import ARMS, Lab

FILE = Path(__file__).with_name("golden") / "studies-1.db"
SAID = FILE.with_suffix(".json")
HARD = Lab(theta=[1.0, 0.3, 0.0])


def make(where: str) -> None:
    """Live both lives."""
    with Study.create(where, "all events", ARMS, sigma=0.6, seed=1, metadata={"of": 1}) as study:
        study.import_history([("a", 1.0), ("b", 0.3), ("c", 0.0), ("d", 0.9)])
        first = study.ask(12, worker="Ada")
        study.tell({first[0].pull_id: 50.0}, client_id="call 1")
        study.amend(first[0].pull_id, HARD.measure(first[0]), "a decimal point")
        study.void(first[1].pull_id, "broken")
        study.missing(first[2].pull_id, "lost")
        study.tell(HARD.rewards(study.ask()))
        for _ in range(4):
            study.tell(HARD.rewards(study.ask(20)))
        study.note("half-time")
        study.stop("holidays")
        study.resume()
        study.add(fl.Arms([[0.5, 0.5, 0.5]], ["e"]))
        lab = Lab(study.arms, [1.0, 0.3, 0.0])
        for _ in range(3):
            study.tell(lab.rewards(study.ask(20)))
        study.withdraw("c")
        study.tell(lab.rewards(study.ask(20)))
        study.tell(lab.rewards(study.ask(20)[:7]))
    with Study.create(where, "to the end", ARMS, sigma=None, seed=2, objective="min") as study:
        while batch := study.ask(15):
            study.tell(Lab().rewards(batch))


def said(where: str) -> dict[str, object]:
    """Return what this version says about the studies of a file."""
    words = {}
    for name in fl.studies(where):
        with Study.open(where, name) as study:
            open_pulls = [(pull.pull_id, pull.arm) for pull in study.ask()]
            words[name] = {
                "status": study.status(forecast=False).to_dict(),
                "pulls": study.to_frame()[["pull_id", "batch", "arm", "state"]].values.tolist(),
                "open": open_pulls,
            }
    return json.loads(json.dumps(words))  # type: ignore[no-any-return]


if __name__ == "__main__":
    FILE.unlink(missing_ok=True)
    make(str(FILE))
    SAID.write_text(json.dumps(said(str(FILE)), separators=(",", ":")) + "\n")
