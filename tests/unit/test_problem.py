"""Problems: what is refused, what is stored, and what a consumer must support."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

from finalist.arms import Arms
from finalist.errors import ArmsError, NotYetSupportedError, OutsideSpanError, ProblemError
from finalist.problem import (
    FEATURES,
    Bernoulli,
    Best,
    EpsilonBest,
    Gaussian,
    Problem,
    SubGaussian,
    TopM,
    as_problem,
)
from tests.unit.test_mean import Logistic


@pytest.fixture
def arms():
    return Arms(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]))


@pytest.fixture
def others():
    return Arms(np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]))


def every_feature(arms):
    """One problem for each feature, which needs this feature only."""
    return {
        "unknown sigma": Problem(arms, noise=Gaussian(None)),
        "sigma per arm": Problem(arms, noise=Gaussian([1.0, 2.0, 3.0])),
        "sub-gaussian": Problem(arms, noise=SubGaussian(1.0)),
        "bernoulli": Problem(arms, noise=Bernoulli()),
        "other candidates": Problem(
            arms, candidates=Arms(np.array([[1.0, 1.0], [2.0, 0.0]])), noise=Gaussian(1.0)
        ),
        "epsilon-best": Problem(arms, goal=EpsilonBest(0.1), noise=Gaussian(1.0)),
        "top-m": Problem(arms, goal=TopM(2), noise=Gaussian(1.0)),
        "minimise": Problem(arms, objective="min", noise=Gaussian(1.0)),
        "cost": Problem(arms, cost=[1.0, 1.0, 2.0], noise=Gaussian(1.0)),
        "batch intercept": Problem(arms, batch_intercept=True, noise=Gaussian(1.0)),
        "misspecification": Problem(arms, misspecification=0.1, noise=Gaussian(1.0)),
        "limited pulls": Problem(arms, max_pulls_per_arm=3, noise=Gaussian(1.0)),
        "link": Problem(arms, mean=Logistic(), noise=Gaussian(1.0)),
    }


def test_defaults_are_the_papers_setting(arms):
    problem = Problem(arms, noise=Gaussian(1.0))
    assert problem.candidates is arms
    assert problem.noise == Gaussian(1.0)
    assert problem.goal == Best()
    assert (problem.delta, problem.sigma, problem.epsilon, problem.sign) == (0.05, 1.0, 0.0, 1)
    assert problem.needs == frozenset()
    problem.refuse_unsupported("anything", frozenset())


def test_every_feature_is_needed_by_its_own_problem(arms):
    problems = every_feature(arms)
    assert set(problems) == FEATURES
    for word, problem in problems.items():
        assert problem.needs == {word}


def test_unsupported_features_are_refused_by_name(arms):
    for word, problem in every_feature(arms).items():
        problem.refuse_unsupported("optimal designs", frozenset({word}))
        said = {"sigma per arm": "sigma per candidate", "limited pulls": "limited measurements"}
        shown = said.get(word, word)
        with pytest.raises(NotYetSupportedError, match=f"by optimal designs: '{shown}'"):
            problem.refuse_unsupported("optimal designs", FEATURES - {word})


def test_all_unsupported_features_are_listed(arms):
    problem = Problem(arms, objective="min", cost=2.0, noise=Gaussian(1.0))
    with pytest.raises(NotYetSupportedError, match="'cost', 'minimise'"):
        problem.refuse_unsupported("designs", frozenset({"top-m"}))


def test_misspelt_features_are_refused(arms):
    with pytest.raises(ProblemError, match="top_m"):
        Problem(arms, noise=Gaussian(1.0)).refuse_unsupported("designs", frozenset({"top_m"}))  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2, np.nan, np.inf, True, "0.05", None])
def test_wrong_delta(arms, delta):
    with pytest.raises(ProblemError, match="delta is"):
        Problem(arms, delta=delta, noise=Gaussian(1.0))


@pytest.mark.parametrize("sigma", [0.0, -1.0, np.nan, np.inf, True, "1", [[1.0]], [1.0, "a"]])
@pytest.mark.parametrize("model", [Gaussian, SubGaussian])
def test_wrong_sigma(model, sigma):
    with pytest.raises(ProblemError, match="sigma is"):
        model(sigma)


def test_wrong_sigma_of_one_arm_is_named():
    with pytest.raises(ProblemError, match=r"sigma for candidate 1 is -2\.0"):
        Gaussian([1.0, -2.0, 0.0])


def test_ragged_sigma():
    with pytest.raises(ProblemError, match="one per arm"):
        Gaussian([[1.0, 2.0], [3.0]])  # type: ignore[list-item]


def test_sub_gaussian_noise_needs_a_sigma():
    with pytest.raises(ProblemError, match="sigma is None"):
        SubGaussian(None)  # type: ignore[arg-type]


def test_sigma_per_arm_must_fit_the_arms(arms):
    with pytest.raises(ProblemError, match="sigma has 2 values for 3 candidates"):
        Problem(arms, noise=Gaussian([1.0, 2.0]))
    with pytest.raises(ProblemError, match="cost has 4 values for 3 candidates"):
        Problem(arms, cost=np.ones(4), noise=Gaussian(1.0))


@pytest.mark.parametrize("cost", [0.0, -1, np.nan, np.inf, [1.0, 0.0, 1.0], None, "cheap"])
def test_wrong_cost(arms, cost):
    with pytest.raises(ProblemError, match="cost"):
        Problem(arms, cost=cost, noise=Gaussian(1.0))


@pytest.mark.parametrize("epsilon", [0.0, -0.1, np.nan, np.inf, True, "0.1"])
def test_wrong_epsilon(epsilon):
    with pytest.raises(ProblemError, match="epsilon is"):
        EpsilonBest(epsilon)


@pytest.mark.parametrize("m", [0, -1, 1.5, True, "2", None])
def test_wrong_m(m):
    with pytest.raises(ProblemError, match="m is"):
        TopM(m)


def test_top_m_leaves_someone_out(arms):
    assert Problem(arms, goal=TopM(2), noise=Gaussian(1.0)).goal == TopM(2)
    with pytest.raises(ProblemError, match="m is 3 and there are 3 candidates"):
        Problem(arms, goal=TopM(3), noise=Gaussian(1.0))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("arms", np.eye(2)),
        ("candidates", np.eye(2)),
        ("noise", 1.0),
        ("goal", "best"),
        ("objective", "maximise"),
        ("batch_intercept", 1),
    ],
)
def test_values_of_the_wrong_kind_are_named(arms, field, value):
    with pytest.raises(ProblemError, match=f"{field} is"):
        Problem(**{"arms": arms, "noise": Gaussian(1.0), field: value})


def test_candidates_must_have_the_same_features(arms):
    with pytest.raises(ProblemError, match="candidates have 3 features and arms 2"):
        Problem(arms, candidates=Arms(np.eye(3)), noise=Gaussian(1.0))


def test_only_differences_of_candidates_need_be_in_the_span():
    arms = Arms(np.array([[1.0, 0.0], [2.0, 0.0]]))
    shifted = Arms(np.array([[1.0, 5.0], [7.0, 5.0]]))
    assert Problem(arms, candidates=shifted, noise=Gaussian(1.0)).candidates.features.tolist() == [
        [1, 5],
        [7, 5],
    ]
    outside = Arms(np.array([[1.0, 5.0], [7.0, 5.0], [1.0, 4.0]]), names=["a", "b", "c"])
    with pytest.raises(ProblemError, match=r"minus the first, 'a'.*direction 2") as caught:
        Problem(arms, candidates=outside, noise=Gaussian(1.0))
    assert isinstance(caught.value.__cause__, OutsideSpanError)


def test_one_candidate_outside_the_span_needs_no_comparison():
    arms = Arms(np.array([[1.0, 0.0], [2.0, 0.0]]))
    assert (
        len(Problem(arms, candidates=Arms(np.array([[0.0, 1.0]])), noise=Gaussian(1.0)).candidates)
        == 1
    )


def test_equal_candidates_are_no_other_candidates(arms):
    same = Arms(np.array(arms.features), names=arms.names)
    assert Problem(arms, candidates=same, noise=Gaussian(1.0)).needs == frozenset()


def test_arrays_are_read_only_and_independent(arms):
    given = np.array([1.0, 2.0, 3.0])
    problem = Problem(arms, noise=Gaussian(given), cost=given)
    given[0] = 99.0
    for array in (problem.sigmas, problem.costs):
        assert list(array) == [1.0, 2.0, 3.0]
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5.0


def test_one_sigma_or_one_per_arm(arms):
    assert list(Problem(arms, noise=Gaussian(2)).sigmas) == [2.0, 2.0, 2.0]
    assert list(Problem(arms, noise=Bernoulli()).sigmas) == [0.5, 0.5, 0.5]
    assert Problem(arms, noise=Bernoulli()).sigma == 0.5
    assert list(Problem(arms, cost=3, noise=Gaussian(1.0)).costs) == [3.0, 3.0, 3.0]
    with pytest.raises(ProblemError, match="differs between candidates"):
        _ = Problem(arms, noise=Gaussian([1.0, 2.0, 3.0])).sigma
    for unknown in ("sigma", "sigmas"):
        with pytest.raises(ProblemError, match="sigma is unknown"):
            getattr(Problem(arms, noise=Gaussian(None)), unknown)


def test_frozen(arms):
    with pytest.raises(AttributeError):
        Problem(arms, noise=Gaussian(1.0)).delta = 0.1


def test_comparable_and_picklable(arms):
    for problem in every_feature(arms).values():
        again = pickle.loads(pickle.dumps(problem))
        assert again == problem
        assert hash(again) == hash(problem)
        assert again.needs == problem.needs
        assert again.costs.flags.writeable is False
    assert Problem(arms, cost=np.ones(3), noise=Gaussian(1.0)) == Problem(
        arms, cost=(1.0, 1.0, 1.0), noise=Gaussian(1.0)
    )
    assert Problem(arms, noise=Gaussian(1.0)) != Problem(arms, delta=0.1, noise=Gaussian(1.0))


def test_with_changes_and_checks(arms):
    problem = Problem(arms, objective="min", noise=Gaussian(1.0))
    assert problem.with_(delta=0.2) == Problem(
        arms, objective="min", delta=0.2, noise=Gaussian(1.0)
    )
    assert problem.sign == -1
    with pytest.raises(ProblemError, match="delta is"):
        problem.with_(delta=7.0)


def test_candidates_come_with_new_arms_unless_given(arms, others):
    assert Problem(arms, noise=Gaussian(1.0)).with_(arms=others).candidates is others
    problem = Problem(arms, candidates=others, noise=Gaussian(1.0))
    assert problem.with_(arms=arms).candidates is arms
    assert Problem(arms, noise=Gaussian(1.0)).with_(candidates=others) == problem
    assert problem.with_(delta=0.2).arms is problem.arms
    again = Problem(problem.arms, noise=Gaussian(1.0))  # the roles are those of the arms
    assert again.candidates.names == ("z1", "z2", "z3")
    assert again.needs == {"other candidates"}


def test_arms_and_candidates_are_one_set(arms):
    named = Arms(np.array([[0.0, 1.0], [5.0, 5.0]]), names=["second", "far"])
    problem = Problem(arms, candidates=named, noise=Gaussian([1.0, 2.0, 3.0]))
    assert problem.arms.aliases == (("x1",), ("x2", "second"), ("x3",), ("far",))
    assert problem.arms.measurable.tolist() == [True, True, True, False]
    assert problem.arms.candidate.tolist() == [False, True, False, True]
    assert problem.noise.sigma == (1.0, 2.0, 3.0, 1.0)  # an arm that is never pulled has any
    with pytest.raises(
        ProblemError, match="sigma has 2 values for 4 candidates; give one per candidate, or"
    ):
        Problem(arms, candidates=named, noise=Gaussian([1.0, 2.0]))
    some = Arms(arms.features, measurable=[True, False, True])
    for sigma in ([1.0, 2.0, 3.0], [1.0, 3.0]):  # of all arms that were given, or of the measured
        partly = Problem(some, candidates=named, noise=Gaussian(sigma), cost=[5.0, 6.0, 7.0])
        assert partly.sigmas[partly.arms.measurable].tolist() == [1.0, 3.0]
        assert partly.costs.tolist() == [5.0, 6.0, 7.0, 1.0]
    clash = Arms(np.array([[7.0, 7.0]]), names=["x1"])
    with pytest.raises(ArmsError, match="'x1' is in both tables with different features"):
        Problem(arms, candidates=clash, noise=Gaussian(1.0))
    other = Arms(pd.DataFrame({"dose": [1.0], "time": [2.0]}))
    with pytest.raises(ArmsError, match="features f1, f2, and what can be chosen has dose, time"):
        Problem(arms, candidates=other, noise=Gaussian(1.0))


def test_the_span_is_that_of_what_can_be_pulled():
    rows = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [3.0, 4.0, 0.0]])
    arms = Arms(rows, measurable=[True, True, False])
    assert arms.rank == 2
    Z = arms.coordinates
    np.testing.assert_allclose(Z[2], 3 * Z[0] + 4 * Z[1], atol=1e-14)
    np.testing.assert_allclose(Z[:2].T @ Z[:2] / 2, np.eye(2), atol=1e-14)
    assert Problem(arms, noise=Gaussian(1.0)).needs == {"other candidates"}
    far = Arms([*rows.tolist(), [0.0, 0.0, 1.0]], measurable=[True, True, False, False])
    with pytest.raises(ProblemError, match="cannot be compared"):
        Problem(far, noise=Gaussian(1.0))
    for mask, message in (([True], "for each of the 3 rows"), ([False] * 3, "no candidate can be")):
        with pytest.raises(ArmsError, match=message):
            Arms(rows, measurable=mask)


def test_as_problem_reads_sigma_and_noise(arms):
    assert as_problem(arms, sigma=1.0) == Problem(arms, noise=Gaussian(1.0))
    assert as_problem(arms, sigma=2.0).noise == Gaussian(2.0)
    assert as_problem(arms, sigma=None).noise == Gaussian(None)
    assert as_problem(arms, noise="bernoulli").noise == Bernoulli()
    assert as_problem(arms, noise="sub-gaussian", sigma=3.0).noise == SubGaussian(3.0)
    assert as_problem(arms, noise=SubGaussian(3.0)).noise == SubGaussian(3.0)
    settings: dict[str, Any] = {"delta": 0.1, "objective": "min", "cost": 2.0}
    assert as_problem(arms, sigma=2.0, **settings) == Problem(arms, noise=Gaussian(2.0), **settings)


@pytest.mark.parametrize("noise", [Bernoulli(), Gaussian(1.0), "bernoulli"])
@pytest.mark.parametrize("sigma", [1.0, None])
def test_as_problem_refuses_two_sigmas(arms, noise, sigma):
    with pytest.raises(ProblemError, match="both given"):
        as_problem(arms, sigma=sigma, noise=noise)


def test_as_problem_refuses_unknown_noise(arms):
    with pytest.raises(ProblemError, match="'cauchy'; it is one of gaussian, sub-gaussian, bern"):
        as_problem(arms, noise="cauchy")


def test_as_problem_reads_epsilon_and_goal(arms):
    assert as_problem(arms, epsilon=0.2, sigma=1.0).goal == EpsilonBest(0.2)
    assert as_problem(arms, epsilon=0.2, sigma=1.0).epsilon == 0.2
    assert as_problem(arms, goal=TopM(2), sigma=1.0).goal == TopM(2)
    with pytest.raises(ProblemError, match="both given"):
        as_problem(arms, epsilon=0.2, goal=TopM(2), sigma=1.0)


def test_with_a_constant_for_each_batch_less_can_be_compared():
    arms = Arms(np.eye(3))
    candidates = Arms([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]], names=["all", "one"])
    Problem(arms, candidates=candidates, noise=Gaussian(1.0))
    with pytest.raises(ProblemError, match="cannot be compared"):
        Problem(arms, candidates=candidates, batch_intercept=True, noise=Gaussian(1.0))
    level = Arms([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]], names=["first", "last"])
    Problem(arms, candidates=level, batch_intercept=True, noise=Gaussian(1.0))


def test_arms_with_the_same_features_may_differ_where_the_model_may_be_wrong():
    arms = Arms([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], ["a", "b", "c"])
    assert as_problem(arms, sigma=1.0).arms.names == ("a", "c")
    with pytest.raises(ProblemError, match="a and b have the same features") as error:
        as_problem(arms, sigma=1.0, misspecification=0.1)
    assert "leave one of them out" in str(error.value)
