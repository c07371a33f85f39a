"""Import paths of 0.1.0 still work, warn, and name the new path."""

import pickle
import subprocess
import sys
from importlib import import_module

import pytest

from finalist import _moved

#: What docs and examples of 0.1.0 imported, and from where.
SHOWN = {
    "finalist.rewards": "DrawnRewards",
    "finalist.statistics": "Statistics",
    "finalist.least_squares": "estimate",
    "finalist.information": "information",
    "finalist.bounds": "static_radius",
    "finalist.noise": "Gaussian",
    "finalist.rules": "rules_of",
    "finalist.paper": "Reproduction",
    "finalist.benchmark": "Report",
    "finalist.simulation.store": "Store",
    "finalist.strategies.rage": "RAGE",
    "finalist.strategies.lingape": "LinGapE",
    "finalist.strategies.lazy_ts": "LazyTS",
    "finalist.strategies.track_and_stop": "TrackAndStop",
    "finalist.strategies.xy_adaptive": "XYAdaptive",
    "finalist.strategies.xy_oracle": "XYOracle",
    "finalist.benchmark.plan": "Plan",
    "finalist.benchmark.suites": "SUITES",
}
#: What kept its path.
KEPT = {
    "finalist.arms": "Arms",
    "finalist.problem": "Problem",
    "finalist.client": "connect",
    "finalist.testing": "check_strategy",
    "finalist.study": "Study",
    "finalist.simulation": "simulate",
    "finalist.simulation.instances": None,
    "finalist.design": "optimal_design",
    "finalist.strategies": "Gauntlet",
    "finalist.strategies.gauntlet": "Gauntlet",
    "finalist.strategies.protocol": "Run",
    "finalist.complexity": "complexity",
    "finalist.planning": "plan",
    "finalist.region": "Region",
    "finalist.data": "load",
    "finalist.charts": None,
}


@pytest.mark.parametrize(("path", "name"), SHOWN.items())
def test_a_path_that_moved_works_and_warns(path, name):
    home = _moved.home_of(path)
    assert home is not None
    with pytest.warns(DeprecationWarning, match=f"import {name} from {home}"):
        found = getattr(import_module(path), name)
    assert found is getattr(import_module(home), name)


@pytest.mark.parametrize(("path", "name"), KEPT.items())
def test_a_path_that_stays_does_not_warn(path, name):
    assert _moved.home_of(path) is None
    module = import_module(path)
    if name is not None:
        assert getattr(module, name)


@pytest.mark.parametrize("old", _moved.MOVED)
def test_every_path_of_the_table_leads_somewhere(old):
    assert import_module(f"finalist.{old}").__doc__ == f"Moved to `finalist.{_moved.MOVED[old]}`."


def test_a_script_is_told_its_own_line():
    code = "import finalist\nfrom finalist.rewards import DrawnRewards\nprint(DrawnRewards)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "<string>:2: DeprecationWarning: finalist.rewards.DrawnRewards has moved" in done.stderr
    assert "finalist.simulation.rewards" in done.stdout


def test_the_store_has_moved_to_the_lab():
    import finalist.simulation
    from finalist.lab import Store

    with pytest.warns(DeprecationWarning, match="from finalist.lab"):
        assert finalist.simulation.Store is Store


def test_what_is_not_there_is_not_found():
    for path in ("finalist.nothing", "finalist.rewards.nothing"):
        with pytest.raises(ModuleNotFoundError, match="nothing"):
            import_module(path)


def test_pickles_of_arms_of_the_first_version_are_read():
    import finalist as fl

    arms = fl.Arms([[1.0, 2.0], [3.0, 5.0]], ["a", "b"])
    text = pickle.dumps(arms, protocol=0).replace(b"cfinalist.arms.arms\n", b"cfinalist.arms\n")
    assert b"cfinalist.arms\n_restore" in text
    assert pickle.loads(text).names == ("a", "b")
