"""Old results with a new study: what they say, what they steer, and what they never touch."""

import itertools
import os
from typing import Any

import numpy as np
import pytest
from scipy import stats

import finalist as fl
from finalist.errors import (
    FileFormatError,
    NameTakenError,
    ProblemError,
    RewardError,
    StudyError,
    UnknownArmError,
    UnknownStudyError,
)
from finalist.inference.statistics import BatchResults
from finalist.problem import as_problem
from finalist.problem.rules import rules_of
from finalist.study import Study
from finalist.study.checks import ALARM
from finalist.study.history import examine, of_known
from finalist.study.results import as_history
from finalist.study.storage.upgrade import backup, restore
from finalist.study.storage.writer import Writer
from tests.study import faults

X = np.linspace(-1.0, 1.0, 7)
LINE = fl.Arms(X[:, None], list("abcdefg")).with_intercept()
STRAIGHT, HILL = dict(zip("abcdefg", X, strict=True)), dict(zip("abcdefg", 1 - X**2, strict=True))
NOISE = 0.1


def old(truth, repeats=3, seed=0, sigma=NOISE):
    rng = np.random.default_rng(seed)
    return [(name, mean + sigma * rng.normal()) for name, mean in truth.items()] + [
        (name, mean + sigma * rng.normal())
        for name, mean in truth.items()
        for _ in range(repeats - 1)
    ]


def create(where, name="one", history=None, **words):
    return Study.create(where, name, LINE, seed=1, history=history, **words)


def before(study):
    """Return what old results say."""
    return study.snapshot().history


def said(study):
    """Return the same in words."""
    return study.status(forecast=False).old_results


def measure(study, truth, size=None, seed=0, sigma=NOISE):
    rng = np.random.default_rng(seed)
    batch = study.ask(size)
    study.tell({pull.pull_id: truth[pull.arm] + sigma * rng.normal() for pull in batch})
    return batch


# ---- sigma -------------------------------------------------------------------------------


def test_sigma_may_be_left_out_and_is_then_unknown(where):
    study = create(where, history=old(STRAIGHT))
    assert study.settings["noise"] == {"model": "gaussian", "sigma": None}
    assert "sigma about 0." in said(study)
    assert before(study).sigma.degrees_of_freedom == 14
    with pytest.raises(ProblemError, match="sigma is not given"):
        create(where, "two")


def test_a_stated_sigma_stays_as_stated(where):
    study = create(where, history=old(STRAIGHT), sigma=0.12)
    assert study.settings["noise"]["sigma"] == 0.12
    assert study.status().warnings == ()


@pytest.mark.parametrize(("sigma", "word"), [(0.02, "more than"), (1.0, "less than")])
def test_a_sigma_that_repeats_contradict_is_said_before_the_first_pull(where, sigma, word):
    study = create(where, history=old(STRAIGHT), sigma=sigma)
    (warning,) = study.status().warnings
    assert word in warning
    assert "level 0.001" in warning
    assert Study.open(where, "one").status().warnings == (warning,)


def test_yes_and_no_need_no_sigma_and_say_so(where):
    coins = [("a", 1.0), ("a", 0.0), ("b", 1.0), ("b", 1.0)]
    with pytest.raises(ProblemError, match="--noise bernoulli"):
        create(where, history=coins)
    study = create(where, history=coins, noise="bernoulli")
    assert before(study).sigma is None
    assert "sigma" not in said(study)
    with pytest.raises(RewardError, match="row 2"):
        create(where, "two", history=[("a", 1.0), ("b", 0.4)], noise="bernoulli")


def test_noise_without_an_estimate_still_has_to_be_stated(where):
    with pytest.raises(ProblemError, match="sub-Gaussian"):
        create(where, history=old(STRAIGHT), noise="sub-gaussian")
    with pytest.raises(fl.errors.FinalistError, match=r"unknown sigma.*Give sigma="):
        create(where, history=old(STRAIGHT), strategy="rage")


