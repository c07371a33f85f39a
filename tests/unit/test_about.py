"""What strategies and runs declare, and that it is true."""

from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import finalist as fl
from finalist.errors import FinalistError, NotYetSupportedError
from finalist.problem import FEATURES, as_problem
from finalist.strategies import STRATEGIES, Run, Verdict, about, block_size, named
from finalist.strategies.abilities import (
    Changeable,
    Evident,
    Explaining,
    Following,
    Informed,
    Lossy,
    Sized,
    Speaking,
)
from finalist.strategies.phased.phase import DiscardingRun
from finalist.strategies.protocol import Declared, Playable
from tests.unit.test_problem import every_feature

ARMS = fl.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
ABILITIES = (Changeable, Evident, Explaining, Following, Informed, Lossy, Playable, Sized, Speaking)
OURS = [n for n, cls in STRATEGIES.items() if cls.__module__.startswith("finalist.strategies")]


def refuses(strategy, problem):
    """Tell whether a strategy refuses what a problem needs; other complaints do not count."""
    try:
        with suppress(NotYetSupportedError):
            strategy.start(problem)
            return False
    except FinalistError:
        return False
    return True


@pytest.mark.parametrize("name", OURS)
def test_what_a_strategy_supports_is_what_it_does_not_refuse(name):
    strategy = named(name, ARMS, np.ones(2))
    assert isinstance(strategy, Declared)
    problems = every_feature(ARMS)
    assert set(problems) == FEATURES
    taken = {word for word, problem in problems.items() if not refuses(strategy, problem)}
    assert set(about(strategy).supports or ()) == taken


@pytest.mark.parametrize("strategy", [fl.GAllocation, fl.XYAdaptive])
def test_the_greedy_rule_supports_less(strategy):
    assert strategy(allocation="greedy").supports < strategy().supports
    assert about(strategy).supports is None  # a class cannot know


@dataclass(frozen=True)
class Bare:
    """A strategy of somebody who says no more than needed."""

    name: ClassVar[str] = "bare"

    def start(self, problem, seed=0):  # noqa: ARG002
        return BareRun()


class BareRun:
    verdict = Verdict(None, (0, 1), 0)

    def next(self, size=None): ...

    def record(self, batch, rewards): ...


def test_a_strategy_need_not_declare_anything():
    assert about(Bare()) == about(Bare) == ("confidence", True, None, None, None)
    run = Bare().start(None)
    assert isinstance(run, Run)
    assert not any(isinstance(run, ability) for ability in ABILITIES)
    assert block_size(run, 5, whole=True) == 5


def test_a_run_of_somebody_else_can_do_what_it_has_methods_for():
    class Loser(BareRun):
        own_size = least_size = 7

        def lose(self, counts): ...

    found = {ability for ability in ABILITIES if isinstance(Loser(), ability)}
    assert found == {Lossy, Sized}
    assert block_size(Loser(), 5) == 10


def test_what_our_runs_can_do():
    def abilities(name, **words):
        arms = fl.Arms.unstructured(3)
        run = named(name, arms, np.ones(3)).start(as_problem(arms, sigma=1.0, **words))
        return {ability for ability in ABILITIES if isinstance(run, ability)}

    shown = {Evident, Explaining, Informed, Lossy, Sized, Speaking}
    assert abilities("gauntlet") == shown | {Changeable, Following}
    assert abilities("gauntlet", goal=fl.TopM(2)) == shown
    assert abilities("gse", budget=100) == {Explaining, Lossy}
    assert abilities("uniform") == abilities("rage") == abilities("xy-oracle") == set()
    for name in ("g", "lingape", "lazy-ts", "lingame", "track-and-stop", "fully-adaptive"):
        assert abilities(name) == {Playable}


def test_a_run_without_its_own_part_cannot_begin():
    with pytest.raises(TypeError, match="abstract"):
        DiscardingRun(as_problem(ARMS, sigma=1.0))  # type: ignore[abstract]
