"""The posterior of all arms: against formulas that know nothing of it, and against simulation."""

import numpy as np
import pytest
from scipy import integrate

import finalist as fl
from finalist.inference import belief as module
from finalist.inference.belief import Belief
from finalist.inference.least_squares import estimate
from finalist.inference.statistics import Statistics
from finalist.simulation.binomial import exact_interval


def fitted(arms, counts, means, spread=0.0):
    s = Statistics.empty(len(arms))
    for arm, (n, mean) in enumerate(zip(counts, means, strict=True)):
        signs = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        s.add_many(np.full(n, arm), mean + spread * signs)
    return estimate(arms, s)


def believed(fit, sigma):
    """Return the belief of an estimate, which has one."""
    found = Belief.of(fit, sigma)
    assert found is not None
    return found


def posterior(found):
    """Return the mean and the second moment of each lead of the first arm."""
    gap, width = found.gaps(0, list(range(1, len(found.axes))))
    mean = found.weights @ gap
    return mean, found.weights @ (gap**2 + width**2) - mean**2


def test_two_contrasts_have_the_flat_prior():
    fit = fitted(fl.Arms.unstructured(3), [4, 9, 2], [1.0, 0.5, -0.2])
    mean, variance = posterior(believed(fit, 2.0))
    assert mean * 2.0 == pytest.approx([0.5, 1.2])
    assert variance == pytest.approx([1 / 4 + 1 / 9, 1 / 4 + 1 / 2])


@pytest.mark.parametrize("estimates", [[0.9, 0.4, 0.1, -0.2, -0.3], [5.0, 4.0, 1.0, 0.0, -3.0]])
def test_means_are_those_of_steins_prior(estimates):
    """Equal counts: the mean is the estimate times a factor, an integral over tau^2."""
    n, K = 3, len(estimates)
    fit = fitted(fl.Arms.unstructured(K), [n] * K, estimates)
    mean, _ = posterior(believed(fit, 1.0))
    b, error = np.array(estimates) - np.mean(estimates), 1.0 / n
    square = float(b @ b)

    def weight(v):  # of tau^2 = v in units in which arms vary by tau: its uniform prior
        return (error + v) ** (-(K - 1) / 2) * np.exp(-square / 2 / (error + v))

    total = integrate.quad(weight, 0, np.inf)[0]
    kept = integrate.quad(lambda v: weight(v) * v / (error + v), 0, np.inf)[0] / total
    assert mean == pytest.approx(kept * (b[0] - b[1:]), rel=5e-3)
    assert 0.1 < kept < 0.99


def test_the_level_of_all_arms_does_not_matter():
    X = np.column_stack([np.ones(7), np.random.default_rng(1).standard_normal((7, 4))])
    arms, means = fl.Arms(X), np.array([0.4, 0.1, 0.3, -0.2, 0.0, 0.2, -0.1])
    low = posterior(believed(fitted(arms, [3] * 7, means), 1.0))
    high = posterior(believed(fitted(arms, [3] * 7, means + 1000.0), 1.0))
    assert np.allclose(low, high, rtol=1e-6, atol=1e-9)


def test_units_of_rewards_do_not_matter():
    arms, means = fl.Arms.unstructured(6), np.array([0.4, 0.1, 0.3, -0.2, 0.0, 0.2])
    one = believed(fitted(arms, [3] * 6, means), 1.0)
    other = believed(fitted(arms, [3] * 6, 1e6 * means), 1e6)
    assert np.allclose(posterior(one), posterior(other))
    assert other.sigma == 1e6


def test_draws_have_the_moments_of_the_mixture():
    fit = fitted(fl.Arms.unstructured(5), [2, 3, 4, 5, 6], [1.0, 0.6, 0.2, -0.4, 0.1])
    found = believed(fit, 1.0)
    drawn, factor = found.draw(100_000, np.random.default_rng(0))
    leads = drawn @ (found.axes[0] - found.axes[1:]).T
    mean, variance = posterior(found)
    assert leads.mean(axis=0) == pytest.approx(mean, abs=0.01)
    assert leads.var(axis=0) == pytest.approx(variance, rel=0.03)
    assert (factor == 1.0).all()


def test_an_unknown_sigma_widens_draws():
    fit = fitted(fl.Arms.unstructured(4), [2] * 4, [1.0, 0.6, 0.2, -0.4], spread=0.5)
    found = believed(fit, None)
    assert found.freedom == 4
    assert found.sigma == pytest.approx(np.sqrt(fit.residual_variance))
    _, factor = found.draw(50_000, np.random.default_rng(0))
    assert np.mean(factor**2) == pytest.approx(2.0, rel=0.1)  # of t with 4 degrees: 4 / (4 - 2)


