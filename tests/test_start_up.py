"""What a second process needs: light imports and kernels that are compiled already."""

import json
import os
import subprocess
import sys

HEAVY = {
    "altair",
    "fastapi",
    "formulaic",
    "narwhals",
    "numba",
    "numpy",
    "pandas",
    "scipy",
    "sqlalchemy",
}


def python(code: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout


def loaded_after(statement: str) -> set[str]:
    code = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    return set(json.loads(python(code)))


def test_importing_finalist_loads_nothing_heavy():
    assert not HEAVY & loaded_after("import finalist")


def test_help_loads_nothing_heavy():
    code = (
        "import sys, json, finalist.cli\n"
        "finalist.cli.app(['new', '--help'], standalone_mode=False)\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    assert not HEAVY & set(json.loads(python(code).splitlines()[-1]))


def test_opening_a_study_loads_nothing_that_it_does_not_use():
    loaded = loaded_after("import finalist as fl; fl.Study")
    assert {"scipy.linalg", "sqlalchemy"} <= loaded
    unused = {"jaxtyping", "numpy.f2py.crackfortran", "scipy.optimize", "scipy.stats", "unittest"}
    assert not (unused | HEAVY - {"numpy", "scipy", "sqlalchemy"}) & loaded
    rooms = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("finalist.")}
    assert not {"finalist.complexity", "finalist.simulation", "finalist.charts"} & rooms
    assert not {"finalist.planning.engine", "scipy.special"} & loaded


def test_a_command_ends_without_a_search_for_cycles():
    code = """
import gc, sys
from finalist.cli import main
sys.argv = ["finalist", "--version"]
try:
    main()
except SystemExit:
    print(gc.get_freeze_count() > 10_000)
"""
    assert python(code).split()[-1] == "True"


def test_what_was_loaded_is_not_looked_through_when_the_next_thing_is_made():
    loaded = "import gc, finalist; gc.collect(); finalist.Study"
    young = int(python(f"{loaded}; print(len(gc.get_objects(0)) + len(gc.get_objects(1)))"))
    assert young < 5_000  # of some 200,000
    # What somebody has frozen, as before a fork, stays frozen.
    assert python(
        f"import gc; gc.freeze(); {loaded}; print(gc.get_freeze_count() > 0)"
    ).split() == ["True"]


def test_what_is_loaded_when_it_is_used_works_then():
    code = """
import finalist as fl
fl.Study
import numpy, numpy.testing, numpy.f2py
numpy.testing.assert_array_equal([1], [1])
print(numpy.f2py.get_include().endswith("src"), type(numpy.f2py).__name__)
"""
    assert python(code).split() == ["True", "module"]


def test_designs_need_no_compiler_and_no_data_frames():
    heavy = HEAVY - {"numpy", "scipy"}
    statement = "import finalist as fl; fl.optimal_design(fl.Arms([[1.0, 0.0], [0.0, 1.0]]), 'xy')"
    assert not heavy & loaded_after(statement)


def test_simulations_need_no_compiler_and_no_data_frames():
    heavy = (HEAVY - {"numpy", "scipy"}) | {"joblib", "rich"}
    # The bets of the gauntlet are compiled; phases of the paper are plain NumPy.
    call = "fl.simulate(fl.Arms.unstructured(2), [1.0, 0.0], 'xy-adaptive', sigma=1.0, runs=2)"
    statement = f"import finalist as fl; {call}"
    assert not heavy & loaded_after(statement)


def test_a_second_process_does_not_compile_again(tmp_path):
    code = """
import finalist as fl
from finalist.design import greedy_allocation
for criterion in ("g", "xy"):
    greedy_allocation(fl.Arms.unstructured(3), criterion, 10)
from finalist.design.kernels.greedy import run
print(sum(run.stats.cache_hits.values()), sum(run.stats.cache_misses.values()))
"""
    assert python(code, NUMBA_CACHE_DIR=str(tmp_path)).split()[1] != "0"
    assert python(code, NUMBA_CACHE_DIR=str(tmp_path)).split() == ["1", "0"]


def test_a_second_process_does_not_load_the_compiler(tmp_path):
    code = """
import sys, numpy as np
from finalist.inference.kernels import fit
solve = fit.solve.compiled
solve(np.eye(2), np.ones(2), np.ones(2), np.eye(2), np.zeros(2))
names = "numba.np.npyimpl", "numba.typed.typeddict", "numba.cpython.mathimpl"
print(*solve.stats.cache_hits.values(), *(name in sys.modules for name in names))
"""
    assert python(code, NUMBA_CACHE_DIR=str(tmp_path)).split() == ["True"] * 3
    assert python(code, NUMBA_CACHE_DIR=str(tmp_path)).split() == ["1"] + ["False"] * 3


def test_a_second_process_does_not_compile_a_strategy_that_looks_after_every_pull_again(tmp_path):
    code = """
import numpy as np, finalist as fl
from finalist.simulation.rewards import DrawnRewards
problem = fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0))
run = fl.TrackAndStop().start(problem)
rewards = DrawnRewards(np.zeros(3), 1.0, "gaussian", np.random.default_rng(0))
for size in (None, 5):
    batch = run.next(size)
    run.record(batch, rewards.batch(batch.counts))
run.play(rewards, 100)
from finalist.strategies.per_pull.kernels import track_and_stop as kernels
stats = [f.stats for f in (kernels.plan, kernels.absorb, kernels.examine, kernels.run)]
print(*[sum(s.cache_hits.values()) for s in stats], *[sum(s.cache_misses.values()) for s in stats])
"""
    assert python(code, NUMBA_CACHE_DIR=str(tmp_path)).split() == ["0"] * 4 + ["1"] * 4
    assert python(code, NUMBA_CACHE_DIR=str(tmp_path)).split() == ["1"] * 4 + ["0"] * 4


def test_public_names_are_there():
    import finalist as fl

    for name in fl.__all__:
        assert getattr(fl, name) is not None
    assert set(fl.__all__) <= set(dir(fl))


def test_unknown_names_are_refused():
    code = "import finalist\ntry:\n    finalist.nothing\nexcept AttributeError as e:\n    print(e)"
    assert "nothing" in python(code)
