"""The engine: seeds, caps, correctness, kinds of rewards, processes, wrong arguments."""

import io
import math
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import finalist as fl
from finalist.errors import FinalistError, RewardError, SimulationError
from finalist.problem.rules import rules_of
from finalist.simulation import engine, task
from finalist.strategies import Batch
from tests.fakes import Always, Coin, Fast, Rounds

ARMS = fl.Arms.unstructured(["a", "b", "c"])
THETA = np.array([1.0, 0.5, 0.0])
ARRAYS = ("run", "winner", "correct", "decided", "samples", "pulls_per_arm", "batches")


def constant(arm, n, rng):
    return np.full(n, float(arm))


def too_many(arm, n, rng):
    return np.zeros(n + 1)


def check_same(one: fl.Simulation, other: fl.Simulation) -> None:
    """Compare everything but the time, which no seed fixes."""
    for word in ARRAYS:
        np.testing.assert_array_equal(getattr(one, word), getattr(other, word))
    for word in ("arms", "name", "strategy", "delta", "seed", "requested"):
        assert getattr(one, word) == getattr(other, word)


def test_processes_change_nothing():
    one = fl.simulate(ARMS, THETA, runs=30, sigma=2.0, delta=0.3)
    two = fl.simulate(ARMS, THETA, runs=30, sigma=2.0, delta=0.3, n_jobs=2)
    check_same(one, two)
    assert len(set(one.samples.tolist())) > 1


def test_more_runs_begin_with_the_same_runs():
    many = fl.simulate(ARMS, THETA, Rounds(), runs=40, sigma=3.0)
    few = fl.simulate(ARMS, THETA, Rounds(), runs=10, sigma=3.0)
    np.testing.assert_array_equal(many.winner[:10], few.winner)
    assert len(set(many.winner[:10].tolist())) > 1


def test_the_seed_decides():
    def winners(seed):
        return fl.simulate(ARMS, THETA, Rounds(), runs=40, sigma=5.0, seed=seed).winner

    np.testing.assert_array_equal(winners(1), winners(1))
    assert (winners(1) != winners(2)).any()


def test_each_run_gives_the_strategy_its_own_seed():
    winners = fl.simulate(ARMS, THETA, Coin(), runs=60, sigma=1.0).winner
    assert np.bincount(winners, minlength=3).min() > 8
    assert (winners != fl.simulate(ARMS, THETA, Coin(), runs=60, seed=1, sigma=1.0).winner).any()


def test_counts_and_batches():
    result = fl.simulate(ARMS, THETA, Rounds(4), runs=3, sigma=1.0)
    np.testing.assert_array_equal(result.pulls_per_arm, np.full((3, 3), 4))
    assert result.samples.tolist() == [12] * 3
    assert result.batches.tolist() == [4] * 3
    assert result.run.tolist() == [0, 1, 2]
    assert (result.seconds >= 0).all()


def test_a_run_that_plays_itself_equals_the_same_run_pull_by_pull(monkeypatch):
    played = fl.simulate(ARMS, THETA, Fast(5), runs=20, sigma=4.0)
    assert played.batches.tolist() == [15] * 20
    monkeypatch.setattr(task, "Playable", type("Nothing", (), {}))
    check_same(played, fl.simulate(ARMS, THETA, Fast(5), runs=20, sigma=4.0))


def test_a_function_of_rewards_is_not_played():
    result = fl.simulate(ARMS, THETA, Fast(2), runs=2, rewards=constant, sigma=1.0)
    assert result.winner.tolist() == [2, 2]


@pytest.mark.parametrize("strategy", [Rounds(3), Fast(3)])
@pytest.mark.parametrize(("cap", "decided"), [(9, True), (8, False)])
def test_a_cap_leaves_runs_undecided_and_never_correct(strategy, cap, decided):
    # The last arm is best, which an index of -1 would also be.
    result = fl.simulate(ARMS, THETA[::-1], strategy, runs=4, sigma=1e-6, max_pulls=cap)
    assert (result.decided == decided).all()
    assert (result.correct == decided).all()
    assert (result.winner == (2 if decided else -1)).all()
    assert (result.samples <= cap).all()
    assert result.errors == 0
    assert result.summary().undecided == (0 if decided else 4)


