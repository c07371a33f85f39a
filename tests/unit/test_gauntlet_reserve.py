"""A pilot that is split: what is shown of it and what is kept back are independent."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import finalist as fl
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.simulation.binomial import exact_lower_bound
from finalist.strategies.gauntlet.reserve import Reserve

PER_ARM = as_problem(fl.Arms.unstructured(2), sigma=(0.7, 2.0))


def split(q: Any, u: Any, sigma: Any, pulls: list[float], rng: np.random.Generator) -> Reserve:
    """Reveal a pilot with sums q of u pulls, step by step."""
    problem = as_problem(fl.Arms.unstructured(len(q)), sigma=sigma)
    reserve = Reserve.empty(len(q))
    reserve.add(Statistics.of_batch(u, q, np.zeros(len(u))))
    for some in pulls:
        reserve.reveal(problem, some, rng.standard_normal(len(u)))
    return reserve


def test_what_a_split_is_worth():
    rng, u = np.random.default_rng(0), np.array([3, 1, 2])
    q = np.array([1.5, -2.0, 1e9])
    reserve = split(q, u, (0.5, 1.0, 2.0), [2.4, 0.6], rng)
    assert reserve.shown == pytest.approx(u * 0.5)
    assert reserve.worth == pytest.approx(u * 0.5)
    assert reserve.shown_total + reserve.total == pytest.approx(q, rel=1e-15)
    assert (reserve.revealed, reserve.kept) == pytest.approx((3.0, 3.0))
    # By hand: 0.4 q + sigma sqrt(0.4 * 0.6 * u) w of one arm.
    one = Reserve.empty(1)
    one.add(Statistics.of_batch([5], [10.0], [0.0]))
    one.reveal(as_problem(fl.Arms.unstructured(2), sigma=2.0), 2.0, np.array([1.5]))
    assert one.shown_total[0] == pytest.approx(4.0 + 2.0 * math.sqrt(1.2) * 1.5, rel=1e-12)
    assert one.total[0] == pytest.approx(10.0 - one.shown_total[0], rel=1e-12)
    # All that is left: no noise is needed for it.
    one.reveal(as_problem(fl.Arms.unstructured(2), sigma=2.0), 99.0, np.array([1.5]))
    assert (one.kept, one.revealed) == (0.0, 5.0)
    assert one.shown_total[0] == pytest.approx(10.0, rel=1e-12)
    assert len(one.arms()) == 0


def test_parts_of_a_split_are_independent_normal_numbers():
    rng, u, n = np.random.default_rng(1), np.array([2, 5]), 6000
    sigma, mu = np.array([0.7, 2.0]), np.array([1.0, -3.0])
    found = np.empty((n, 3, 2))
    for i in range(n):
        q = u * mu + np.sqrt(u) * sigma * rng.standard_normal(2)
        reserve = Reserve.empty(2)
        reserve.add(Statistics.of_batch(u, q, np.zeros(2)))
        reserve.reveal(PER_ARM, 2.8, rng.standard_normal(2))  # 0.4 of all
        first = reserve.shown_total.copy()
        # How much more is shown depends on what was shown: that is allowed.
        more = 0.7 if first[0] > 0.8 else 2.1
        reserve.reveal(PER_ARM, more, rng.standard_normal(2))
        share = 1.0 - (2.8 + more) / 7.0
        found[i] = (
            (first - 0.4 * u * mu) / (sigma * np.sqrt(0.4 * u)),
            (reserve.shown_total - first - more / 7.0 * u * mu) / (sigma * np.sqrt(more / 7.0 * u)),
            (reserve.total - share * u * mu) / (sigma * np.sqrt(share * u)),
        )
    flat = found.reshape(n, 6)
    # Six independent N(0, 1): means, variances, correlations, and tails of products.
    assert np.abs(flat.mean(axis=0)).max() < 4.5 / math.sqrt(n)
    correlation = flat.T @ flat / n
    assert np.abs(correlation - np.eye(6)).max() < 6.5 / math.sqrt(n)
    both = int(np.count_nonzero((flat[:, 0] > 1.0) & (flat[:, 4] > 1.0)))
    assert stats.binomtest(both, n, stats.norm.sf(1.0) ** 2).pvalue > 1e-4
    for j in range(6):
        assert stats.kstest(flat[:, j], "norm").pvalue > 1e-4


def test_a_split_with_too_little_noise_is_noticed():
    # The twin of the last test: half the noise of our own, and what is left follows what is shown.
    rng, n = np.random.default_rng(2), 4000
    problem, seen = as_problem(fl.Arms.unstructured(2), sigma=1.0), []
    for _ in range(n):
        reserve = Reserve.empty(1)
        reserve.add(Statistics.of_batch([4], [2.0 * rng.standard_normal()], [0.0]))
        reserve.reveal(problem, 2.0, 0.5 * rng.standard_normal(1))
        seen.append((reserve.shown_total[0] > 0.0) == (reserve.total[0] > 0.0))
    assert exact_lower_bound(int(np.sum(seen)), n, 0.999) > 0.5
