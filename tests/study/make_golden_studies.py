"""Make the studies that later versions must go on with: python -m tests.study.make_golden_studies.

They are files with what was decided beside them, the first two as version 0.1.0 wrote them:

- studies-1: two whole lives with every kind of event; its JSON has all that was said then.
- rules-1: the small lives of `golden_lives`, every strategy and every option.
- rules-2, rules-3 and rules-4: those of the gauntlet by these rules, as versions wrote them by
  which they were the newest. No release has had rules 4 yet: that file may be made again.

A later version must decide the same, from the log alone. What it says of the decisions, and how
certain it is, may get better. A file that is there is left as it is.
"""

import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.errors import StudyError
from finalist.strategies.gauntlet import GauntletRun
from finalist.strategies.gauntlet.bets import Bets
from finalist.study import Study
from finalist.study.settings import from_json
from finalist.study.state import State
from finalist.study.storage import writer as database_writer
from finalist.study.storage.rows import EventRow
from finalist.study.tables import read_arms
from tests.study.golden_lives import LIVES
from tests.study.lab import ARMS, Lab

FILE = Path(__file__).with_name("golden") / "studies-1.db"
RULES = FILE.with_name("rules-1.db")
RULES_2 = FILE.with_name("rules-2.db")
RULES_3 = FILE.with_name("rules-3.db")
RULES_4 = FILE.with_name("rules-4.db")
AT = "2026-01-02T03:04:05.000006+00:00"
HARD = Lab(theta=[1.0, 0.3, 0.0])
#: What a status says that is decided, and not estimated or put into words.
DECIDED = (
    "verdict", "winner", "winners", "survivors", "risk", "pulls", "open_pulls", "batches",
    "budget_left",
)  # fmt: skip
#: How far evidence must be from its limit, and by how much rewards may change without effect.
MARGIN = 1e-4


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


def make_rules(where: str, strategies: Collection[str] | None = None) -> None:
    """Live the small lives, all at the same moment, so that the file is always the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database_writer, "_now", lambda: AT)
        for name, life in LIVES.items():
            if strategies is not None and life.strategy not in strategies:
                continue
            words, seed = life.words, life.seed
            with Study.create(where, name, life.arms, life.strategy, seed=seed, **words) as study:
                try:
                    life.live(study, life.truth)
                except (AssertionError, StudyError) as error:
                    if strategies is None:
                        raise
                    print(f"{name!r} ends where it is: {error}")


def make_gauntlets(where: str) -> None:
    """Live those of the gauntlet: other strategies have the same rules since the first.

    A life was written for rules 1. Where later ones decide sooner it ends sooner.
    """
    make_rules(where, ["gauntlet"])


def said(where: str) -> dict[str, Any]:
    """Return what this version decides in the studies of a file, without changing them."""
    words = {}
    for name in fl.studies(where):
        with Study.open(where, name) as study:
            words[name] = decisions(study)
    return dict(json.loads(json.dumps(words)))


def decisions(study: Study) -> dict[str, Any]:
    """Return what is decided in a study: no sentence, no estimate, no evidence."""
    status, state = study.status(forecast=False).to_dict(), study._log.now()
    names = names_of_stages(study)
    return {
        "status": {key: status[key] for key in DECIDED},
        "end": state.end,
        "levels": state.levels,
        "rejected": [
            [decision.batch, [names[state.issued[decision.batch - 1].stage][i] for i in out]]
            for decision in state.decisions
            if (out := decision.rejected)
        ],
        "pulls": study.to_frame()[["pull_id", "batch", "arm", "state"]].values.tolist(),
        "open": [
            (pull.pull_id, pull.arm) for pull in (study.ask() if state.open is not None else ())
        ],
    }


def names_of_stages(study: Study) -> list[tuple[str, ...]]:
    """Return the names of the arms, for each time that they changed."""
    log = study._log
    stages = log.now().stage + 1
    with log.storage.read() as reader:
        return [tuple(read_arms(reader, log.row.id, stage).names) for stage in range(stages)]


# ---- margins -----------------------------------------------------------------------------------


def replay(
    study: Study, changed: Callable[[np.ndarray], np.ndarray] = np.asarray
) -> Iterator[tuple[EventRow, State]]:
    """Replay a log with rewards that may be changed; yield the state after each event."""
    log = study._log
    number = log.row.id
    with log.storage.read() as reader:
        settings = from_json(log.row.settings, read_arms(reader, number, 0))
        state = State(settings, lambda stage: read_arms(reader, number, stage))
        rewards = reader.rewards(number)
        for event in reader.events(number):
            mine = rewards.event == event.number
            told = (rewards.pull[mine], changed(rewards.value[mine])) if mine.any() else None
            state.apply(event, told)
            yield event, state


def check_margins(where: str) -> None:
    """Refuse studies whose decisions the last digits of a machine could change."""
    for name in fl.studies(where):
        with Study.open(where, name) as study:
            for event, state in replay(study):
                if event.kind == "decided":
                    near = nearest(state)
                    assert near > MARGIN, f"{name!r}: evidence {near:g} below its limit"
            for seed in range(4):
                rng = np.random.default_rng(seed)
                jostled = replay(study, lambda r, g=rng: r + MARGIN * g.standard_normal(len(r)))
                state = [state for _, state in jostled][-1]
                differs = state.replay.differs
                assert differs == [], f"{name!r} is close after batch {differs[0]}"


def nearest(state: State) -> float:
    """Return how far from its limit, as a share of it, evidence is that has not reached it.

    What has reached it is exactly there: only changed rewards tell how clearly.
    """
    claims = state.run._claims if isinstance(state.run, GauntletRun) else None
    found = [vars(claims).get("bets"), *vars(claims).get("leaders", {}).values()] if claims else []
    shares = [1.0 - bets.log_m / bets.limit for bets in found if isinstance(bets, Bets)]
    missing = np.concatenate([np.ones(1), *shares])
    return float(missing[missing > 0.0].min())


if __name__ == "__main__":
    for file, live in ((FILE, make), (RULES, make_rules), (RULES_4, make_gauntlets)):
        if not file.exists():
            live(str(file))
            check_margins(str(file))
            lines = [
                f"{json.dumps(name)}: {json.dumps(entry, separators=(',', ':'))}"
                for name, entry in said(str(file)).items()
            ]
            file.with_suffix(".json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
