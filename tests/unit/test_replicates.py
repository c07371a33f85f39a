"""Sigma from repeated measurements: exact in the limits, stable, with the coverage it claims."""

import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

import finalist as fl
from finalist.errors import EstimateError
from finalist.inference import replicates
from finalist.inference.replicates import pooled_sigma, sigma_of
from finalist.inference.statistics import Statistics

#: Group sizes of the statistical tests: mostly pairs, as in real sheets, where wrong degrees of
#: freedom matter most. 1 says nothing.
SIZES = (2, 2, 2, 3, 2, 1, 4)
RUNS = 4000


def by_definition(names, values):
    """Return the pooled standard deviation and its degrees of freedom, group by group."""
    groups = {name: [v for n, v in zip(names, values, strict=True) if n == name] for name in names}
    some = [np.array(group) for group in groups.values() if len(group) > 1]
    freedom = sum(len(group) - 1 for group in some)
    squares = sum((len(group) - 1) * np.var(group, ddof=1) for group in some)
    return math.sqrt(squares / freedom), freedom


def test_it_is_the_textbook_formula():
    rng = np.random.default_rng(0)
    names = rng.permutation(np.repeat(list("abcdefg"), SIZES)).tolist()
    values = rng.normal(size=len(names)).tolist()
    found = sigma_of(names, values)
    sigma, freedom = by_definition(names, values)
    assert found.sigma == pytest.approx(sigma, rel=1e-12)
    assert found.degrees_of_freedom == freedom == 9
    assert (found.measurements, found.candidates) == (15, 6)
    squares = freedom * sigma**2
    assert found.low == pytest.approx(math.sqrt(squares / stats.chi2(freedom).ppf(0.975)))
    assert found.high == pytest.approx(math.sqrt(squares / stats.chi2(freedom).ppf(0.025)))


def test_results_around_a_billion_keep_a_thousandth():
    rng = np.random.default_rng(1)
    names, noise = ["a", "b"] * 500, 1e-3 * rng.normal(size=1000)
    far = 1e9 * np.array([1.0, -3.0] * 500) + noise
    expected = by_definition(names, noise)[0]
    assert sigma_of(names, far).sigma == pytest.approx(expected, rel=1e-4)  # 1e-7 is the last digit
    assert sigma_of(names, far).resolved


def test_order_and_names_do_not_matter():
    rng = np.random.default_rng(2)
    names, values = ["a", "b", "c"] * 4, rng.normal(size=12)
    order = rng.permutation(12)
    one, other = sigma_of(names, values), sigma_of([names[i] for i in order], values[order])
    assert one.sigma == pytest.approx(other.sigma, rel=1e-14)
    assert sigma_of([ord(name) for name in names], values).sigma == one.sigma


@pytest.mark.parametrize("values", [[2.0] * 4, [0.1 + 0.2, 0.3, 0.3, 0.1 + 0.2]])
def test_equal_results_are_no_noise_of_zero(values):
    found = sigma_of("aaaa", values)
    assert not found.resolved
    assert "below the resolution of the numbers" in str(found)
    assert "rounded" in str(found)
    assert "below the resolution" in found.brief()


def test_nothing_measured_twice_says_what_is_needed():
    with pytest.raises(EstimateError, match=r"3 results of 3 candidates: none.*Measure some"):
        sigma_of("abc", [1.0, 2.0, 3.0])
    with pytest.raises(EstimateError, match="0 results of 0 candidates"):
        sigma_of("", [])


def test_yes_and_no_have_no_sigma():
    with pytest.raises(EstimateError, match=r"all 4 results are 0 or 1.*--noise bernoulli"):
        sigma_of("aabb", [0, 1, 1, 1])
    assert sigma_of("aabb", [0, 1, 1, 0.5]).sigma > 0


@pytest.mark.parametrize("values", [[1.0, math.nan], [1.0, math.inf], [1.0], [[1.0, 2.0]]])
def test_what_is_not_a_result_is_refused(values):
    with pytest.raises(EstimateError, match="one finite result for each name"):
        sigma_of("aa", values)


def test_sums_without_squares_tell_nothing():
    assert pooled_sigma(Statistics.of_batch([2, 1], [3.0, 1.0]), ["a", "b"]) is None


def test_precisions_make_it_a_ratio():
    sums = Statistics.of_batch([3, 3], [0.0, 0.0], [2.0, 200.0])
    found = pooled_sigma(sums, ["a", "b"], np.array([1.0, 0.01]))
    assert found is not None
    assert found.sigma == pytest.approx(1.0)
    assert found.remark == ""  # each scatters as its own sigma says
    uneven = pooled_sigma(Statistics.of_batch([20, 20], [0.0, 0.0], [19, 1900]), "ab")
    assert uneven is not None
    assert "results of b scatter" in uneven.remark


def test_the_words():
    found = fl.estimate_sigma([("a", 1.0), ("a", 3.0), ("b", 5.0)])
    assert str(found).startswith(
        "about 1.4, from 2 repeated measurements of 1 candidate (1 degree of freedom); with 95 % "
        "confidence between 0.63 and 45"
    )


# ---- how often it is right ---------------------------------------------------------------


def covered(estimate=sigma_of, sigma=0.7):
    """Count the runs in which the interval has sigma in it."""
    rng = np.random.default_rng(5)
    names = np.repeat(list("abcdefg"), SIZES).tolist()
    means = rng.normal(scale=100.0, size=len(SIZES))
    count = 0
    for _ in range(RUNS):
        found = estimate(names, np.repeat(means, SIZES) + sigma * rng.normal(size=len(names)))
        count += found.low <= sigma <= found.high
    return count


def is_exact(count):
    """Return whether so many of the runs are what 95 % gives, by an exact test at 1e-4."""
    return bool(stats.binomtest(count, RUNS, 0.95).pvalue > 1e-4)


def test_the_interval_has_the_coverage_that_it_claims():
    assert is_exact(covered())


def test_degrees_of_freedom_that_forget_the_means_would_be_seen():
    """The broken twin: one degree of freedom for each result, as if the means were known."""
    quantile = cache(lambda freedom, tail: stats.chi2(freedom).ppf(tail))

    def forgetful(names, values):
        found = sigma_of(names, values)
        wrong = found.degrees_of_freedom + found.candidates
        low, high = (
            math.sqrt(found.sigma**2 * found.degrees_of_freedom / quantile(wrong, tail))
            for tail in (0.975, 0.025)
        )
        return replicates.SigmaEstimate(found.sigma, wrong, 0, 0, low, high)

    assert not is_exact(covered(forgetful))


def test_a_remark_on_uneven_noise_is_rare_and_finds_it():
    rng = np.random.default_rng(6)
    names = np.repeat(list("abcdefg"), SIZES).tolist()
    odd = sum(bool(sigma_of(names, rng.normal(size=len(names))).remark) for _ in range(RUNS))
    assert stats.binomtest(odd, RUNS, replicates.UNEVEN, alternative="greater").pvalue > 1e-4
    wild = rng.normal(size=len(names)) * np.where(np.array(names) == "g", 300.0, 1.0)
    assert "'g'" in sigma_of(names, wild).remark
