"""What is not a number decides nothing, and extremes end in a typed error or in no answer.

First NaN and infinity are put into each number that a decision is made of, in a state in which the
decision would be taken without. Then whole runs with sizes at the ends of what floats can hold.
"""

import dataclasses
import math
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.arms.span import factorise
from finalist.compiled.arrays import read_only
from finalist.design import design_value, minimax
from finalist.design.farthest import DirectionList, farthest_pairs
from finalist.design.kernels import greedy as greedy_kernels
from finalist.design.kernels import rough as rough_kernels
from finalist.design.measured import Measured
from finalist.design.optimal import solve_task
from finalist.design.result import SOLVED, Solution, relative_gap
from finalist.design.rough import WorkingSet, rough_design
from finalist.design.smooth import Smooth, column_generation, restricted_solve
from finalist.design.tasks import Task
from finalist.errors import BoundError, DesignError, EstimateError, FinalistError, ProblemError
from finalist.inference import bounds, intervals
from finalist.inference.information import information
from finalist.inference.least_squares import estimate
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.strategies.per_pull.lingape import pair_shares
from finalist.strategies.per_pull.ridge import check_even
from finalist.strategies.phased import rage, xy_adaptive
from finalist.strategies.phased.phase import shortest_prefix
from finalist.strategies.protocol import Batch
from finalist.strategies.static import kernels as static_kernels
from finalist.strategies.static import xy_oracle
from finalist.strategies.static.static import StaticState
from finalist.strategies.units import Units

NAN, INF = math.nan, math.inf
FREE = fl.Arms(np.eye(3))
CLEAR = np.array([9.0, 0.0, -9.0])


# ---- strategies that look after every pull ---------------------------------------------------


def strategy_of(name, **settings):
    known = {} if name in ("lazy-ts", "track-and-stop") else {"theta_norm": 1.0}
    return fl.strategies.STRATEGIES[name](**known, **settings)


def clear_state(name, epsilon=0.0, **settings):
    """Return a state after 40 pulls of each arm in which one of them is surely the best."""
    problem = as_problem(FREE, sigma=1.0, epsilon=epsilon)
    run = strategy_of(name, **settings).start(problem)
    counts = np.array([40, 40, 40])
    run.record(Batch(counts), Statistics.of_batch(counts, 1e-3 * counts))
    assert not run.verdict.decided
    run._state.means[:] = CLEAR
    kernels = import_module(f"finalist.strategies.per_pull.kernels.{name.replace('-', '_')}")
    return run._state, kernels


#: Which arrays of the state a decision is made of.
DECIDING = {
    "fully-adaptive": ("means", "spread", "log_det"),
    "lingape": ("means", "V", "Z", "log_det"),
    "lingame": ("means", "spread", "log_det"),
    "lazy-ts": ("means", "spread", "log_det"),
    "track-and-stop": ("means",),
}
SETTINGS = {
    "fully-adaptive": ({}, {"bound": "soare"}),
    "lingape": ({}, {"threshold": "heuristic"}),
    "lingame": ({}, {"threshold": "determinant"}, {"threshold": "heuristic"}),
    "lazy-ts": ({}, {"threshold": "heuristic"}),
    "track-and-stop": ({}, {"threshold": "heuristic"}),
}
RULES = {
    "fully-adaptive": ("sigma", "bias", "confidence"),
    "lingape": ("sigma", "bias", "confidence"),
    "lingame": ("sigma", "bias", "confidence"),
    "lazy-ts": ("scale", "confidence"),
    "track-and-stop": ("variance", "confidence"),
}
USUAL = [(name, settings) for name, several in SETTINGS.items() for settings in several]


