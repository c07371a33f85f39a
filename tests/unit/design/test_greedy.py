from itertools import islice

import numpy as np
import pytest

import finalist as fl
from finalist.design import Greedy, design_value, greedy, greedy_allocation
from finalist.errors import DesignError
from tests import instances, referees

ARMS = {
    "paper": instances.paper(5, 0.01).features,
    "basis": np.eye(4),
    "gaussian": instances.gaussian(15, 3, 0),
    "cube": instances.hypercube(3),
    "factorial": instances.one_hot_factorial((2, 3)),
    "clusters": instances.clusters(1e-3, 3, 3, 3, 1),
}


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("criterion", ["g", "xy"])
def test_every_pull_is_the_one_brute_force_chooses(name, criterion):
    arms = fl.Arms(ARMS[name])
    Y = referees.directions_of(arms.features, criterion)
    picks = list(islice(greedy(arms, criterion), 30))
    counts = np.zeros(len(arms))
    for step, pick in enumerate(picks):
        if step >= arms.rank:
            assert pick == referees.greedy_step(arms.features, counts, Y)
        counts[pick] += 1


@pytest.mark.parametrize("name", ARMS)
def test_every_pull_for_the_mean_is_the_one_brute_force_chooses(name):
    arms = fl.Arms(ARMS[name])
    counts = np.zeros(len(arms))
    for step, pick in enumerate(islice(greedy(arms, "v"), 30)):
        if step >= arms.rank:
            assert pick == referees.greedy_mean_step(arms.features, counts)
        counts[pick] += 1


@pytest.mark.parametrize("name", ARMS)
def test_the_rule_of_the_mean_reaches_the_optimum(name):
    # Unlike the rule of the worst variance: a mean is smooth in the design.
    arms = fl.Arms(ARMS[name])
    counts = greedy_allocation(arms, "v", 20_000)
    best = fl.optimal_design(arms, "v").value
    assert design_value(arms, counts / 20_000, "v") <= 1.001 * best


def test_the_first_pulls_span():
    arms = fl.Arms(instances.hypercube(6))
    first = Greedy(arms, "g").extend(arms.rank)
    assert np.linalg.matrix_rank(arms.features[first]) == arms.rank


def test_ties_do_not_pull_one_arm_for_ever():
    arms = fl.Arms(instances.paper(5, 0.01).features)
    counts = greedy_allocation(arms, "xy", 20_000)
    assert np.sort(counts)[1:].min() == 4000


def test_directions_as_criterion():
    arms = fl.Arms.unstructured(4)
    counts = greedy_allocation(arms, np.array([[1.0, -1.0, 0.0, 0.0]]), 1000)
    np.testing.assert_array_equal(counts, [499, 499, 1, 1])


@pytest.mark.parametrize("criterion", ["xy", "v"])
def test_refreshed_state_does_not_drift(criterion, monkeypatch):
    from finalist.design.kernels import greedy as greedy_kernels

    arms = fl.Arms(instances.gaussian(12, 4, 2))
    plain = greedy_allocation(arms, criterion, 4000)
    monkeypatch.setattr(greedy_kernels, "REFRESH", 7)
    np.testing.assert_array_equal(greedy_allocation(arms, criterion, 4000), plain)


@pytest.mark.parametrize("criterion", ["xy", "v"])
def test_in_pieces_or_at_once(criterion):
    arms = fl.Arms(instances.gaussian(12, 4, 2))
    state = Greedy(arms, criterion)
    pieces = np.concatenate([state.extend(n) for n in (1, 2, 5, 40, 300)])
    np.testing.assert_array_equal(pieces, Greedy(arms, criterion).extend(348))
    np.testing.assert_array_equal(np.bincount(pieces, minlength=12), state.counts)


def test_errors():
    arms = fl.Arms.unstructured(3)
    with pytest.raises(DesignError, match="criterion is 'd'"):
        greedy(arms, "d")
    with pytest.raises(DesignError, match="among goes with criterion 'xy', not with 'v'"):
        Greedy(arms, "v", among=np.array([0, 1]))
    with pytest.raises(DesignError, match="smallest number is 3"):
        greedy_allocation(arms, "g", 2)
    with pytest.raises(DesignError, match="too many"):
        Greedy(fl.Arms(np.arange(10_000.0)[:, None]), "xy")


def test_an_arm_of_zeros_and_negative_pulls_are_refused():
    with pytest.raises(DesignError, match="zero"):
        Greedy(fl.Arms([[0.0, 0.0]]), "g")
    with pytest.raises(DesignError, match="at least 0"):
        Greedy(fl.Arms.unstructured(2), "g").extend(-1)


def test_arms_with_roles_are_refused():
    arms, some = fl.Arms([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]), np.array([True, True, False])
    for roles in ((some, None), (None, some)):
        with pytest.raises(DesignError, match=r"cannot be pulled or cannot win.*optimal_design"):
            greedy_allocation(arms._marked(*roles), "g", 10)


def test_counts_are_a_copy():
    state = Greedy(fl.Arms.unstructured(2), "g")
    state.counts[0] = 5
    assert state.counts.sum() == 0


def test_a_single_arm():
    for criterion in ("g", "xy", "v"):
        assert list(islice(greedy(fl.Arms([[2.0]]), criterion), 3)) == [0, 0, 0]
