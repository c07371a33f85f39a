"""Settings of a study: copies of what is stored, whole numbers, and what opening compares."""

from dataclasses import replace

import numpy as np
import pytest

import finalist as fl
from finalist.errors import StudyError
from finalist.study import Study
from finalist.study.storage.reader import Reader
from tests.study.lab import ARMS, Lab

LAB = Lab(theta=np.array([1.0, 0.3, 0.0]))


def create(where, name="one", arms=ARMS, **settings):
    return Study.create(where, name, arms, **{"sigma": 0.6, "seed": 7, **settings})


def test_settings_are_copies(where):
    study = create(where, metadata={"x": [1]})
    study.settings["noise"]["sigma"] = 1e-9
    study.metadata["x"].append(2)
    assert study.settings["noise"]["sigma"] == 0.6
    assert study.metadata == {"x": [1]}


def test_integers_of_numpy_are_integers(where):
    study = create(where)
    batch = study.ask(np.int64(8))
    study.void(np.int64(1), "lost")
    study.missing(np.int64(2), "lost")
    study.tell({np.int64(3): 1.0})
    study.amend(np.int64(3), 2.0, "wrong")
    study.tell(LAB.rewards(study.ask()))
    assert len(study.fork("f", until=np.int64(1)).ask()) == len(batch)


def test_whole_numbers_of_numpy_are_whole_numbers(where):
    study = create(where, seed=np.int64(3), budget=np.int32(30))
    assert (study.settings["seed"], study.settings["budget"]) == (3, 30)
    with pytest.raises(StudyError, match=r"below 2\*\*63"):
        create(where, "two", seed=2**63)


def test_opening_with_the_sigma_of_another_noise(where):
    create(where, sigma=2.0, noise="sub-gaussian")
    Study.open(where, "one", sigma=2.0)
    with pytest.raises(StudyError, match="other settings"):
        Study.open(where, "one", sigma=1.0)


def test_candidates_are_compared_together_with_the_arms(where):
    arms = fl.Arms(
        [[1.0, 0.0], [0.0, 1.0], [1.0, 2.0]], list("abc"), measurable=[True, True, False]
    )
    others = fl.Arms([[1.0, 1.0], [2.0, 1.0]], list("pq"))
    words = {"sigma": [1.0, 2.0, 3.0], "cost": [1.0, 2.0, 3.0]}
    create(where, arms=arms, candidates=others, **words)
    Study.open(where, "one", arms=arms, candidates=others, **words)  # one of each given arm
    with pytest.raises(StudyError, match="other settings"):
        Study.open(where, "one", arms=arms, candidates=others, cost=[1.0, 2.0, 4.0])
    with pytest.raises(StudyError, match="candidates are compared together with the arms"):
        Study.open(where, "one", candidates=others)
    with pytest.raises(StudyError, match="candidates is of type str; use Arms"):
        Study.open(where, "one", arms=arms, candidates="pq")


def test_a_study_of_the_first_version_is_opened_with_the_words_of_now(where, monkeypatch):
    study = create(where)
    kept = study.settings
    later = ("top", "cost", "batch_intercept", "misspecification", "measurable", "candidate")
    early = replace(study._log.row, settings={k: v for k, v in kept.items() if k not in later})
    monkeypatch.setattr(Reader, "study", lambda *_: early)
    Study.open(where, "one", top=1, cost=1.0, batch_intercept=False, misspecification=0.0)
    with pytest.raises(StudyError, match="top is 1 and not 2"):
        Study.open(where, "one", top=2)
