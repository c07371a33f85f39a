"""Sigma is never assumed: whatever depends on it asks for it, in one set of words."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.errors import FinalistError, ProblemError, StudyError
from finalist.lab import Store
from finalist.problem import UNSET, as_problem, noise
from tests.cli.common import check_refused, run, write

ARMS = fl.Arms(np.eye(3), names=["a", "b", "c"])
THETA = np.array([1.0, 0.5, 0.0])


def rehearse(_: Any, **words: Any) -> Any:
    """Simulate a study of a line; a constant is the best everywhere."""
    return fl.Region.box([-1], [1], "linear").net().rehearse([0.0, 1.0], 0.5, **words)


#: Every public way that takes `sigma=`, without it: where a study could be, and words.
TAKE_SIGMA: dict[str, Callable[..., Any]] = {
    "Study.create": lambda place, **w: fl.Study.create(place, "metals", ARMS, **w),
    "simulate": lambda _, **w: fl.simulate(ARMS, THETA, runs=1, **w),
    "plan": lambda _, **w: fl.plan(ARMS, gap=0.5, draws=1, **w),
    "complexity": lambda _, **w: fl.complexity(ARMS, THETA, **w),
    "rehearse": rehearse,
    "Store.simulate": lambda place, **w: store(place, **w),
    "as_problem": lambda _, **w: as_problem(ARMS, **w),
}
#: Those with `noise=`, a model by its name.
TAKE_NOISE = [name for name in TAKE_SIGMA if name not in ("complexity", "rehearse")]
#: Models and a problem, which have their sigma from a model.
VALUES: dict[str, Callable[[], Any]] = {
    "Gaussian": fl.Gaussian,
    "SubGaussian": fl.SubGaussian,
    "Problem": lambda: fl.Problem(ARMS),
}


def store(place: Any, **words: Any) -> Any:
    with Store(place) as kept:
        try:
            return kept.simulate(ARMS, THETA, runs=1, **words)
        finally:
            assert len(kept) == ("sigma" in words or words.get("noise") == "bernoulli")


def check_sub_gaussian(error):
    text = str(error.value)
    assert text.startswith("sigma is not given. For sub-Gaussian noise")
    assert "(b - a) / 2" in text
    for refused in ("None", "null", "unknown"):
        assert refused not in text


def check_both_remedies(error):
    text = str(error.value)
    assert text.startswith("sigma is not given")
    for part in ("number", "standard deviation", "None", "estimated", "Bernoulli"):
        assert part.lower() in text.lower(), part


@pytest.mark.parametrize("name", TAKE_SIGMA)
def test_whatever_takes_sigma_asks_for_it(name, tmp_path):
    with pytest.raises(ProblemError) as error:
        TAKE_SIGMA[name](tmp_path / "lab.db")
    check_both_remedies(error)
    if name == "Study.create":  # not even a file
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("model", ["gaussian", "sub-gaussian"])
@pytest.mark.parametrize("name", TAKE_NOISE)
def test_a_model_by_its_name_has_no_sigma(name, model, tmp_path):
    with pytest.raises(ProblemError) as error:
        TAKE_SIGMA[name](tmp_path / "lab.db", noise=model)
    (check_both_remedies if model == "gaussian" else check_sub_gaussian)(error)


@pytest.mark.parametrize("name", VALUES)
def test_models_and_problems_ask_for_it(name):
    with pytest.raises(ProblemError) as error:
        VALUES[name]()
    (check_sub_gaussian if name == "SubGaussian" else check_both_remedies)(error)


@pytest.mark.parametrize("name", TAKE_SIGMA)
def test_a_number_is_enough(name, tmp_path):
    TAKE_SIGMA[name](tmp_path / "lab.db", sigma=0.5)


@pytest.mark.parametrize("name", TAKE_NOISE)
def test_rewards_0_and_1_need_none(name, tmp_path):
    TAKE_SIGMA[name](tmp_path / "lab.db", noise="bernoulli")


@pytest.mark.parametrize("name", ["plan", "complexity", "rehearse"])
def test_what_draws_rewards_needs_a_number_for_unknown_noise(name, tmp_path):
    with pytest.raises(FinalistError, match="sigma"):
        TAKE_SIGMA[name](tmp_path / "lab.db", sigma=None)


def test_none_is_unknown(tmp_path):
    with fl.Study.create(tmp_path / "lab.db", "metals", ARMS, sigma=None) as study:
        assert study.settings["noise"] == {"model": "gaussian", "sigma": None}
    assert fl.Problem(ARMS, noise=fl.Gaussian(None)).needs == {"unknown sigma"}


def test_no_public_function_has_a_size_of_the_noise_of_its_own():
    """A signature with sigma=1.0 would not ask; optimal designs of equal noise are the same."""
    for name in fl.__all__:
        thing = getattr(fl, name)
        calls: list[Any] = [thing] if inspect.isfunction(thing) else []
        if inspect.isclass(thing):
            calls = [thing, *(f for _, f in inspect.getmembers(thing, inspect.isfunction))]
        for call in calls:
            sigma = inspect.signature(call).parameters.get("sigma")
            if sigma is None or name == "optimal_design":
                continue
            assert not isinstance(sigma.default, float), (name, call)


def test_designs_need_no_sigma():
    design = fl.optimal_design(ARMS, "xy")
    assert np.allclose(design.weights, fl.optimal_design(ARMS, "xy", sigma=5.0).weights)
    assert fl.round_design(design, 9).sum() == 9


# ---- what is stored stays ----------------------------------------------------------------


def test_a_study_is_opened_with_some_of_its_words(tmp_path):
    place = tmp_path / "lab.db"
    fl.Study.create(place, "loud", ARMS, sigma=5.0, delta=0.1).close()
    fl.Study.create(place, "coins", ARMS, noise="bernoulli").close()
    fl.Study.create(place, "bounded", ARMS, noise="sub-gaussian", sigma=2.0).close()
    fl.Study.create(place, "unknown", ARMS, sigma=None, seed=3).close()
    for name, words in (
        ("loud", {"delta": 0.1}),
        ("loud", {"noise": "gaussian"}),
        ("loud", {"noise": "gaussian", "sigma": 5.0}),
        ("coins", {"delta": 0.05}),
        ("coins", {"noise": "bernoulli"}),
        ("bounded", {"noise": "sub-gaussian"}),
        ("bounded", {"sigma": 2.0}),
        ("unknown", {"seed": 3}),
        ("unknown", {"noise": "gaussian"}),
    ):
        fl.Study.open(place, name, arms=ARMS, **words).close()
    for name, words in (
        ("loud", {"delta": 0.2}),
        ("loud", {"sigma": 1.0}),
        ("loud", {"noise": "sub-gaussian"}),
        ("coins", {"noise": "gaussian"}),
        ("bounded", {"noise": "gaussian"}),
    ):
        with pytest.raises(StudyError, match="other settings"):
            fl.Study.open(place, name, arms=ARMS, **words)


# ---- the command line --------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("new", "metals"),
        ("plan", "--gap", 0.5),
        ("simulate", "--theta", "1,0"),
        ("complexity", "--theta", "1,0"),
    ],
)
def test_commands_ask_for_it(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "arms.csv", "name,x,y\na,1,0\nb,0,1\n")
    command, *rest = words
    name = rest[:1] if command == "new" else []
    answer = run(command, *name, "arms.csv", *rest[len(name) :])
    check_refused(answer, "sigma is not given", "--sigma", "number", "unknown")
    if command != "complexity":
        assert "--noise bernoulli" in answer.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["arms.csv"]


def test_the_words_are_one_text():
    with pytest.raises(ProblemError) as error:
        noise.as_noise(UNSET, None)
    assert str(error.value) == str(noise.missing_sigma())
