"""Loops are interpreted before they are compiled, and nobody can tell from the numbers."""

import math
import os
import struct
import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.compiled import tiers
from finalist.compiled.tiers import Tiered, tiered
from finalist.lab import warmup
from finalist.problem import as_problem
from tests.golden_runs import FEATURES

MODULES = (
    "design.kernels.end",
    "design.kernels.exchange",
    "design.kernels.sequence",
    "inference.kernels.fit",
    "strategies.gauntlet.cap_kernels",
    "strategies.gauntlet.choice_kernels",
    "strategies.gauntlet.kernels",
    "strategies.gauntlet.path_kernels",
)
#: Arms with features, beside those without that everything is warmed up with.
ARMS = (fl.Arms.unstructured(3), fl.Arms(FEATURES))


def name_of(loop: Tiered) -> str:
    return f"{loop.py_func.__module__.removeprefix('finalist.')}.{loop.py_func.__name__}"


def loops() -> set[str]:
    """Return all functions that are interpreted at first, but those that others inline."""
    some = [vars(import_module(f"finalist.{module}")).values() for module in MODULES]
    tiered = (value for values in some for value in values if isinstance(value, Tiered))
    return {name_of(loop) for loop in tiered if "inline" not in loop._flags}


def called_by(loop: Tiered) -> set[Tiered]:
    """Return a loop and those that it calls."""
    names = loop.py_func.__code__.co_names
    others = (loop.py_func.__globals__.get(name) for name in names)
    return {loop}.union(*(called_by(one) for one in others if isinstance(one, Tiered)))


def bits(value: Any) -> Any:
    """Return what is equal only if every bit is; all NaN are one."""
    if isinstance(value, np.ndarray | memoryview):
        array = np.array(value)
        if array.dtype == float:
            array[np.isnan(array)] = np.nan
        return array.dtype.str, array.shape, array.tobytes()
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    if isinstance(value, float | np.floating):
        return "nan" if math.isnan(value) else struct.pack("d", value)
    return value


