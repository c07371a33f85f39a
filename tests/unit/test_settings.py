"""One description of the settings of a problem: everything that shows them is held to it."""

import inspect
from typing import Any

import pytest
from docs.generate import commands, settings_page

import finalist as fl
from finalist.client import Server
from finalist.errors import ProblemError, StudyError
from finalist.problem import as_problem
from finalist.problem.shown import BESIDE, Shown
from finalist.settings import SETTINGS, ProblemWords
from finalist.study import Batch, Pull, Status
from finalist.study.batch import open_batch
from finalist.study.results.writing import sheet_of
from finalist.web.api.answers import BatchAnswer, StatusAnswer
from finalist.web.api.bodies import NewStudy, PlanBody
from finalist.web.pages.form import DEFAULTS, RESULTS

ARMS = fl.Arms([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])
#: What else makes a problem of arms.
OBJECTS = {"goal", "rules", "candidates"}
#: A value of each setting that is not its default.
OTHER: dict[str, Any] = {
    "sigma": [0.5, 1.0, 2.0],
    "noise": "sub-gaussian",
    "delta": 0.2,
    "objective": "min",
    "epsilon": 0.25,
    "top": 2,
    "cost": [1.0, 2.0, 3.0],
    "batch_intercept": True,
    "misspecification": 0.5,
    "check": 0.1,
    "budget": 50,
    "max_pulls_per_arm": 7,
    "unit": "kg",
}


def test_type_checkers_see_the_same_names():
    assert set(ProblemWords.__annotations__) == set(SETTINGS) | OBJECTS
    assert set(OTHER) == set(SETTINGS)


def test_defaults_are_those_of_problems():
    words = as_problem(ARMS, sigma=1.0).words()
    assert words == {name: one.default for name, one in SETTINGS.items()} | {"sigma": 1.0}


@pytest.mark.parametrize("name", SETTINGS)
def test_words_make_the_same_problem_again(name):
    given = {"sigma": 1.0, name: OTHER[name]}
    problem = as_problem(ARMS, **given)
    assert problem.words()[name] == OTHER[name]
    again = as_problem(ARMS, **problem.words())
    assert again == problem
    needs = SETTINGS[name].needs
    assert needs is None or problem.needs == {needs}


@pytest.mark.parametrize("name", SETTINGS)
def test_studies_keep_every_setting(name, tmp_path):
    words = {"sigma": 1.0, name: OTHER[name]}
    if name == "misspecification":
        words["misspecification"] = 0.01  # half a unit hides every difference of these arms
    with fl.Study.create(tmp_path / "a.db", "one", ARMS, seed=1, **words) as study:
        first = study.settings
    with fl.Study.open(tmp_path / "a.db", "one") as again:
        assert again.settings == first
    stored = first["noise"] if name in ("sigma", "noise") else first
    assert stored["model" if name == "noise" else name] == words[name]
    with fl.Study.open(tmp_path / "a.db", "one", arms=ARMS, **words) as same:
        assert same.settings == first
    other: dict[str, Any] = {name: SETTINGS[name].default if name != "sigma" else 3.0}
    with pytest.raises(StudyError, match="other settings"):
        fl.Study.open(tmp_path / "a.db", "one", **other)


@pytest.mark.parametrize(
    "function", [fl.simulate, fl.plan, fl.complexity, fl.Study.create, Server.create]
)
def test_signatures_show_every_setting(function):
    shown = inspect.signature(function).parameters
    assert set(SETTINGS) <= set(shown)
    assert "words" not in shown
    assert "rules" not in shown
    real = function not in (fl.simulate, fl.complexity)
    for name, one in SETTINGS.items():
        if name != "sigma":
            assert shown[name].default == (one.usual if real else one.default)


@pytest.mark.parametrize("function", [fl.simulate, fl.plan, fl.complexity, fl.Study.create])
def test_a_problem_and_settings_are_not_given_together(function, tmp_path):
    problem = as_problem(ARMS, sigma=1.0)
    first = (tmp_path / "a.db", "one", problem) if function == fl.Study.create else (problem,)
    rest = ([1.0, 0.0],) if function in (fl.simulate, fl.complexity) else ()
    with pytest.raises(ProblemError, match="a problem is given, and objective too"):
        function(*first, *rest, objective="min")


@pytest.mark.parametrize("command", ["new", "plan", "simulate"])
def test_commands_have_an_option_for_every_setting(command):
    options = {word for one in commands()[f"finalist {command}"].params for word in one.opts}
    for name in SETTINGS:
        # The cost of a pull differs between arms, or it is 1: it comes in a column.
        spelled = f"--{name.replace('_', '-')}"
        assert (spelled if name != "cost" else "--cost-column") in options


@pytest.mark.parametrize("body", [NewStudy, PlanBody])
def test_the_http_api_has_every_setting(body):
    fields = body.model_json_schema()["properties"]
    for name, one in SETTINGS.items():
        assert fields[name]["description"] == f"{one.help}."
        assert fields[name].get("default") == one.usual


def test_the_form_has_a_field_for_every_setting():
    assert set(SETTINGS) - {"cost"} <= set(DEFAULTS)
    assert tuple(RESULTS) == SETTINGS["noise"].choices


def test_the_reference_explains_every_setting():
    page = settings_page()
    for name, one in SETTINGS.items():
        assert f"| `{name}` | {one.help}" in page


@pytest.mark.parametrize("unit", ["", "  ", "a\nb", "x" * 41, 3])
def test_a_unit_is_a_short_text(unit):
    with pytest.raises(ProblemError, match=r"unit is .*; it is a text of at most 40"):
        as_problem(ARMS, sigma=1.0, unit=unit)


def test_what_is_shown_beside_results_is_described_in_one_place():
    """A field of `Shown` and its setting are enough: status, batch, API and sheets follow."""
    assert set(BESIDE) <= set(SETTINGS)
    words = {name: OTHER[name] for name in BESIDE}
    problem = as_problem(ARMS, sigma=1.0, **words)
    assert problem.beside() == words
    batch = open_batch(problem, (Pull(1, "0"),), 1, 1, "")
    assert batch.beside() == words
    headers, rows = sheet_of(batch.rows())
    assert words.items() <= dict(zip(headers, rows[0], strict=True)).items()
    for cls, answer in ((Status, StatusAnswer), (Batch, BatchAnswer)):
        assert issubclass(cls, Shown)
        assert set(BESIDE) <= set(answer.model_fields)
    listed = commands()["finalist status"].help or ""
    assert all(f" {name}," in listed for name in BESIDE)