def uses(name, settings, field):
    """Whether the radius of these settings is made of the determinant."""
    default = {"fully-adaptive": "sharp", "lingame": "proven"}.get(name, "proven")
    kind = settings.get("bound", settings.get("threshold", default))
    of_it = {"lingame": ("determinant",), "fully-adaptive": ("sharp",)}.get(name, ("proven",))
    return field != "log_det" or kind in of_it


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize(("name", "settings"), USUAL)
def test_the_clear_state_is_decided(name, settings, epsilon):
    state, kernels = clear_state(name, epsilon, **settings)
    kernels.examine(state)
    assert state.progress[kernels.WINNER] == 0


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("value", [NAN, INF])
@pytest.mark.parametrize(("name", "settings"), USUAL)
def test_a_number_that_is_none_ends_no_run(name, settings, value, epsilon):
    for field in DECIDING[name]:
        if not uses(name, settings, field):
            continue
        state, kernels = clear_state(name, epsilon, **settings)
        getattr(state, field)[...] = value
        kernels.examine(state)
        assert state.progress[kernels.WINNER] == -1, field
        if name == "fully-adaptive":
            assert state.progress[kernels.LEFT] == 3, field
    for field in RULES[name]:
        state, kernels = clear_state(name, epsilon, **settings)
        state = state._replace(rule=state.rule._replace(**{field: value}))
        kernels.examine(state)
        assert state.progress[kernels.WINNER] == -1, field


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("arm", [0, 1, 2])
@pytest.mark.parametrize(("name", "settings"), USUAL)
def test_one_mean_that_is_none_ends_no_run(name, settings, arm, value, epsilon):
    state, kernels = clear_state(name, epsilon, **settings)
    state.means[arm] = value
    kernels.examine(state)
    assert state.progress[kernels.WINNER] == -1
    if name == "fully-adaptive":
        assert arm in state.alive[: state.progress[kernels.LEFT]]
    if name == "lingame":
        able = np.zeros(3, dtype=np.bool_)
        kernels.possible(state, able)
        assert able[arm]


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("name", DECIDING)
def test_a_reward_that_is_none_narrows_nothing(name, epsilon):
    """Whatever a pull does with it: what follows is not exact, and decides nothing."""
    for reward in (NAN, INF, -INF):
        for arm in range(3):
            state, kernels = clear_state(name, epsilon)
            kernels.absorb(state, arm, reward)
            kernels.examine(state)
            assert state.progress[kernels.WINNER] == -1


@pytest.mark.parametrize("name", ["fully-adaptive", "lingame"])
def test_a_variance_that_is_none_does_not_become_zero(name):
    state, kernels = clear_state(name)
    state.spread[...] = NAN
    kernels.absorb(state, 0, 9.0)
    assert np.isnan(state.spread[0, 1])
    state.means[:] = CLEAR
    kernels.examine(state)
    assert state.progress[kernels.WINNER] == -1


@pytest.mark.parametrize("field", ["spread", "inverse", "least"])
def test_lazy_ts_with_a_matrix_that_is_none(field):
    state, kernels = clear_state("lazy-ts")
    state.progress[kernels.BEST] = -1 if field == "inverse" else 0
    getattr(state, field)[...] = NAN
    if field == "spread":
        kernels.absorb(state, 0, 9.0)  # it does not become 0
    kernels.examine(state)
    assert state.progress[kernels.WINNER] == -1


@pytest.mark.parametrize("name", DECIDING)
def test_pulls_are_arms_whatever_the_state_is(name):
    """No loop of a choice runs past the last arm."""
    state, kernels = clear_state(name)
    arrays = {f: getattr(state, f) for f in state._fields if f != "rule"}
    floats = [field for field, array in arrays.items() if array.dtype.kind == "f"]
    for field in floats:
        for value in (NAN, INF):
            state, kernels = clear_state(name)
            if name == "lazy-ts" and field == "A":
                continue  # its eigenvalues are an error
            state = state._replace(**{field: np.full(getattr(state, field).shape, value)})
            picks = np.full(4, -7)
            if name == "lingape":
                kernels.examine(state)
                kernels.plan(state, picks, 0)
            else:
                kernels.plan(state, picks)
            assert ((picks >= 0) & (picks < 3)).all(), field