@pytest.mark.parametrize(
    ("theta", "settings", "correct"),
    [
        ([1.0, 1.0, 0.0], {}, [True, True, False]),
        ([1.0, 1.0 + 1e-13, 0.0], {}, [True, True, False]),
        ([1.0, 1.0 + 1e-11, 0.0], {}, [False, True, False]),
        ([1e9, 1e9 + 1e-6, 0.0], {}, [True, True, False]),
        ([1.0, 0.9, 0.0], {"epsilon": 0.1}, [True, True, False]),
        ([1.0, 0.89, 0.0], {"epsilon": 0.1}, [True, False, False]),
        ([1.0, 0.5, 0.0], {"objective": "min"}, [False, False, True]),
        ([1.0, 0.05, 0.0], {"objective": "min", "epsilon": 0.1}, [False, True, True]),
        ([0.0, 0.0, 0.0], {}, [True, True, True]),
    ],
)
def test_which_winners_are_correct(theta, settings, correct):
    found = [
        bool(fl.simulate(ARMS, theta, Always(arm), runs=1, sigma=1.0, **settings).correct[0])
        for arm in range(3)
    ]
    assert found == correct


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        ({"noise": "bernoulli"}, {0.0, 1.0}),
        ({"rewards": "bernoulli", "sigma": 3.0}, {0.0, 1.0}),
        ({"noise": "sub-gaussian", "sigma": 0.25}, {0.25, 0.75}),
        ({"noise": fl.SubGaussian(0.25)}, {0.25, 0.75}),
        ({"rewards": "bounded", "sigma": 0.25}, {0.25, 0.75}),
        ({"sigma": None, "rewards": constant}, {0.0, 1.0, 2.0}),
    ],
    ids=["noise", "rewards", "sub-gaussian", "model", "bounded", "function"],
)
def test_what_is_drawn(settings, values, monkeypatch):
    seen = set()
    record = Fast(1).start(fl.Problem(ARMS, noise=fl.Gaussian(1.0))).__class__.record

    def spy(run, batch, rewards):
        seen.update(rewards.mean[rewards.count > 0].tolist())
        record(run, batch, rewards)

    monkeypatch.setattr("tests.fakes.FastRun.record", spy)
    fl.simulate(ARMS, [0.5, 0.5, 0.5], Fast(10), runs=3, **settings)
    assert seen == values


def test_gaussian_rewards_have_the_sigma_of_the_problem():
    arms = fl.Arms.unstructured(2)
    wins = fl.simulate(arms, [0.1, 0.0], Rounds(1), runs=400, sigma=0.1).correct.mean()
    assert 0.69 < wins < 0.83  # Phi(1 / sqrt 2) = 0.76


def test_a_function_reaches_other_processes():
    def draw(arm, n, rng):
        return rng.standard_normal(n) + 10 * (arm == 2)

    result = fl.simulate(ARMS, THETA, Rounds(), runs=4, n_jobs=2, rewards=draw, sigma=1.0)
    assert result.winner.tolist() == [2] * 4
    assert result.errors == 4


def test_errors_of_other_processes_keep_their_type():
    with pytest.raises(RewardError, match="shape"):
        fl.simulate(ARMS, THETA, Rounds(), runs=4, n_jobs=2, rewards=too_many, sigma=1.0)


def test_other_processes_leave_ctrl_c_to_this_one():
    here = os.getpid()

    def interrupt(arm, n, rng):
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGINT)
        return rng.standard_normal(n)

    result = fl.simulate(ARMS, THETA, Rounds(), runs=6, n_jobs=2, rewards=interrupt, sigma=1.0)
    assert len(result) == 6


def test_a_strategy_that_does_nothing_is_an_error(monkeypatch):
    nothing = Batch(np.zeros(3, dtype=np.int64))
    monkeypatch.setattr("tests.fakes.RoundsRun.next", lambda *_: nothing)
    with pytest.raises(SimulationError, match="returns an empty batch"):
        fl.simulate(ARMS, THETA, Rounds(), runs=1, sigma=1.0)