def test_noise_of_each_candidate_is_compared_with_its_own(where):
    sigmas = np.where(X > 0, 1.0, 0.01)
    rng = np.random.default_rng(3)
    of = dict(zip("abcdefg", sigmas, strict=True))
    rows = [(name, STRAIGHT[name] + of[name] * rng.normal()) for name in "abcdefg" * 3]
    study = create(where, history=rows, sigma=sigmas)
    assert study.status().warnings == ()
    assert "in units of those given" in said(study)
    wrong = create(where, "two", history=rows, sigma=sigmas[::-1])
    assert "their sigmas say" in " ".join(wrong.status().warnings)


# ---- the model ---------------------------------------------------------------------------


@pytest.mark.parametrize("words", [{}, {"sigma": NOISE}, {"sigma": 0.02}, {"objective": "min"}])
def test_a_hill_is_no_line_and_a_line_is_one(where, words):
    bent, straight = (
        create(where, history=old(HILL), **words),
        create(where, "two", history=old(STRAIGHT), **words),
    )
    assert before(bent).fits is False
    warning = bent.status().warnings[-1]
    for word in ("against the model", "bending", "separate", "level 0.001"):
        assert word in warning
    assert before(straight).fits is True
    assert "the model fits them" in said(straight)


def test_a_stated_sigma_tests_the_model_without_a_repeat(where):
    once = [*HILL.items()]
    assert before(create(where, history=once, sigma=NOISE)).fits is False
    unknown = create(where, "two", history=once)
    assert before(unknown).fits is None
    assert "do not tell whether the model fits" in said(unknown)
    assert "do not tell sigma" in said(unknown)


def test_a_model_that_may_be_wrong_is_given_its_due(where):
    assert before(create(where, history=old(HILL), misspecification=1.0)).fits is True
    one = create(where, "two", history=old(HILL), misspecification=0.01, sigma=NOISE)
    assert before(one).fits is False


def test_without_features_there_is_no_model_to_doubt(where):
    arms = fl.Arms.unstructured(list("abcdefg"))
    study = Study.create(where, "one", arms, history=old(HILL))
    assert study.status().warnings == ()
    assert "model" not in said(study)


def test_a_level_of_the_old_results_is_no_misfit_where_batches_shift(where):
    arms = fl.Arms(X[:, None], list("abcdefg"))  # no constant
    rows = [(name, value + 50.0) for name, value in old(STRAIGHT)]
    shifted = Study.create(where, "one", arms, history=rows, batch_intercept=True)
    assert before(shifted).fits is True
    assert before(Study.create(where, "two", arms, history=rows)).fits is False


def test_equal_repeats_fail_no_test(where):
    rows = [(name, round(mean, 1)) for name, mean in HILL.items() for _ in range(2)]
    study = create(where, history=rows)
    assert study.status().warnings == ()
    assert "below the resolution" in said(study)
    level = create(where, "two", history=[("a", 1.0), ("a", 1.0), ("b", 1.0)] * 5, sigma=1.0)
    assert level.status().warnings == ()


@pytest.mark.parametrize("sigma", [None, NOISE])
def test_false_warnings_are_as_rare_as_they_claim(sigma):
    problem, runs, found = as_problem(LINE, sigma=sigma), 3000, 0
    rng = np.random.default_rng(8)
    index = np.repeat(np.arange(7), 3)
    for _ in range(runs):
        values = X[index] + NOISE * rng.normal(size=len(index))
        found += bool(examine(problem, BatchResults.of(7, index, values)).warnings)
    tests = 1 if sigma is None else 3  # the model; and scatter, too much or too little
    assert stats.binomtest(found, runs, tests * ALARM, alternative="greater").pvalue > 1e-4


# ---- what they never touch ---------------------------------------------------------------


def test_old_results_take_nothing_away_and_their_warning_goes_when_the_study_can_tell(where):
    # By rules 3 a study of a line measures its ends alone, and can never tell.
    problem = fl.Problem(LINE, noise=fl.Gaussian(NOISE), rules=rules_of(2))
    study = Study.create(where, "one", problem, seed=1, history=old(HILL, repeats=8))
    seen = 0
    for k in range(30):
        status = study.status(forecast=False)
        assert status.certain and status.risk is not None  # noqa: PT018
        assert status.doubts == ()
        told = any("Old results speak against" in words for words in status.warnings)
        test = study.snapshot().fit.lack_of_fit() if k else None
        assert told == (test is None or test.df_fit < 5 or test.df_pure < 49)
        seen += told
        if not measure(study, STRAIGHT, 12, seed=k):
            break
    assert seen >= 3