def test_noise_too_unequal_for_updates_is_refused():
    """Of runs with (1e-8, 1e-8, 1) 9 of 20 ended with the wrong arm: a variance became 0."""
    for name in ("fully-adaptive", "lingape", "lingame"):
        strategy_of(name).start(as_problem(FREE, sigma=(2e-6, 2e-6, 1.0)))
        with pytest.raises(ProblemError, match="too unequal"):
            strategy_of(name, ridge=1e-6).start(as_problem(FREE, sigma=(1e-4, 1.0, 1.0)))
    units = Units.of(as_problem(FREE, sigma=(1e-3, 1.0, 1.0)))
    check_even("x", units, 1e-6)


@pytest.mark.parametrize("ratio", [1e-3, 1e-5, 1.01e-6])
@pytest.mark.parametrize(
    "name", ["fully-adaptive", "lingape", "lingame", "lazy-ts", "xy-adaptive", "rage", "g"]
)
def test_unequal_noise_and_a_gap_that_cannot_be_seen(name, ratio):
    theta = [1.0, 1.0 + 0.02 * ratio, 0.0]
    words: dict[str, Any] = {
        "sigma": (ratio, ratio, 1.0),
        "delta": 1e-3,
        "runs": 5,
        "max_pulls": 500,
    }
    found = fl.simulate(FREE, theta, name, progress=False, **words)
    assert found.errors == 0


# ---- static allocations ----------------------------------------------------------------------


def static_numbers():
    counts = np.array([40, 40, 40])
    return {
        "Z": np.eye(3),
        "C": np.eye(3),
        "counts": counts,
        "first": CLEAR.copy(),
        "excess": np.zeros(3),
        "radius": 4.0,
        "epsilon": 0.0,
    }


def evaluated(radius, epsilon, **arrays):
    room = {name: np.zeros(3) for name in ("later", "means", "limit")}
    state = StaticState(**arrays, **room, most=np.zeros(3, dtype=np.int64))
    return static_kernels.evaluate(state, radius, epsilon)


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("field", ["Z", "C", "first", "excess"])
def test_static_rule(field, value, epsilon):
    numbers = static_numbers() | {"epsilon": epsilon}
    assert evaluated(**numbers) == 0
    for k in range(numbers[field].size):
        broken = static_numbers() | {"epsilon": epsilon}
        broken[field].flat[k] = value
        assert evaluated(**broken) == -1, k
    assert evaluated(**(numbers | {"radius": NAN})) == -1
    assert evaluated(**(numbers | {"radius": INF})) == -1


def test_static_rule_does_not_take_zero_by_zero_for_certain():
    """Two candidates that are one up to rounding cannot be told apart."""
    numbers = static_numbers() | {"C": np.array([[1.0, 0, 0], [1.0, 0, 0], [0, 0, 1.0]])}
    assert evaluated(**numbers) == -1
    assert evaluated(**(numbers | {"epsilon": 0.1})) in (0, 1)  # good enough both


@pytest.mark.parametrize("name", ["g", "xy", "uniform"])
def test_static_rewards_that_overflow_in_units_of_noise(name):
    """All four runs ended after three pulls, with the first arm."""
    sigma = (1e-148, 1e-148, 1e-148)
    words: dict[str, Any] = {"sigma": sigma, "runs": 4, "max_pulls": 300, "progress": False}
    found = fl.simulate(FREE, [0.0, 1e140, 0.0], name, **words)
    assert found.errors == 0


# ---- phases ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize(("name", "module"), [("rage", rage), ("xy-adaptive", xy_adaptive)])
def test_an_estimate_that_is_none_drops_nobody(name, module, value, epsilon, monkeypatch):
    real = module.estimate
    for arm in range(3):

        def broken(*args, arm=arm, **words):
            fit = real(*args, **words)
            phi = fit.phi.copy()
            phi[arm] = value
            return dataclasses.replace(fit, phi=phi)

        run = fl.strategies.STRATEGIES[name]().start(as_problem(FREE, sigma=1.0, epsilon=epsilon))
        batch = run.next()
        rewards = Statistics.of_batch(batch.counts, batch.counts * 0.0)
        monkeypatch.setattr(module, "estimate", broken)
        with np.errstate(invalid="ignore"):
            run.record(batch, rewards)
        assert run.verdict.winner is None
        assert run.verdict.survivors == (0, 1, 2)
        monkeypatch.setattr(module, "estimate", real)
        run.next()  # the phase is made again