def test_one_arm_is_known_without_a_pull():
    result = fl.simulate(fl.Arms([[1.0]]), [2.0], runs=2, sigma=1.0)
    assert result.samples.tolist() == [0, 0]
    assert result.correct.all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"runs": 0}, "runs is 0; it is a whole number, 1 or more"),
        ({"runs": 2.5}, r"runs is 2\.5"),
        ({"runs": True}, "runs is True"),
        ({"seed": -1}, "seed is -1; it is a whole number, 0 or more"),
        ({"seed": None}, "seed is None"),
        ({"n_jobs": 0}, "n_jobs is 0; it must be a number of processes, or -1"),
        ({"n_jobs": -2}, "n_jobs is -2"),
        ({"max_pulls": 0}, "max_pulls is 0"),
        ({"progress": "yes"}, "progress is 'yes'"),
        ({"rewards": "cauchy"}, "rewards is 'cauchy'"),
        ({"rewards": "bernoulli", "theta": [2.0, 0.0, 0.0]}, "between 0 and 1"),
        ({"theta": [1.0]}, "theta has shape"),
        ({"strategy": "best"}, "strategy is 'best'; it is one of"),
        ({"strategy": Rounds}, "give a name, or an object such as"),
        ({"strategy": 3}, "strategy is 3"),
        ({"delta": 2.0}, r"delta is 2\.0"),
        ({"sigma": None}, "sigma is None"),
        ({"sigma": 1.0, "noise": "bernoulli"}, "both given"),
        ({"objective": "best"}, "objective is 'best'"),
        ({"epsilon": -1.0}, r"epsilon is -1\.0"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_before_anything_runs(settings, message, monkeypatch):
    monkeypatch.setattr(task.Task, "run", lambda *_: pytest.fail("it ran"))
    words = {"arms": ARMS, "theta": THETA, "strategy": Rounds(), "sigma": 1.0, **settings}
    with pytest.raises(FinalistError, match=message):
        fl.simulate(**words)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_bar_counts_the_runs(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    fl.simulate(ARMS, THETA, Rounds(), runs=7, progress=True, sigma=1.0)
    assert "7/7" in stream.getvalue()


@pytest.mark.parametrize("wanted", [None, False])
def test_short_work_shows_no_bar(monkeypatch, wanted):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    fl.simulate(ARMS, THETA, Rounds(), runs=3, progress=wanted, sigma=1.0)
    assert stream.getvalue() == ""


def test_long_work_shows_a_bar_on_a_terminal_only(monkeypatch):
    monkeypatch.setattr(engine, "_PATIENCE", 0.0)
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        fl.simulate(ARMS, THETA, Rounds(), runs=3, sigma=1.0)
        assert bool(stream.getvalue()) == shown


def test_a_script_may_name_the_package_in_a_function_for_other_processes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
import numpy as np
import finalist as fl

def draw(arm, n, rng):
    assert fl.Arms is not None
    return np.full(n, 1.0 if arm == 0 else 0.0)

if __name__ == "__main__":
    arms = fl.Arms.unstructured(2)
    r = fl.simulate(arms, [1.0, 0.0], sigma=0.1, runs=2, n_jobs=2, rewards=draw)
    print(int(r.correct.sum()))
""")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "2\n"


@pytest.mark.parametrize("name", ["gauntlet", "lazy-ts", "g"])
def test_batches_have_the_size_that_is_asked_for(name):
    result = fl.simulate(ARMS, THETA, name, sigma=0.5, runs=4, seed=1, size=24)
    assert (result.samples % 24 == 0).all()
    assert (result.batches == result.samples // 24).all()
    assert result.correct.all()


def test_any_size_will_do():
    arms = fl.Arms.unstructured(8)
    for size in (1, 3, 7):
        result = fl.simulate(arms, np.arange(8.0), sigma=0.5, runs=3, seed=1, size=size)
        assert (result.samples == size * result.batches).all()
        assert result.correct.all()


def test_by_rules_2_a_size_too_small_to_test_with_is_joined_with_the_next_ones():
    arms = fl.Arms.unstructured(8)
    problem = fl.Problem(arms, noise=fl.Gaussian(0.5), rules=rules_of(2))
    result = fl.simulate(problem, np.arange(8.0), runs=3, seed=1, size=3)
    assert (result.samples % 3 == 0).all()
    pilot = math.ceil(4 * 8 / 3)  # not tested, so that three at a time are enough
    assert ((result.samples - 3 * pilot) / (result.batches - pilot) >= 8).all()
    with pytest.raises(SimulationError, match="size is 0"):
        fl.simulate(arms, np.arange(8.0), runs=1, size=0, sigma=1.0)


def test_a_budget_is_used_up_in_batches_of_a_size():
    result = fl.simulate(ARMS, THETA, sigma=5.0, runs=3, seed=1, size=24, budget=100)
    assert (result.samples == 100).all()
    assert (result.batches == 5).all()


def test_a_function_follows_the_runs():
    seen: list[tuple[int, int]] = []
    fl.simulate(
        fl.Arms.unstructured(2),
        [1.0, 0.0],
        sigma=0.5,
        runs=4,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
