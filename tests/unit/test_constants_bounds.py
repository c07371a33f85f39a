"""Every radius of `bounds`, and the intervals made of them, against numbers worked out by hand."""

import math

import numpy as np
import pytest

import finalist as fl
from finalist.inference.bounds import (
    adaptive_radius,
    determinant_radius,
    kl_bernoulli,
    likely_sigma,
    lower_bound_pulls,
    pooled_level,
    pooled_radius,
    smallest_pulls,
    static_radius,
)
from finalist.inference.intervals import certainty, error_estimate, pooled_widths, start_of
from finalist.inference.least_squares import estimate
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.problem.rules import rules_of
from finalist.strategies.gauntlet import GauntletRun
from tests.unit.boundaries import problem_of, tell

TIGHT = 1e-8


def exactly(*values: float) -> object:
    return pytest.approx(values, rel=TIGHT)


def test_static_radius():
    # Soare 2014, Prop. 1, K = 4, sigma = 2, delta = 0.05, n = 10, 20, 40. Levels 6 delta / (pi n)^2
    # shared by 4 * 3 ordered pairs:
    #   2 sqrt(2 log(pi^2 * 10^2 * 12 / (6 * 0.05))) = 9.20152570
    #   2 sqrt(2 log(pi^2 * 20^2 * 12 / (6 * 0.05))) = 9.78562365
    #   2 sqrt(2 log(pi^2 * 40^2 * 12 / (6 * 0.05))) = 10.33676860
    found = [static_radius(n, 4, 0.05, 2.0) for n in (10, 20, 40)]
    assert found == exactly(9.20152570, 9.78562365, 10.33676860)
    # As printed:
    #   2 sqrt(2) * 2 sqrt(log(6 / pi^2 * 10^2 * 4^2 / 0.05)) = 17.77710067
    #   2 sqrt(2) * 2 sqrt(log(6 / pi^2 * 20^2 * 4^2 / 0.05)) = 18.98385440
    #   2 sqrt(2) * 2 sqrt(log(6 / pi^2 * 40^2 * 4^2 / 0.05)) = 20.11835349
    found = [static_radius(n, 4, 0.05, 2.0, "soare") for n in (10, 20, 40)]
    assert found == exactly(17.77710067, 18.98385440, 20.11835349)


def test_adaptive_radius():
    # Soare 2014, Prop. 2, d = 3, sigma = 2, delta = 0.05, L = 2, S = 1.5, eta = 1/2, n = 10, 20, 40
    #   2 sqrt(3 log((1 + 10 * 4 / 0.5) / 0.05)) + sqrt(0.5) * 1.5 = 10.47778166
    #   2 sqrt(3 log((1 + 20 * 4 / 0.5) / 0.05)) + sqrt(0.5) * 1.5 = 10.90574218
    #   2 sqrt(3 log((1 + 40 * 4 / 0.5) / 0.05)) + sqrt(0.5) * 1.5 = 11.31766172
    found = [adaptive_radius(n, 3, 0.05, 2.0, L=2.0, S=1.5, eta=0.5) for n in (10, 20, 40)]
    assert found == exactly(10.47778166, 10.90574218, 11.31766172)


def test_determinant_radius():
    # Abbasi-Yadkori et al. 2011, Thm. 2, log of the determinants' ratio = 1, 3, 6:
    #   2 sqrt(1 + 2 log(1 / 0.05)) + sqrt(0.5) * 1.5 = 6.34893571
    #   2 sqrt(3 + 2 log(1 / 0.05)) + sqrt(0.5) * 1.5 = 7.05781435
    #   2 sqrt(6 + 2 log(1 / 0.05)) + sqrt(0.5) * 1.5 = 7.98639899
    found = [determinant_radius(x, 0.05, 2.0, S=1.5, eta=0.5) for x in (1.0, 3.0, 6.0)]
    assert found == exactly(6.34893571, 7.05781435, 7.98639899)


# The mixture bounds S'(A + A_0)^-1 S by sigma^2 (log ratio + 2 log(1/delta)), which has all of
# delta (Abbasi-Yadkori et al. 2011, Thm. 1; log det ratio = 0, 2, 5, sigma = 2):
#   2 sqrt(0 + 2 log 20) = 4.89549366
#   2 sqrt(2 + 2 log 20) = 5.65383571
#   2 sqrt(5 + 2 log 20) = 6.63067555
POOLED = (4.89549366, 5.65383571, 6.63067555)


def test_pooled_radius_and_its_inverse():
    assert [pooled_radius(x, 0.05, 2.0) for x in (0.0, 2.0, 5.0)] == exactly(*POOLED)
    for x, radius in zip((0.0, 2.0, 5.0), POOLED, strict=True):
        assert pooled_level(x, radius / 2.0) == pytest.approx(0.05, rel=1e-6)