@pytest.mark.parametrize("value", [NAN, INF])
def test_a_variance_that_is_none_drops_nobody(value, monkeypatch):
    """It was also taken over as the largest variance 0, which no phase can halve."""
    for name, module in (("rage", rage), ("xy-adaptive", xy_adaptive)):
        real = module.estimate

        def broken(*args, real=real, **words):
            fit = real(*args, **words)
            root = fit.information.root.copy()
            root[0, 0] = NAN if math.isnan(value) else 0.0
            return dataclasses.replace(
                fit, information=dataclasses.replace(fit.information, root=root)
            )

        run = fl.strategies.STRATEGIES[name]().start(as_problem(FREE, sigma=1.0))
        batch = run.next()
        monkeypatch.setattr(module, "estimate", broken)
        with np.errstate(all="ignore"):
            run.record(batch, Statistics.of_batch(batch.counts, batch.counts * 1.0))
        assert run.verdict.survivors == (0, 1, 2)
        run.next()


def test_arms_that_cannot_be_seen_are_not_compared():
    points, unseen = np.zeros((2, 1)), np.array([[NAN], [0.0]])
    least, most = rage.compare(np.array([1.0, 0.0]), points, unseen)
    assert not (least > 0.0).any()
    assert (most == INF).all()


@pytest.mark.parametrize("delta", [1e-300, 1e-307, 1e-310, 5e-324])
def test_a_tiny_delta_drops_nobody_in_later_phases(delta):
    """The radius was infinite, infinity times 0 is NaN, and that dropped every arm."""
    run = fl.XYAdaptive().start(as_problem(FREE, sigma=1.0, delta=delta))
    for _ in range(6):
        batch = run.next()
        run.record(batch, Statistics.of_batch(batch.counts, np.zeros(3)))
        assert run.verdict.survivors == (0, 1, 2)
    assert run._radius(10) < 60.0


def test_phases_that_are_too_long_are_refused():
    with pytest.raises(DesignError, match="pulls, too many"):
        fl.XYAdaptive(alpha=5e-324).start(as_problem(FREE, sigma=1.0)).next()
    run = fl.RAGE().start(as_problem(FREE, sigma=1.0))
    for value in (INF, NAN, 1e300):
        with pytest.raises(DesignError, match="pulls, too many"):
            run._length(3, value)


def test_a_sequence_that_is_never_enough_ends(monkeypatch):
    class Forever:
        def extend(self, pulls):
            return np.zeros(pulls, dtype=np.int64)

    monkeypatch.setattr("finalist.strategies.phased.phase.LONGEST", 1000)
    with pytest.raises(DesignError, match="not accurate enough"):
        shortest_prefix(Forever(), lambda _: False, 3, 2)


def test_oracle_with_gaps_whose_squares_vanish():
    problem = as_problem(FREE, sigma=1.0)
    run = fl.XYOracle([1e-200, 0.0, 0.0]).start(problem)
    with pytest.raises(BoundError):
        run.next()


def test_oracle_with_an_estimate_that_is_none(monkeypatch):
    real = vars(xy_oracle)["estimate"]

    def broken(*args, **words):
        fit = real(*args, **words)
        return dataclasses.replace(fit, phi=np.full(3, NAN))

    run = fl.XYOracle([1.0, 0.0, 0.0]).start(as_problem(FREE, sigma=1.0))
    batch = run.next()
    monkeypatch.setattr(xy_oracle, "estimate", broken)
    with pytest.raises(EstimateError, match="too large"):
        run.record(batch, Statistics.of_batch(batch.counts, batch.counts * 1.0))
    assert not run.verdict.decided