def test_a_warning_goes_when_the_studys_own_test_has_as_many_degrees_of_freedom(where):
    """The old instrument was noisier than the new one, which is as sigma says."""
    arms = fl.Arms.unstructured(list("abcdefg"))
    truth = dict.fromkeys("abcdefg", 0.0)
    study = Study.create(where, "one", arms, history=old(truth, 10), sigma=0.02, seed=1)
    seen = []
    for k in range(12):
        seen.append(len(study.status(forecast=False).warnings))
        own = study.snapshot().fit.degrees_of_freedom if k else 0
        assert seen[-1] == (own < 63)
        measure(study, truth, 14, seed=k, sigma=0.02)
    assert seen[0] == 1
    assert seen[-1] == 0


def test_the_studys_own_warning_replaces_that_of_the_old_results(where):
    study = create(where, history=old(STRAIGHT), sigma=0.02)
    assert "Old results" in study.status().warnings[0]
    for k in range(3):
        measure(study, STRAIGHT, 14, seed=k)
    status = study.status(forecast=False)
    assert not status.certain
    (warning,) = status.warnings
    assert "Old results" not in warning


def test_a_study_that_measures_the_ends_alone_keeps_the_warning_to_its_verdict(where):
    """On a line the ends tell the slope: a hill is never seen, but the old results saw it."""
    study = create(where, history=old(HILL), sigma=NOISE, epsilon=0.1, check=0.0)
    for k in range(40):
        if not measure(study, {**HILL, "g": 0.3}, 14, seed=k):
            break
    status, fit = study.status(forecast=False), study.snapshot().fit
    assert status.verdict == "winner"
    assert fit.lack_of_fit() is None or fit.lack_of_fit().df_fit < 5
    assert any("Old results speak against the model" in words for words in status.warnings)


def test_they_aim_the_first_test(where):
    """Old results say that f and g are in question: the first test measures these."""
    arms = fl.Arms.unstructured(list("abcdefg"))
    truth = dict(zip("abcdefg", [0.0, -0.2, -0.4, -0.4, -0.3, 0.9, 1.0], strict=True))
    found = {"with": old(truth, 500, sigma=1.0), "without": None}
    shares: dict[str, list[float]] = {name: [] for name in found}
    for seed, (name, history) in itertools.product(range(8), found.items()):
        study = Study.create(where, f"{name} {seed}", arms, sigma=1.0, seed=seed, history=history)
        rng = np.random.default_rng(seed)
        study.tell({pull.pull_id: truth[pull.arm] + rng.normal() for pull in study.ask()})
        assert study.status(forecast=False).pulls == 7  # old results are none of them
        assert all(arm.evidence == 0.0 for arm in study.status(forecast=False).arms)
        shares[name] += [pull.arm in "fg" for pull in study.ask()]
    assert np.mean(shares["with"]) > 0.8
    assert np.mean(shares["without"]) < 0.6


# ---- names -------------------------------------------------------------------------------


def test_unknown_names_create_nothing(tmp_path):
    rows = [*old(STRAIGHT), *((f"other {i}", 1.0) for i in range(7))]
    with pytest.raises(UnknownArmError, match=r"7 candidates .*'other 4' and 2 more\. Correct"):
        create(tmp_path / "lab.db", history=rows)
    assert not (tmp_path / "lab.db").exists()
    kept, words = of_known(LINE, as_history(rows))
    assert len(kept) == 21
    assert words.startswith("7 old results of other candidates left out: 'other 0', ")
    with pytest.raises(UnknownArmError):
        of_known(LINE, as_history([("other", 1.0)]))


