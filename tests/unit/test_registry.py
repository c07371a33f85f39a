"""Strategies of other people: registered in this process, or declared by an installed package."""

import importlib.metadata
import sys
from dataclasses import dataclass, field, make_dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import finalist as fl
from finalist.cli.inputs import configured as with_settings
from finalist.errors import ProblemError, StudyError
from finalist.lab.benchmark.specs import confident, parse_spec
from finalist.strategies import STRATEGIES, all_strategies, named, registry, strategy_class, table
from finalist.web.pages.form import strategies as offered


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """Leave the registry as it was."""
    known = dict(STRATEGIES)
    monkeypatch.setattr(registry, "_loaded", True)
    yield
    STRATEGIES.clear()
    STRATEGIES.update(known)


@dataclass(frozen=True)
class Mine:
    """XY-Adaptive under another name."""

    name: ClassVar[str] = "mine"
    alpha: float = 0.4

    def start(self, problem: fl.Problem, seed: int = 0) -> Any:
        return fl.XYAdaptive(alpha=self.alpha).start(problem, seed)


def same_again() -> type:
    """Return a class that was defined in the same place, as by a cell that is run twice."""

    @dataclass(frozen=True)
    class Again:
        name: ClassVar[str] = "again"

        def start(self, problem: fl.Problem, seed: int = 0) -> Any:
            return fl.XYAdaptive().start(problem, seed)

    return Again


ARMS = fl.Arms.unstructured(3)
THETA = [1.0, 0.0, 0.0]


def test_a_registered_strategy_is_known_by_its_name_everywhere():
    assert fl.register(Mine) is Mine
    runs = fl.simulate(ARMS, THETA, "mine", runs=3, sigma=1.0)
    assert runs.strategy == "Mine(alpha=0.4)"
    assert (
        runs.samples.tolist()
        == fl.simulate(ARMS, THETA, "xy-adaptive", runs=3, sigma=1.0).samples.tolist()
    )
    assert "mine" in fl.plan(ARMS, sigma=1.0, gap=0.5, draws=1, strategy="mine").words()
    assert parse_spec("mine:alpha=0.1").label == "mine:alpha=0.1"
    assert "mine" in confident()
    assert "mine" in offered()
    assert with_settings("mine", ["alpha=0.2"], ARMS, None) == Mine(alpha=0.2)
    with pytest.raises(ProblemError, match="the settings of mine are alpha"):
        with_settings("mine", ["beta=1"], ARMS, None)


def test_the_same_class_again_is_fine_and_the_newer_one_counts():
    assert fl.register(fl.register(Mine)) is Mine
    first, second = fl.register(same_again()), fl.register(same_again())
    assert first is not second
    assert strategy_class("again") is second


def test_a_name_that_another_class_has_is_refused():
    @dataclass(frozen=True)
    class Other(Mine):
        pass

    fl.register(Mine)
    with pytest.raises(ProblemError, match=r"name 'mine' of .*Other is taken by .*Mine; give"):
        fl.register(Other)
    assert STRATEGIES["mine"] is Mine


def start(self, problem, seed=0):
    return None


def frozen(*settings: Any, **words: Any) -> Any:
    body = {"name": "some", "start": start, **words}
    return make_dataclass("Some", settings, namespace=body, frozen=True)