def test_oracle_gives_up(monkeypatch):
    monkeypatch.setattr(xy_oracle, "MAX_TRIES", 5)
    monkeypatch.setattr(xy_oracle, "round_design", lambda _, n: np.array([n, 0, 0]))
    xy_oracle.oracle_allocation.cache_clear()
    run = fl.XYOracle([0.123, 0.0, 0.0]).start(as_problem(FREE, sigma=1.0))
    with pytest.raises(DesignError, match="accurate enough"):
        run.next()


def test_shares_that_are_none_are_refused(monkeypatch):
    """LinGapE asked for them again and again, for ever."""
    import scipy.optimize

    class Answer:
        status, message = 0, ""
        x = np.zeros(6)

    monkeypatch.setattr(scipy.optimize, "linprog", lambda *_, **__: Answer)
    with pytest.raises(DesignError, match="cannot be computed"):
        pair_shares(fl.Arms(np.eye(3), ["p", "q", "r"]), 0, 1)


# ---- designs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "lower"), [(NAN, 1.0), (1.0, NAN), (NAN, NAN), (INF, INF), (INF, 1.0), (1.0, INF)]
)
def test_a_gap_that_is_none_certifies_nothing(value, lower):
    assert relative_gap(value, lower) == INF


def test_a_value_that_is_none_is_not_solved():
    solution = Solution(np.arange(3), np.full(3, 1 / 3), 3.0, SOLVED, 1)
    for value in (NAN, INF):
        task = Task("g", lambda *_: solution, lambda _, value=value: value)
        found = solve_task(Measured.of(FREE), task)
        assert not found.solved
        assert found.gap == INF
    solution = dataclasses.replace(solution, lower_bound=INF)
    task = Task("g", lambda *_: solution, lambda _: 3.0)
    assert not solve_task(Measured.of(FREE), task).solved


def test_smooth_solver_does_not_take_nan_for_optimal(monkeypatch):
    broken = np.full((2, 2), NAN)
    monkeypatch.setattr(Smooth, "roots", lambda *_: (np.eye(2), broken, 1.0))
    nu, slack = np.ones(2), np.full(2, 0.3)
    now, _ = restricted_solve(np.eye(2), nu, slack, Smooth(None), 1e-6, INF)
    assert now.gap == INF
    with np.errstate(invalid="ignore"):
        found = column_generation(np.eye(2), Smooth(np.eye(2)), 1e-6, INF)
    assert found.status != SOLVED
    assert found.lower_bound == 0.0


def test_minimax_solver_does_not_take_an_infinite_bound(monkeypatch):
    problem = minimax.starting_problem(np.eye(2), DirectionList(np.array([[1.0, -1.0]])), INF)
    monkeypatch.setattr(minimax, "starting_problem", lambda *_: problem)
    monkeypatch.setattr(minimax, "row_norms", lambda Z, _: np.zeros(len(Z)))
    directions = DirectionList(np.array([[1.0, -1.0]]))
    with np.errstate(divide="ignore"):
        found = minimax.solve_minimax(np.eye(2), directions, 1e-6, INF)
    assert found.status != SOLVED
    assert found.lower_bound == 0.0


def test_directions_that_are_none_are_the_worst():
    for bad in (NAN, INF):
        points = np.array([[0.0], [1.0], [bad]])
        with np.errstate(invalid="ignore"):
            assert farthest_pairs(points, 0.0, 1)[1] == INF
    rows = np.array([[1.0, 0.0], [NAN, 0.0]])
    found, top = DirectionList(rows).worst(np.eye(2), 0.5, 3)
    assert top == INF
    assert len(found) == 0


@pytest.mark.parametrize("field", ["Z", "Y", "lam", "m"])
@pytest.mark.parametrize("value", [NAN, INF])
def test_rough_designs_have_no_certificate_that_is_none(field, value):
    numbers = {
        "Z": np.eye(3),
        "Y": np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]),
        "lam": np.full(3, 1 / 3),
        "m": np.full(2, 0.5),
    }
    numbers[field].flat[0] = value
    with np.errstate(all="ignore"):
        Z, Y, lam, m = numbers.values()
        found, lower = rough_kernels.run(read_only(Z), read_only(Y), lam, m, 50, 1e-3)
    assert relative_gap(found, lower) == INF