def test_names_of_the_same_candidate_are_repeats(where):
    arms = fl.Arms([[0.0], [0.0], [1.0]], ["a", "again", "b"]).with_intercept()
    study = Study.create(where, "one", arms, history=[("a", 1.0), ("again", 3.0), ("b", 0.0)])
    assert before(study).sigma.degrees_of_freedom == 1


# ---- one transaction ---------------------------------------------------------------------


def _die_on(send, where, kind):
    """Create a study with old results, and die when an event of this kind is to be written."""
    append = Writer.append

    def killed(self, study, number, what, *args, **words):
        if what == kind:
            send("dying")
            os._exit(9)
        return append(self, study, number, what, *args, **words)

    setattr(Writer, "append", killed)  # noqa: B010
    create(where, history=old(STRAIGHT))


def test_a_kill_between_study_and_history_leaves_neither(where):
    create(where, "before", sigma=1.0).close()
    process, receiver = faults.start(_die_on, where, "history")
    assert faults.received(receiver) == ["dying"]
    process.join(60)
    assert process.exitcode == 9
    with pytest.raises(UnknownStudyError):
        Study.open(where, "one")
    study = create(where, history=old(STRAIGHT))
    assert [event["kind"] for event in study.history()] == ["created", "history"]


def test_what_cannot_be_used_creates_no_study_and_no_file(tmp_path):
    where = tmp_path / "lab.db"
    with pytest.raises(StudyError, match="earlier measurements"):
        create(where, history=old(STRAIGHT), strategy="g", sigma=1.0)
    with pytest.raises(RewardError, match="row 1"):
        create(where, history=[("a", float("inf"))])
    with pytest.raises(FileFormatError):
        create(where, history=3)
    assert not where.exists()
    create(where, sigma=1.0).close()
    with pytest.raises(NameTakenError):
        create(where, history=old(STRAIGHT))
    assert len(Study.open(where, "one").history()) == 1


# ---- lives of studies with old results -----------------------------------------------------


LIVES: dict[str, dict[str, Any]] = {
    "plain": {"sigma": NOISE},
    "unknown": {},
    "shifts": {"batch_intercept": True},
    "least": {"objective": "min", "sigma": NOISE},
    "coins": {"noise": "bernoulli"},
    "each": {"sigma": np.where(X > 0, 0.2, 0.1)},
}


def rows_for(words, truth=HILL):
    rows = old(truth)
    return [(n, float(v > 0.5)) for n, v in rows] if words.get("noise") == "bernoulli" else rows


@pytest.mark.parametrize("life", LIVES)
def test_a_stored_study_says_the_same_after_everything(where, life, tmp_path):
    words = LIVES[life]
    study = create(where, history=rows_for(words), **words)
    later = create(where, "later", **{"sigma": None, **words} if life != "coins" else words)
    later.import_history(rows_for(words))
    first = study.status(forecast=False)
    assert said(later) == first.old_results
    assert later.status(forecast=False).warnings == first.warnings
    for one in (study, later):
        batch = one.ask(14)
        one.tell({p.pull_id: float(p.pull_id % 2) for p in batch})
    study.withdraw("a", "d")
    study.ask(10)
    after = study.status(forecast=False).to_dict()
    assert after["old_results"] == first.old_results  # also of those withdrawn
    assert Study.open(where, "one").status(forecast=False).to_dict() == after
    fork = study.fork("fork", until=1)
    assert fork.status(forecast=False).old_results == first.old_results
    assert before(fork) == before(study)
    if not str(where).startswith("postgresql"):
        backup(where, tmp_path / "copy.db")
        restore(tmp_path / "other.db", tmp_path / "copy.db")
        copied = Study.open(tmp_path / "other.db", "one").status(forecast=False).to_dict()
        assert copied == after


def test_candidates_that_cannot_be_measured_now_may_have_been_before(where):
    arms = fl.Arms(X[:, None], list("abcdefg"), measurable=[True] * 6 + [False]).with_intercept()
    study = Study.create(where, "one", arms, history=old(STRAIGHT))
    assert before(study).candidates == 7
    assert study.status().warnings == ()
    assert all(pull.arm != "g" for pull in study.ask(20))