def fitted(counts, means):
    """Return the estimate from pulls of arms that share nothing, with a scatter of variance 4."""
    n = np.array(counts)
    statistics = Statistics.of_batch(n, n * np.array(means), 4.0 * (n - 1))
    return estimate(fl.Arms.unstructured(len(n)), statistics)


def test_pooled_widths_are_at_the_level_asked_for():
    # Each of three arms has 16 pulls beside the 4 of A_0: the ratio is (20/4)^3, and the norm of
    # e_0 - e_1 the root of 2 (1/16 + 4/16^2) = 0.15625,
    #   2 sqrt(3 log 5 + 2 log 20) sqrt(0.15625) = 2.600454081
    fit = fitted((16, 16, 16), (1.0, 0.0, 0.0))
    start = start_of(as_problem(fit.arms, sigma=2.0))
    y = fit.arms.coordinates[[0]] - fit.arms.coordinates[[1]]
    assert pooled_widths(fit, y, start, 0.95, 2.0) == exactly(2.600454081)
    # sigma is unknown: 45 residuals of variance 4. The 1 % quantile of chi-square with 45 degrees
    # of freedom is 25.901269193, sqrt(4 * 45 / 25.901269193) = 2.636184061 in the place of 2.
    assert fit.degrees_of_freedom == 45
    assert fit.residual_variance == pytest.approx(4.0)
    expected = 2.600454081 * 2.636184061 / 2.0
    assert pooled_widths(fit, y, start, 0.95, None) == exactly(expected)


def test_likely_sigma():
    # 1 % quantiles of chi-square (tables): 2.558212 for 10 degrees of freedom, 0.000157088 for 1.
    assert likely_sigma(4.0, 10) == pytest.approx(math.sqrt(40.0 / 2.55821216), rel=1e-7)
    assert likely_sigma(4.0, 1) == pytest.approx(math.sqrt(4.0 / 0.000157087858), rel=1e-7)


@pytest.mark.parametrize("sign", [1, -1])
def test_certainty_is_the_level_of_the_closest_rival(sign):
    # A gap as large as the half-width at 0.95, 2.600454081 as in the test of `pooled_widths`.
    fit = fitted((16, 16, 16), (sign * 2.600454081, 0.0, sign * -50.0))
    start = start_of(as_problem(fit.arms, sigma=2.0))
    sure = certainty(fit, 0, sign=sign, sigma=2.0, start=start)
    assert sure == pytest.approx(0.95, rel=1e-6)
    # An epsilon is as good as a gap.
    fit = fitted((16, 16, 16), (sign * (2.600454081 - 0.25), 0.0, sign * -50.0))
    sure = certainty(fit, 0, sign=sign, sigma=2.0, start=start, epsilon=0.25)
    assert sure == pytest.approx(0.95, rel=1e-6)


def test_error_estimate_of_two_arms():
    # Phi(-(1 + 0.25) / (2 sqrt(1/8 + 1/8))) = Phi(-1.25) = 0.10564977
    fit = fitted((8, 8), (1.0, 0.0))
    found = error_estimate(fit, 0, sign=1, sigma=2.0, epsilon=0.25)
    assert found == pytest.approx(0.10564977, rel=1e-6)
    # sigma from 14 residuals of variance 4: P(T_14 < -1.25) = 0.11589575
    found = error_estimate(fit, 0, sign=1, sigma=None, epsilon=0.25)
    assert found == pytest.approx(0.11589575, rel=1e-6)


def test_smallest_pulls():
    # n >= 100 * 2 * 2 log(pi^2 n^2 * 2 / (6 * 0.05)) with K = 2 and sigma = sqrt(2): for 8955 the
    # right side is 8954.606, for 8954 it is 8954.516.
    found = smallest_pulls(100.0, lambda n: static_radius(n, 2, 0.05, math.sqrt(2.0)))
    assert found == 8955


def test_lower_bound():
    # kl(0.05, 0.95) = 0.05 log(0.05 / 0.95) + 0.95 log(0.95 / 0.05) = 2.64999508
    assert kl_bernoulli(0.05, 0.95) == pytest.approx(2.64999508, rel=TIGHT)
    assert lower_bound_pulls(100.0, 0.05) == pytest.approx(264.999508, rel=TIGHT)


def test_intervals_of_a_run_are_pooled_ones():
    # The pilot of the gauntlet, 4 pulls of each arm, then 12 more: 16 of each, as in the test of
    # `pooled_widths`.
    run = fl.Gauntlet().start(problem_of(rules=rules_of(2)))
    assert isinstance(run, GauntletRun)
    pilot = run.next()
    assert pilot.counts.tolist() == [4, 4, 4]
    tell(run, pilot.counts, [0.0, 0.0, 0.0], **pilot.note)
    batch = run.next(36)
    tell(run, (12, 12, 12), [0.0, 0.0, 0.0], **batch.note)
    Z = fl.Arms.unstructured(3).coordinates
    _, widths = run.interval(Z[[0]] - Z[[1]])
    assert widths == exactly(2.600454081)