def test_rough_designs_of_vanishing_derivatives():
    """The lower bound was infinite, or the gap a division by zero."""
    with np.errstate(all="ignore"):
        weights, gap = rough_design(1e160 * np.eye(2), np.array([[1.0, -1.0]]))
        assert gap == INF
        assert weights.sum() == pytest.approx(1.0)
        many = 1e160 * np.vstack([np.eye(2)] * 200)
        weights, gap = rough_design(many, np.array([[1.0, -1.0]]))
    assert weights.sum() == pytest.approx(1.0)
    assert gap == INF


def test_working_set_does_not_take_an_infinite_bound(monkeypatch):
    working = WorkingSet(np.eye(2), np.array([[1.0, -1.0]]), None)
    monkeypatch.setattr(WorkingSet, "_derivatives", lambda *_: np.zeros(2))
    monkeypatch.setattr(WorkingSet, "_add", lambda *_: None)
    with np.errstate(all="ignore"):
        assert working.solve(1e-2)[1] == INF


@pytest.mark.parametrize("pairs", [True, False])
def test_greedy_choice_ends(pairs):
    """The worst variance was looked for past the end of the array."""
    K = 4
    state = greedy_kernels.State(
        Z=np.eye(K),
        Y=np.zeros((0, K)) if pairs else np.eye(K),
        pairs=pairs,
        inverse=np.eye(K),
        cross=np.eye(K) if pairs else np.zeros((1, 1)),
        leverage=np.ones(K),
        f=np.full(K * (K - 1) // 2 if pairs else K, NAN),
        rowmax=np.full(K - 1 if pairs else 1, NAN),
        a=np.zeros(K),
        dots=np.zeros(K),
        after=np.zeros(K),
        total=np.zeros(K),
    )
    picks = np.full(3, -7)
    assert greedy_kernels.run(state, picks, 10) == 3
    assert ((picks >= 0) & (picks < K)).all()


def test_weights_that_are_infinite_are_refused():
    with np.errstate(invalid="ignore"), pytest.raises(EstimateError, match="too large"):
        information(np.eye(2), np.array([INF, 1.0]))


def test_a_variance_that_is_none_is_infinite():
    info = information(np.eye(2), np.ones(2))
    broken = dataclasses.replace(info, root=np.array([[NAN, 0.0], [0.0, 1.0]]))
    assert (broken.variances(np.eye(2)) == INF).any()
    assert not np.isnan(broken.variances(np.eye(2))).any()


def test_a_residual_that_is_none_is_outside_the_span(monkeypatch):
    span = factorise(np.eye(2))
    monkeypatch.setattr(type(span), "_residuals", lambda _, unit: np.full(len(unit), NAN))
    with pytest.raises(fl.errors.OutsideSpanError):
        span.directions(np.eye(2))


def test_value_of_a_design_that_is_too_unequal():
    assert design_value(FREE, np.array([1.0, 0.0, 0.0]), "xy") == INF


# ---- bounds and intervals --------------------------------------------------------------------


def test_radii_of_what_is_none():
    assert bounds.pooled_level(1.0, NAN) == 1.0
    assert bounds.pooled_level(1.0, -INF) == 1.0
    assert bounds.adaptive_radius(10, 2, 0.05, 1.0, L=1e200, S=1.0) == INF
    for bad in (NAN, INF, -INF):
        with pytest.raises(BoundError):
            bounds.pooled_radius(bad, 0.05, 1.0)
        with pytest.raises(BoundError):
            bounds.determinant_radius(bad, 0.05, 1.0, 1.0)
        with pytest.raises(BoundError):
            bounds.static_radius(10, 3, 0.05, bad)
        with pytest.raises(BoundError):
            bounds.static_radius(10, 3, bad, 1.0)
    with pytest.raises(BoundError):
        bounds.static_radius(NAN, 3, 0.05, 1.0)
    with pytest.raises(BoundError):
        bounds.smallest_pulls(1.0, lambda _: NAN)
    with pytest.raises(BoundError):
        bounds.smallest_pulls(NAN, lambda _: 1.0)


def fit_of(arms=FREE, means=(1.0, 0.0, 0.0)):
    s, n = Statistics.empty(len(arms)), 20
    for arm, mean in enumerate(means):
        s.add_many([arm] * n, mean + np.linspace(-1, 1, n))
    return estimate(arms, s)


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_intervals_of_an_estimate_that_is_none(value):
    fit, start = fit_of(), np.eye(3)
    words: dict[str, Any] = {"sign": 1, "sigma": 0.01}
    sure = intervals.certainty(fit, 0, start=start, **words)
    assert sure is not None
    assert sure > 0.999
    phi = fit.phi.copy()
    phi[0] = value
    broken = dataclasses.replace(fit, phi=phi)
    with np.errstate(invalid="ignore"):
        error = intervals.error_estimate(broken, 0, **words)
        sure = intervals.certainty(broken, 0, start=start, **words)
    assert error is None or (math.isinf(value) and 0.0 <= error <= 1.0)
    assert sure == 0.0 or value == INF


def test_intervals_from_a_start_that_is_none():
    fit = fit_of()
    for start in (np.full((3, 3), NAN), np.full((3, 3), INF), np.zeros((3, 3)), -np.eye(3)):
        widths = intervals.pooled_widths(fit, np.eye(3), start, 0.95, 1.0)
        assert (widths == INF).all()
        assert intervals.certainty(fit, 0, sign=1, sigma=1.0, start=start) is None


def test_arms_that_are_one_up_to_rounding_have_no_error_estimate():
    """0 / 0 standard errors: the estimate was NaN."""
    arms = fl.Arms([[1.0, 0.0], [1.0, 1e-17], [0.2, 1.0]])
    assert np.array_equal(arms.coordinates[0], arms.coordinates[1])
    fit = fit_of(arms, (1.0, 1.0, 0.2))
    assert intervals.error_estimate(fit, 0, sign=1, sigma=1.0) is None
    start = intervals.start_of(as_problem(arms, sigma=1.0))
    assert intervals.certainty(fit, 0, sign=1, sigma=1.0, start=start) == 0.0


# ---- whole runs ------------------------------------------------------------------------------

CERTAIN = (
    "uniform",
    "g",
    "xy",
    "v",
    "xy-oracle",
    "xy-adaptive",
    "fully-adaptive",
    "rage",
    "lingape",
    "lingame",
    "lazy-ts",
    "track-and-stop",
)
BUDGETED = ("od-linbai", "gse", "peace", "g-budget")
X = np.array([[1.1, 0.1, 0.0], [0.2, 0.9, -0.3], [0.7, -0.6, 0.5]])
THETA = np.array([1.0, 0.4, 0.2])


def simulated(name, arms, theta, **words):
    most = 10**6 if name == "rage" else 1500  # its phases are long
    words = {"runs": 3, "max_pulls": most, "progress": False, "delta": 1e-6} | words
    if name in BUDGETED:
        words["budget"] = 60
    with np.errstate(all="ignore"):
        return fl.simulate(arms, theta, name, **words)


@pytest.mark.parametrize("name", CERTAIN + BUDGETED)
@pytest.mark.parametrize("power", [-990, -500, 500, 990])
def test_size_of_features_changes_nothing(name, power):
    """Features and parameter times a power of two: the same pulls, to the last one."""
    plain = simulated(name, fl.Arms(X), THETA, sigma=0.3)
    other = simulated(name, fl.Arms(np.ldexp(X, power)), np.ldexp(THETA, -power), sigma=0.3)
    assert np.array_equal(plain.pulls_per_arm, other.pulls_per_arm)
    assert np.array_equal(plain.winner, other.winner)
    assert plain.decided.all()


@pytest.mark.parametrize("name", CERTAIN + BUDGETED)
@pytest.mark.parametrize("power", [-480, -40, 40, 480])
def test_size_of_rewards_changes_nothing(name, power):
    """Rewards and sigma times a power of two, from 1e-12 and 1e-144 to 1e12 and 1e144."""
    plain = simulated(name, fl.Arms(X), THETA, sigma=0.25)
    size = math.ldexp(0.25, power)
    other = simulated(name, fl.Arms(X), np.ldexp(THETA, power), sigma=size)
    assert np.array_equal(plain.pulls_per_arm, other.pulls_per_arm)
    assert np.array_equal(plain.winner, other.winner)


@pytest.mark.parametrize("name", CERTAIN)
@pytest.mark.parametrize("sigma", [5e-324, 1e-300, 1.5e-162, 1e-150, 1e-12, 1e12, 1e140, 1e147])
def test_gaps_that_cannot_be_seen_are_not(name, sigma):
    """A gap of a fiftieth of sigma; with sigma = 1.5e-162, whose square is 0, some ended wrong."""
    theta = np.array([0.0, 0.02 * sigma, -3.0 * sigma])
    for epsilon in (0.0, 0.01 * sigma):
        try:
            found = simulated(name, FREE, theta, sigma=sigma, epsilon=epsilon, runs=5)
        except FinalistError:
            assert sigma < 1e-150 or name == "xy-oracle"
            continue
        assert found.errors == 0


@pytest.mark.parametrize("name", CERTAIN)
@pytest.mark.parametrize("delta", [5e-324, 1e-310, 1e-300, 1e-100, 1 - 1e-16])
def test_deltas_at_the_ends(name, delta):
    if name == "xy-oracle" and delta < 1e-308:
        return  # no number of pulls is enough for it
    found = simulated(name, FREE, [0.0, 30.0, 1.0], sigma=1.0, delta=delta)
    assert found.errors == 0
    # Nobody is sure to 1e-100 of a gap of a fiftieth of sigma.
    found = simulated(name, FREE, [0.0, 0.02, 0.0], sigma=1.0, delta=min(delta, 1e-6))
    assert found.errors == 0


@pytest.mark.parametrize("name", CERTAIN)
@pytest.mark.parametrize("theta", [[0.0, 0.0, 0.0], [1e-320, 0.0, 0.0], [1e149, -1e149, 0.0]])
def test_gaps_at_the_ends(name, theta):
    try:
        found = simulated(name, FREE, theta, sigma=1.0)
    except FinalistError:
        assert name == "xy-oracle"
        return
    assert found.errors == 0


@pytest.mark.parametrize("name", CERTAIN)
@pytest.mark.parametrize(
    "sigma", [(1e-150, 1e-150, 1.1e-144), (1e-148,) * 3, (1e-3, 1.0, 1e3), (1e144, 1e150, 1e147)]
)
def test_unequal_noise_at_the_ends(name, sigma):
    """Crashes, wrong answers after three pulls, and one segmentation fault."""
    for theta in ([0.0, 0.02 * sigma[0], 0.0], [0.0, 1e140, 0.0]):
        try:
            found = simulated(name, FREE, theta, sigma=sigma, max_pulls=300)
        except FinalistError:
            continue
        assert found.errors == 0


def test_sizes_of_noise_that_are_refused():
    for sigma in (5e-324, 1e-151, 1e151, 1e308):
        with pytest.raises(ProblemError, match="lies between 1e-150 and 1e\\+150"):
            as_problem(FREE, sigma=sigma)
        with pytest.raises(ProblemError, match="lies between"):
            as_problem(FREE, sigma=(1.0, sigma, 1.0))
    for sigma in (1e-150, 1e150):
        as_problem(FREE, sigma=sigma)
    with pytest.raises(ProblemError, match="times the smallest"):
        as_problem(FREE, sigma=(1e-8, 1e-8, 1.0))
    as_problem(FREE, sigma=(1e-3, 1.0, 1e3))
    # Nobody sees the noise of an arm that cannot be pulled.
    arms = fl.Arms([[1.0], [2.0], [3.0]], measurable=[True, True, False])
    as_problem(arms, sigma=(1e-140, 1e-140))
    as_problem(FREE, sigma=None)
