"""Where the gauntlet measures: a rejected arm that may be the best after all is looked at again."""

from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.errors import ProblemError
from finalist.problem import as_problem
from finalist.simulation.rewards import DrawnRewards
from finalist.simulation.task import make_task
from finalist.strategies.gauntlet.planner import allocate, within
from finalist.strategies.gauntlet.targets import DOUBT, LATER, MORE, Targets
from tests import instances

K = 4
PULLS = np.array([10.0, 1000.0, 1000.0, 1000.0])


def aim(gap, age):
    """Arm 1 leads arm 2 by little; arm 0 is rejected, its estimate `gap` errors below."""
    error = np.sqrt(1 / PULLS[0] + 1 / PULLS[1])
    theta = np.array([1.0 - gap * error, 1.0, 0.99, -5.0])
    ages = np.array([age, 0.0, 0.0, LATER])
    return Targets(
        Z=np.eye(K),
        root=np.diag(PULLS**-0.5),
        sigma=1.0,
        thetas=np.tile(theta, (3, 1)),
        leader=1,
        first=np.array([1]),
        second=np.array([2]),
        missing=np.array([1.0]),
        epsilon=0.0,
        last=np.zeros(K, dtype=np.int64),
        age=ages,
        room=np.full(K, 10**6),
    )


def test_a_rejected_arm_in_doubt_gets_some_pulls():
    counts, _ = allocate(aim(gap=0.9 * DOUBT, age=LATER), 300)
    assert counts.sum() == 300
    assert 1 <= counts[0] <= 30
    assert counts[3] == 0  # clearly worse
    assert counts[1] + counts[2] >= 250


@pytest.mark.parametrize(
    ("gap", "age"), [(1.1 * DOUBT, LATER), (DOUBT + 2 * MORE, 3 * LATER), (0.5, 0.9 * LATER)]
)
def test_no_doubt_or_too_early_no_pulls(gap, age):
    counts, _ = allocate(aim(gap, age), 300)
    assert counts[0] == 0


def test_a_rejected_leader_is_no_doubtful_arm():
    plan = aim(gap=-2.0, age=9.0)
    object.__setattr__(plan, "leader", 0)
    assert len(plan.doubtful()) == 0


@pytest.mark.parametrize("index", [261, 460, 600, 769])
def test_a_lost_best_arm_does_not_make_a_run_endless(index):
    # Arm 0 is rejected early in these runs, with an estimate below the others'. Without a second
    # look arms 1 to 5 are told from each other, at hundreds of times the lower bound.
    means = np.array([1.0, 0.8, 0.79, 0.78, 0.77, 0.76, 0.0, 0.0, 0.0, 0.0])
    arms = fl.Arms(np.eye(10))
    settings: dict[str, Any] = {"sigma": 1.0, "delta": 0.05}
    task = make_task(arms, means, "gauntlet", rewards=None, seed=5, max_pulls=10**9, **settings)
    outcome = task.run(index)
    assert outcome.pulls.sum() < 15 * fl.complexity(arms, means, sigma=1.0).lower_bound


def test_pulls_without_room_go_to_other_arms():
    counts = np.array([10, 5, 0, 1])
    np.testing.assert_array_equal(within(counts, np.array([99, 99, 99, 99])), counts)
    fitted = within(counts, np.array([4, 9, 3, 1]))
    assert fitted.sum() == 16
    assert np.all(fitted <= [4, 9, 3, 1])
    assert np.all(fitted >= np.minimum(counts, [4, 9, 3, 1]))
    np.testing.assert_array_equal(within(counts, np.array([1, 1, 1, 0])), [1, 1, 1, 0])


@pytest.mark.parametrize("most", [1, 3, 40])
def test_no_arm_is_pulled_more_often_than_it_can(most):
    arms = fl.Arms(instances.unit_sphere(12, 3, 0))
    run = fl.Gauntlet().start(as_problem(arms, sigma=1.0, max_pulls_per_arm=most), seed=1)
    lab = DrawnRewards(arms.means([0.1, 0.0, 0.0]), 1.0, "gaussian", np.random.default_rng(0))
    total = np.zeros(12, dtype=np.int64)
    while total.sum() < 12 * most and not run.verdict.decided:
        batch = run.next(size=7)
        assert 1 <= batch.size <= 7
        total += batch.counts
        assert total.max() <= most
        run.record(batch, lab.batch(batch.counts))
    if not run.verdict.decided:
        with pytest.raises(ProblemError, match=f"its {most} measurements"):
            run.next()