REFUSED = {
    "is not a strategy class; put @fl.register": Mine(),
    "has the name None; write name": frozen(name=None),
    "has the name ''; write": frozen(name=""),
    "has the name 'two words'; .* without spaces": frozen(name="two words"),
    "has the name 'a:b'": frozen(name="a:b"),
    "has the name 'a,b'": frozen(name="a,b"),
    "has no method start": frozen(start=3),
    "Some is not a frozen dataclass.*put @dataclass": type(
        "Some", (), {"name": "s", "start": start}
    ),
    "is not a frozen dataclass": dataclass(type("Some", (), {"name": "some", "start": start})),
    "has its name as a setting": make_dataclass(
        "Some", [("name", str, "some")], namespace={"start": start}, frozen=True
    ),
    "no default for its setting 'rate'; give": frozen(("rate", float)),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_no_strategy_is_refused_with_a_remedy(words):
    known = dict(STRATEGIES)
    with pytest.raises(ProblemError, match=words):
        fl.register(REFUSED[words])
    assert known == STRATEGIES


def test_settings_without_a_default_are_fine_for_one_that_is_told_the_truth():
    def knowing(cls, arms, theta):
        return cls(float(theta[0]), [])

    extra: Any = ("extra", list, field(default_factory=list))
    cls = frozen(("rate", float), extra, knowing=classmethod(knowing))
    told: Any = named(fl.register(cls).name, ARMS, np.array([7.0, 0.0, 0.0]))
    assert told.rate == 7.0


def test_every_strategy_of_ours_would_be_taken():
    for cls in list(STRATEGIES.values()):
        assert fl.register(cls) is cls


class Points:
    """Entry points of installed packages, as importlib.metadata gives them."""

    def __init__(self, monkeypatch, **values: str) -> None:
        self.values, self.asked = values, 0
        monkeypatch.setattr(importlib.metadata, "entry_points", self)
        monkeypatch.setattr(registry, "_loaded", False)

    def __call__(self, *, group: str) -> list[importlib.metadata.EntryPoint]:
        assert group == "finalist.strategies"
        self.asked += 1
        return [importlib.metadata.EntryPoint(n, v, group) for n, v in self.values.items()]


HERE = __name__


def test_entry_points_are_loaded_once_and_only_when_needed(monkeypatch):
    points = Points(monkeypatch, mine=f"{HERE}:Mine")
    assert named("gauntlet", ARMS) == fl.Gauntlet()
    assert points.asked == 0
    assert named("mine", ARMS) == Mine()
    assert strategy_class("nobody") is None
    assert "mine" in all_strategies()
    assert points.asked == 1


def test_all_names_have_those_of_packages(monkeypatch):
    Points(monkeypatch, mine=f"{HERE}:Mine")
    assert "mine" in confident()


def test_a_wrong_name_lists_those_of_packages(monkeypatch):
    Points(monkeypatch, mine=f"{HERE}:Mine")
    with pytest.raises(ProblemError, match=r"strategy is 'guess'; it is one of .*mine"):
        fl.simulate(ARMS, THETA, "guess", runs=1, sigma=1.0)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_package:Mine", "ModuleNotFoundError"),
        (f"{HERE}:Nobody", "AttributeError"),
        (f"{HERE}:ARMS", "ProblemError: .* is not a strategy"),
    ],
)
def test_a_broken_entry_point_is_left_out_with_a_warning(monkeypatch, value, reason):
    Points(monkeypatch, broken=value, mine=f"{HERE}:Mine")
    with pytest.warns(RuntimeWarning, match=f"the strategy broken = '{value}' .{reason}"):
        assert named("mine", ARMS) == Mine()
    assert "broken" not in all_strategies()


def test_an_entry_point_takes_no_name_of_ours(monkeypatch):
    @dataclass(frozen=True)
    class Gauntlet(Mine):
        name: ClassVar[str] = "gauntlet"

    monkeypatch.setattr(sys.modules[HERE], "Thief", Gauntlet, raising=False)
    Points(monkeypatch, gauntlet=f"{HERE}:Thief")
    with pytest.warns(RuntimeWarning, match="is taken by finalist.strategies.gauntlet"):
        assert all_strategies()["gauntlet"] is fl.Gauntlet


def test_a_study_with_a_registered_strategy_is_created_closed_and_opened(tmp_path):
    fl.register(Mine)
    file = tmp_path / "lab.db"
    with fl.Study.create(file, "mine", ARMS, sigma=0.1, strategy=Mine(alpha=0.3)) as study:
        pulls = study.ask()
        study.tell({pull.pull_id: THETA[ARMS.names.index(pull.arm)] for pull in pulls})
    with fl.Study.open(file, "mine") as study:
        assert study.settings["strategy"] == {"name": "mine", "settings": {"alpha": 0.3}}
        assert study.status(forecast=False).winner == ARMS.names[0]

    del STRATEGIES["mine"]
    with pytest.raises(StudyError, match=r"'mine', which is not known here. Register its class"):
        fl.Study.open(file, "mine").status()
    fl.register(Mine)
    with fl.Study.open(file, "mine") as study:
        assert study.status(forecast=False).pulls == len(pulls)


def test_a_study_opens_with_the_strategy_of_a_package(tmp_path, monkeypatch):
    fl.register(Mine)
    file = tmp_path / "lab.db"
    fl.Study.create(file, "mine", ARMS, sigma=0.1, strategy="mine").close()
    del STRATEGIES["mine"]
    Points(monkeypatch, mine=f"{HERE}:Mine")
    with fl.Study.open(file, "mine") as study:
        assert len(study.ask()) > 0


def test_a_study_takes_no_class_that_it_could_not_find_again(tmp_path):
    with pytest.raises(StudyError, match=r"Put @fl.register above the class Mine. Known: .*rage"):
        fl.Study.create(tmp_path / "lab.db", "mine", ARMS, sigma=0.1, strategy=Mine())


def test_a_study_takes_no_setting_that_it_could_not_keep(tmp_path):
    cls = frozen(("rates", tuple, (1, 2)))
    with pytest.raises(
        StudyError, match="'some' with rates of type tuple cannot be kept; settings"
    ):
        fl.Study.create(tmp_path / "lab.db", "some", ARMS, strategy=fl.register(cls)(), sigma=1.0)


def test_a_line_in_the_table_is_enough():
    classes: list[Any] = [cls for cls in vars(table).values() if isinstance(cls, type)]
    assert len(classes) >= 17
    for cls in classes:
        assert STRATEGIES[cls.name] is cls
        assert getattr(fl, cls.__name__) is getattr(fl.strategies, cls.__name__) is cls
        assert cls.__name__ in fl.__all__