def ways(loop: Tiered, args: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return what the interpreter and the compiler make of copies of arguments, bit by bit."""
    found = []
    for call in (lambda *a: loop.interpreted(*map(tiers._plain, a)), loop.compiled):
        own = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)
        found.append((bits(call(*own)), bits(own)))
    return found[0], found[1]


@pytest.fixture
def clock(monkeypatch):
    """Seconds as they are set here, for loops that nobody has called yet."""
    now = [0.0]
    monkeypatch.setattr(tiers, "CLOCK", tiers._Clock())
    monkeypatch.setattr(tiers, "thread_time", lambda: now[0])
    return now


def test_every_bit_is_the_same(monkeypatch, clock):
    seen, refused = set(), set()

    def checked(self: Tiered, *args: Any) -> Any:
        seen.add(self)
        try:
            interpreted, compiled = ways(self, args)
        except (ArithmeticError, ValueError):
            refused.add(name_of(self))
        else:
            assert interpreted == compiled, self.py_func
        return self.compiled(*args)

    monkeypatch.setattr(Tiered, "__call__", checked)
    for words in warmup._WAYS:
        problem = as_problem(ARMS[len(words) % 2], **words)
        warmup._run(fl.Gauntlet(), problem)
    assert loops() <= {name_of(loop) for one in seen for loop in called_by(one)}
    assert refused == set()


@pytest.mark.parametrize("seed", range(40))
def test_numbers_that_are_none_are_the_same(seed):
    from finalist.strategies.gauntlet.cap_kernels import find_cap, log_price, mills
    from finalist.strategies.gauntlet.kernels import bet

    rng = np.random.default_rng(seed)

    def drawn(*shape: int) -> np.ndarray:
        some = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 3)
        odd = rng.choice([0.0, -0.0, math.inf, -math.inf, math.nan, 1e-300, 1e200], shape)
        return np.where(rng.random(shape) < 0.05, odd, some)

    K, g, q = 4, 5, int(rng.integers(3))
    args: dict[Tiered, tuple[Any, ...]] = {
        mills: (float(drawn(1)[0]),),
        log_price: (float(drawn(1)[0]), float(drawn(1)[0]), np.abs(drawn(g)), drawn(g)),
        find_cap: (abs(float(drawn(1)[0])), np.abs(drawn(g)), drawn(g)),
        bet: (
            *(drawn(K), np.abs(drawn(K)), drawn(K), np.abs(drawn(K)), np.abs(drawn(K, q))),
            *(rng.random(K) < 0.8, bool(rng.random() < 0.5), np.full(K, 3.0)),
            *(np.abs(drawn(g)), np.log(np.full(g, 1.0 / g)), 0.7),
            *(drawn(K), np.abs(drawn(K)), drawn(K, 3), np.full(K, math.nan)),
        ),
    }
    for loop, given in args.items():
        try:
            interpreted, compiled = ways(loop, given)
        except (ArithmeticError, ValueError):
            continue  # what Python refuses is put back and compiled
        assert interpreted == compiled, loop.py_func


@pytest.mark.parametrize("seed", range(60))
def test_looks_by_numpy_are_those_of_the_loops(seed, monkeypatch):
    from finalist.strategies.gauntlet import rows
    from finalist.strategies.gauntlet.kernels import bet_along

    rng = np.random.default_rng(seed)
    monkeypatch.setattr(rows, "MANY", int(rng.integers(1, 60)))  # arms that do not fit together
    t, K, looks, g = 7, 9, int(rng.integers(rows.FEW, 25)), 11
    odd = seed % 3 == 0

    def some(values: np.ndarray) -> np.ndarray:
        strange = rng.choice([0.0, math.inf, math.nan, 1e200, 1e-300], values.shape)
        return np.where(rng.random(values.shape) < 0.02 * odd, strange, values)

    V = np.cumsum(rng.exponential(1.0, (looks, t)) * (rng.random((looks, t)) < 0.8), axis=0)
    S = np.cumsum(rng.normal(0.3 * (seed % 4), 1.0, (looks, t)), axis=0) + 0.3 * V
    given = (
        *(some(S), some(V), rng.permutation(K)[:t], some(rng.normal(0, 3, K)), rng.random(K)),
        *(bool(seed % 2), np.full(K, 3.0), np.geomspace(1e-3, 3.0, g), np.log(np.full(g, 1 / g))),
        *(0.7, np.minimum(rng.normal(0, 1.5, K), 3.5), rng.random(K) * (rng.random(K) < 0.9)),
        *(some(rng.normal(0, 1, (K, 3))), np.zeros((2, K)), 1e-3),
    )
    views = tuple(map(tiers._plain, (a.copy() if isinstance(a, np.ndarray) else a for a in given)))
    found, compiled = ways(bet_along, given)
    assert found == compiled
    try:
        bet_along.looped(*views)
    except ArithmeticError:
        return  # what Python refuses is put back and compiled
    assert bits(views) == compiled[1]


def test_lengths_of_many_rows_are_the_same():
    from finalist.strategies.gauntlet.path_kernels import walk

    rows, none = np.random.default_rng(1).standard_normal((3000, 2)), np.zeros(3001, dtype=bool)
    state = np.zeros((2, 2)), np.zeros(2)
    empty = np.empty((0, 2)), np.empty((0, 0)), np.empty((0, 0))
    interpreted, compiled = ways(walk, (*state, rows, rows[:, 0].copy(), none, *empty))
    assert interpreted == compiled


def test_what_python_refuses_is_put_back_and_compiled(clock):
    @tiered(error_model="numpy")
    def shares(x, whole):
        for i in range(len(x)):
            x[i] = x[i] / whole
        return math.log(x[0])

    shares._is_looked_for = False  # what an earlier run of the tests has kept
    x = np.array([1.0, 0.0])
    assert shares(x, 2.0) == math.log(0.5)
    assert shares._ready is None
    assert shares(x, 0.0) == math.inf
    assert x[0] == math.inf
    assert math.isnan(x[1])


def test_a_loop_is_compiled_when_interpreting_has_cost_as_much(clock):
    @tiered(error_model="numpy")
    def total(x):
        wait(x[0])
        return x[0]

    def wait(seconds: float) -> None:
        clock[0] += seconds

    total._is_looked_for, total._compiled = False, lambda x: -x[0]
    for _ in range(3):
        assert total(np.array([0.25])) == 0.25
    assert total(np.array([0.25])) == -0.25
    assert clock[0] == tiers.CLOCK.spent == 0.75


class Compiled:
    """What numba would make of a loop, and keeps."""

    def __init__(self) -> None:
        self._cache = SimpleNamespace(has=lambda compiled, args: compiled is self and not args)

    def __call__(self) -> float:
        return 2.0


@pytest.mark.parametrize("kept", [False, True])
def test_what_may_be_kept_is_looked_for_once(clock, monkeypatch, kept: bool):
    @tiered(error_model="numpy")
    def one():
        return 1.0

    looked = []
    monkeypatch.setattr(tiers, "_CACHE", "not.loaded")

    def look(self: Tiered) -> bool:
        looked.append(self)
        return kept

    monkeypatch.setattr(Tiered, "_may_be_kept", look)
    one._compiled = Compiled()
    assert one() == 1.0
    assert looked == []
    tiers.CLOCK.spent = tiers.LOADING + 0.1
    assert [one(), one()] == ([2.0, 2.0] if kept else [1.0, 1.0])
    assert looked == [one]


def test_what_others_inline_can_be_called_by_itself():
    from finalist.strategies.gauntlet.cap_kernels import normal_cdf

    import_module("finalist.compiled.cache")
    assert normal_cdf(0.0) == 0.5


def test_what_runs_for_long_is_compiled_at_once(clock):
    @tiered(error_model="numpy")
    def double(x):
        return x + x

    tiers.compile_at_once()
    assert double(2.0) == 4.0
    assert double._compiled is not None
    assert double._looped is None


LIFE = """
import sys
import numpy as np
import finalist as fl
X = np.random.default_rng(0).standard_normal((12, 3))
study = fl.Study.create(sys.argv[1], "quick", fl.Arms(X), sigma=8.0, seed=3)
for _ in range(int(sys.argv[2])):
    study.tell({pull.pull_id: 1.0 for pull in study.ask(size=12)})
again = fl.Study.open(sys.argv[1], "quick").status()
assert again.verdict == "continue"
from finalist.compiled.tiers import CLOCK
kept = sys.modules.get("finalist.compiled.cache")
print("numba" in sys.modules, [] if kept is None else kept.COMPILED, CLOCK.spent > 0)
"""


@pytest.mark.parametrize(
    ("batches", "says"), [("1", "False [] True"), ("4", "True ['rough.run.cpython-{}'] True")]
)
def test_a_small_study_needs_next_to_no_compiler(tmp_path, batches, says):
    done = subprocess.run(
        [sys.executable, "-c", LIFE, str(tmp_path / "lab.db"), batches],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == says.format("{}{}".format(*sys.version_info[:2]))