def test_estimates_at_the_end_are_those_of_further_pulls():
    """Against rewards drawn one by one, and least squares on all of them."""
    arms = fl.Arms(np.random.default_rng(3).standard_normal((6, 3)))
    first, later = np.array([3, 2, 4, 2, 3, 2]), np.array([5, 0, 7, 1, 0, 4])
    means = np.array([0.5, 0.1, -0.2, 0.3, 0.0, 0.2])
    s = Statistics.empty(6)
    s.add_batch(first, first * means, first * means**2)
    fit = estimate(arms, s)
    found, rng = believed(fit, 1.0), np.random.default_rng(1)
    Z = arms.coordinates
    truth = fit.phi + np.array([0.3, -0.2, 0.1])
    drawn = np.tile(np.linalg.lstsq(found.axes, (Z - Z.mean(axis=0)) @ truth)[0], (20_000, 1))
    more = (Z.T * later) @ Z
    ends = found.estimates_at_end(drawn, np.ones((20_000, 1)), more, rng) @ found.axes.T
    A, B = (Z.T * first) @ Z, (Z.T * later) @ Z
    expected = np.linalg.solve(A + B, A @ fit.phi + B @ truth)
    spread = np.linalg.solve(A + B, B) @ np.linalg.inv(A + B)
    C = Z - Z.mean(axis=0)
    assert ends.mean(axis=0) == pytest.approx(C @ expected, abs=0.01)
    assert ends.var(axis=0) == pytest.approx(np.einsum("ij,jk,ik->i", C, spread, C), rel=0.05)


def right_and_said(prior, runs=1500):
    """Return how often the leader of 12 normal arms is the best, and how often that was said."""
    rng, arms, right, said = np.random.default_rng(7), fl.Arms.unstructured(12), 0, 0.0
    for _ in range(runs):
        truth = 0.5 * rng.standard_normal(12)
        s = Statistics.empty(12)
        s.add_batch(np.full(12, 4), 4 * truth + 2.0 * rng.standard_normal(12), np.full(12, 1e9))
        fit = estimate(arms, s)
        leader = int(fit.means().argmax())
        found = prior(fit)
        drawn, _ = found.draw(200, rng)
        said += float(((drawn @ found.axes.T).argmax(axis=1) == leader).mean())
        right += truth.argmax() == leader
    return right, said / runs, runs


def test_it_is_right_as_often_as_it_says_and_a_flat_prior_is_not():
    right, said, runs = right_and_said(lambda fit: believed(fit, 1.0))
    low, high = exact_interval(right, runs, 0.999)
    assert low - 0.02 < said < high + 0.02

    def flat(fit):
        found = believed(fit, 1.0)
        return type(found)(**vars(found) | {"scales": np.array([np.inf]), "weights": np.ones(1)})

    _, said, _ = right_and_said(flat)
    assert said > high + 0.02  # the broken twin: it believes too much


def test_nothing_is_believed_of_nothing():
    arms = fl.Arms.unstructured(3)
    assert Belief.of(estimate(arms, Statistics.empty(3)), 1.0) is None
    assert Belief.of(fitted(arms, [1, 1, 1], [0, 1, 2]), None) is None  # no residuals
    assert Belief.of(fitted(fl.Arms.unstructured(1), [3], [1.0]), 1.0) is None


def test_what_was_not_measured_may_be_anything():
    arms = fl.Arms.unstructured(5)
    found = believed(fitted(arms, [4, 4, 4, 4, 0], [0.6, 0.2, 0.0, -0.1, 0.0]), 1.0)
    _, width = found.gaps(0, [1, 4])
    assert (width[:, 1] > width[:, 0]).all()
    assert np.isfinite(width).all()


def test_the_grid_reaches_far_enough():
    """With more and wider scales nothing changes."""
    fit = fitted(fl.Arms.unstructured(6), [2, 3, 4, 5, 6, 7], [1.0, 0.6, 0.2, -0.4, 0.1, 0.0])
    usual = posterior(believed(fit, 1.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LEAST", 0.001)
        patch.setattr(module, "MOST", 300.0)
        patch.setattr(module, "SCALES", 2001)
        wide = posterior(believed(fit, 1.0))
    assert np.allclose(usual, wide, rtol=0.03)
