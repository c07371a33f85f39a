"""The gauntlet whose model is checked: probes, what is called certain, and how it ends."""

import copy
import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

import finalist as fl
from finalist.inference.bending import BendEvidence
from finalist.inference.bends import TOGETHER, Bends
from finalist.inference.hidden import hidden
from finalist.inference.pooling import BatchSums
from finalist.inference.residuals import Cells
from finalist.inference.statistics import BatchResults
from finalist.problem import EpsilonBest, TopM, as_problem
from finalist.strategies import Batch
from finalist.strategies.gauntlet import probes as probing
from finalist.strategies.gauntlet.model_check import HOPELESS, MORE, MOST, PART, PROBES

GRID = np.array(list(itertools.product(np.linspace(-1.0, 1.0, 5), repeat=2)))
ARMS = fl.Arms(GRID).with_intercept()
STRAIGHT = GRID @ [2.0, 1.0]
MIDDLE = -1.5 * (GRID**2).sum(axis=1)
DOME = -3.0 * ((GRID - [0.2, -0.3]) ** 2).sum(axis=1)


def problem(check=0.03, sigma=1.0, **words):
    return fl.Problem(ARMS, noise=fl.Gaussian(sigma), check=check, **words)


def started(asked: fl.Problem, seed: int = 0) -> Any:
    return fl.Gauntlet().start(asked, seed=seed)


def order_of(batch, rng):
    if batch.order is not None:
        return batch.order
    return rng.permutation(np.repeat(np.arange(len(batch.counts)), batch.counts))


def step(run, means, rng, size=None, scale=1.0):
    batch = run.next(size)
    order = order_of(batch, rng)
    values = means[order] + scale * rng.normal(size=len(order))
    run.record(batch, BatchResults.of(len(means), order, values))
    return batch


def played(asked, means, seed=0, size=8, most=600):
    run, rng, batches = started(asked, seed), np.random.default_rng([seed, 99]), []
    while not run.verdict.decided and run.verdict.pulls < most:
        batches.append(step(run, means, rng, size))
    return run, batches


# ---- what is called certain --------------------------------------------------------------


@pytest.mark.parametrize("sigma", [1.0, None])
def test_a_straight_truth_is_decided(sigma):
    outcomes = []
    for seed in range(12):
        run, _ = played(problem(sigma=sigma), STRAIGHT, seed)
        outcomes.append(run.model().outcome)
        assert run.verdict.winner == 24
    assert outcomes.count("certain") >= 11


@pytest.mark.parametrize("sigma", [1.0, None])
def test_a_dome_is_never_called_certain(sigma):
    plain = [played(problem(0.0, sigma), DOME, seed)[0].verdict.winner for seed in range(8)]
    named = []
    for seed in range(8):
        run, _ = played(problem(sigma=sigma), DOME, seed)
        assert run.model().outcome in ("bent", "hidden")
        named.append(run.verdict.winner)
    assert np.mean(DOME[plain] < DOME.max() - 0.25) > 0.5  # a straight study would deceive
    assert np.mean(DOME.max() - DOME[named]) < 0.5 * np.mean(DOME.max() - DOME[plain])


@pytest.mark.parametrize("sigma", [1.0, None])
def test_a_dome_in_the_middle_is_not_good_enough_by_its_flat_slopes(sigma):
    wrong, plain = 0, 0
    for seed in range(8):
        asked = problem(sigma=sigma, goal=EpsilonBest(0.5))
        run, _ = played(asked, MIDDLE, seed)
        behind = MIDDLE.max() - MIDDLE[run.verdict.winner] > 0.5
        wrong += behind and run.model().outcome == "certain"
        run, _ = played(problem(0.0, sigma, goal=EpsilonBest(0.5)), MIDDLE, seed)
        plain += MIDDLE.max() - MIDDLE[run.verdict.winner] > 0.5
    assert plain >= 6  # what straight lines alone would say
    assert wrong <= 1


def test_a_dome_in_the_middle_is_seen_within_dozens():
    pulls = []
    for seed in range(8):
        run, rng = started(problem(), seed), np.random.default_rng([seed, 99])
        while not run.model().alarm and run.verdict.pulls < 400:
            step(run, MIDDLE, rng, 8)
        pulls.append(run.verdict.pulls)
    assert np.median(pulls) <= 100


def test_bends_are_as_large_as_slopes_and_as_what_matters():
    bends = Bends.of(ARMS)
    flat = np.zeros(len(ARMS))
    assert bends.size(STRAIGHT, 0.5) == pytest.approx(4.0)  # a slope of 2
    assert bends.size(flat, 0.5) == 0.6
    assert bends.size(flat, 0.5, epsilon=0.1) == 0.6
    assert bends.size(flat, 0.5, epsilon=0.25) == pytest.approx(1.0)  # two margins
    assert bends.size(STRAIGHT, 0.5, epsilon=0.25) == pytest.approx(4.0)
    assert bends.size(STRAIGHT, 1e-9) == 100.0
    assert bends.size(flat, 1e-300, epsilon=1e300) == 100.0


def test_a_smaller_accepted_chance_takes_more():
    def pulls(check):
        return np.mean([played(problem(check), STRAIGHT, s)[0].verdict.pulls for s in range(15)])

    assert pulls(0.0) < pulls(0.03) < pulls(0.002)


def test_without_a_winner_it_ends_after_twice_the_measurements():
    ended = 0
    for seed in range(20):
        run, batches = played(problem(1e-4), 0.6 * STRAIGHT, seed)
        model = run._course.model
        if model.outcome == "hidden" and model.found.chance < HOPELESS:
            ended += 1
            before = run.verdict.pulls - batches[-1].size
            assert before < MOST * model.straight <= run.verdict.pulls
    assert ended > 5


def test_the_recommendation_may_be_another_one():
    run, _ = played(problem(), DOME, 1)
    found = run.model()
    assert run.verdict.winner == found.bent[0]
    assert set(run.verdict.survivors) == {*found.winners, *found.bent}


def test_without_a_check_nothing_changes():
    rng = np.random.default_rng(3)
    one, other = (started(problem(0.0, misspecification=m)) for m in (0.0, 1e-300))
    assert one.model() is None
    assert other.model() is None  # allowed for in the tests instead
    step(one, STRAIGHT, rng, 8)
    assert "probed" not in one.next(8).note.get("epoch", {})


# ---- probes ------------------------------------------------------------------------------


def test_a_tenth_of_the_pulls_are_probes_inside_the_corners():
    run, rng = started(problem(delta=1e-9)), np.random.default_rng(2)
    inside = probes = 0
    for _ in range(20):
        batch = step(run, 0.3 * STRAIGHT, rng, 8)
        probed = batch.note.get("epoch", {}).get("probed", [])
        probes += len(probed)
        inside += sum(bool((np.abs(GRID[arm]) < 1.0).any()) for arm in probed)
    pulls = run.verdict.pulls
    assert PROBES * pulls - 3 <= probes <= PROBES * pulls
    assert inside > 0.8 * probes


def test_many_probes_chosen_several_at_once_tell_as_much_as_one_by_one(monkeypatch):
    asked, bends = problem(), Bends.of(ARMS)
    corners, nothing = np.array([0, 4, 20, 24]), np.zeros(len(ARMS), dtype=np.int64)
    known = Cells(corners, np.full(4, 100.0), GRID[corners] @ [0.2, 0.1])
    rows = np.column_stack([ARMS.coordinates, bends.columns])

    def left(steps):
        monkeypatch.setattr(probing, "STEPS", steps)
        room = np.full(len(ARMS), 1000)
        counts = probing.probes(asked, bends, known, nothing, 24, 320, 1.0, room)
        assert counts.sum() == 320
        C, mean = probing._posterior(rows, rows, bends.count, known, nothing, 1.0)
        V = probing._differences(asked, rows, C, mean, 24)
        return np.trace(np.linalg.inv(np.linalg.inv(C) + (rows.T * counts) @ rows) @ V)

    assert left(probing.STEPS) <= 1.01 * left(320)


def test_differences_count_by_their_expected_size():
    """A slow twin: the sum of y y' / g^2, g the gap or half of the standard error."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([ARMS.coordinates, Bends.of(ARMS).columns])
    root = rng.normal(size=(rows.shape[1], rows.shape[1]))
    C, mean = root @ root.T, np.asarray(rng.normal(size=rows.shape[1]))
    expected = np.zeros_like(C)
    for j in range(len(rows)):
        y = rows[3] - rows[j]
        if j != 3:
            expected += np.outer(y, y) / max(y @ mean, 0.5 * np.sqrt(y @ C @ y)) ** 2
    assert probing._differences(problem(), rows, C, mean, 3) == pytest.approx(expected)


def test_probes_are_those_of_a_slow_twin():
    """Which inverts the information anew after every probe."""
    bends, rng = Bends.of(ARMS), np.random.default_rng(5)
    rows = np.column_stack([ARMS.coordinates, bends.columns])
    some = np.array([0, 3, 4, 7, 20, 24])
    known = Cells(some, rng.uniform(1.0, 9.0, len(some)), GRID[some] @ [0.2, 0.1])
    nothing, room = np.zeros(len(ARMS), dtype=np.int64), np.full(len(ARMS), 1000)
    found = probing.probes(problem(), bends, known, nothing, 24, 12, 1.0, room)
    C, mean = probing._posterior(rows, rows, bends.count, known, nothing, 1.0)
    V = probing._differences(problem(), rows, C, mean, 24)
    expected, P = np.zeros_like(nothing), np.linalg.inv(C)
    for _ in range(12):
        now = np.linalg.inv(P)
        gains = [(u @ now @ V @ now @ u) / (1.0 + u @ now @ u) for u in rows]
        best = int(np.argmax(gains))
        expected[best] += 1
        P = P + np.outer(rows[best], rows[best])
    assert found.tolist() == expected.tolist()
    assert np.count_nonzero(expected) > 3


def test_probes_are_cheap_and_keep_to_their_room():
    inside = np.flatnonzero((np.abs(GRID) < 1.0).all(axis=1))
    dear = np.where(np.isin(np.arange(len(ARMS)), inside[::2]), 100.0, 1.0)
    planned = (np.arange(len(ARMS)) == inside[1]).astype(np.int64)
    room = np.where(planned, 2, 50)
    known = Cells(np.array([0, 4, 20, 24]), np.full(4, 100.0), np.array([0.0, 0.1, 0.2, 0.3]))
    asked = problem(cost=tuple(dear.tolist()))
    counts = probing.probes(asked, Bends.of(ARMS), known, planned, 24, 30, 1.0, room)
    assert counts.sum() == 30
    assert counts[inside[::2]].sum() == 0
    assert (counts + planned <= room).all()
    assert counts[inside[1]] == 1


def test_the_pilot_has_no_probes():
    run = started(problem())
    assert run.next(8).note["kind"] == "pilot"


def test_batches_have_the_size_that_is_asked_for():
    run, batches = played(problem(), 0.5 * STRAIGHT, 4, size=11)
    assert {batch.size for batch in batches if batch.note["kind"] != "probe"} == {11}
    assert all(batch.size <= 11 for batch in batches)
    assert run.verdict.decided


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({}, "If the model is right, x25 is the best. Whether"),
        (
            {"goal": EpsilonBest(0.5)},
            "the model is right, x25 is within 0.5 of the best. Whether",
        ),
        (
            {"goal": TopM(2)},
            "are the 2 best. Whether squares and products hide a better",
        ),
    ],
)
def test_what_the_model_says_is_what_was_asked_for(words, said):
    run, rng = started(problem(1e-7, **words)), np.random.default_rng(0)
    while run.next(8).note["kind"] != "probe":
        step(run, STRAIGHT, rng, 8)
    assert said in run.words()


def test_a_batch_of_probes_says_what_it_is_for():
    run, rng = started(problem(1e-7)), np.random.default_rng(0)
    while run.next(8).note["kind"] != "probe":
        step(run, STRAIGHT, rng, 8)
    batch = run.next()
    assert batch.size >= ARMS.rank + MORE
    assert run.purpose(batch).startswith("Every other candidate is out if the model is right.")
    assert "is still being checked" in run.words()


def test_the_open_epoch_is_completed_before_probes():
    seen = 0
    for seed in range(20):
        run, rng = started(problem(1e-7), seed=seed), np.random.default_rng([seed, 9])
        while not run.verdict.decided:
            deciding = run._course.probing
            left = run.until_end
            batch = step(run, STRAIGHT, rng, 2)
            if deciding and left > 0:
                seen += 1
                assert batch.note["kind"] == "test"
            if batch.note["kind"] == "probe":
                assert run.until_end == 0
    assert seen > 0


def test_choosing_changes_nothing():
    run, rng = started(problem()), np.random.default_rng(0)
    for _ in range(3):
        first, other = run.next(8), run.next(5)
        again = run.next(8)
        assert np.array_equal(first.counts, again.counts)
        assert dict(first.note) == dict(again.note)
        assert other.size == 5
        step(run, 0.3 * STRAIGHT, rng, 8)


def test_a_copy_goes_on_alone():
    run, rng = started(problem()), np.random.default_rng(0)
    for _ in range(2):
        step(run, 0.3 * STRAIGHT, rng, 8)
    twin = copy.deepcopy(run)
    before = run.model()
    step(twin, STRAIGHT, np.random.default_rng(1), 8)
    assert run.model() == before


def test_results_one_by_one_are_the_same_as_together():
    run, rng = started(problem(), seed=3), np.random.default_rng([3, 9])
    alone = started(problem(), seed=3)
    while not run.verdict.decided:
        batch = run.next(8)
        order = order_of(batch, rng)
        values = STRAIGHT[order] + rng.normal(size=len(order))
        for n in range(1, len(order)):
            part = BatchResults.of(len(ARMS), order[:n], values[:n])
            if alone.look(Batch(part.count.copy(), batch.note), part):
                break
        if alone.verdict.decided:
            assert alone.model().outcome == "certain"
            assert alone.model().chance <= 0.03
            return
        for one in (run, alone):
            one.record(batch, BatchResults.of(len(ARMS), order, values))
        assert run.model() == alone.model()


# ---- every kind of problem ---------------------------------------------------------------

KINDS: dict[str, dict[str, Any]] = {
    "minimise": {"objective": "min"},
    "top": {"goal": TopM(2)},
    "margin": {"epsilon": 0.5},
    "batch constants": {"batch_intercept": True},
    "sigma of each": {"sigma": (0.5 + np.arange(25) / 25).tolist()},
    "cost": {"cost": (1.0 + np.arange(25)).tolist()},
    "few of each": {"max_pulls_per_arm": 6},
    "budget": {"budget": 40},
    "sub-Gaussian": {"noise": "sub-gaussian"},
    "cannot be measured": {"candidates": fl.Arms(GRID[[0, 24]] * 1.5).with_intercept()},
}


@pytest.mark.parametrize("size", [None, 1, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_problem_comes_to_an_end(kind, size):
    words: dict[str, Any] = {"sigma": 1.0, "check": 0.03} | KINDS[kind]
    asked = as_problem(ARMS, **words)
    means = asked.arms.features @ [2.5, 1.2, 0.0]
    run, rng = started(asked, seed=5), np.random.default_rng([5, 9])
    sigmas = asked.sigmas
    most = 40 if kind == "budget" else 500
    while not run.verdict.decided and run.verdict.pulls < most:
        if not run._past.room().any():
            break
        batch = run.next(None if size is None else min(size, most - run.verdict.pulls))
        order = order_of(batch, rng)
        values = means[order] + sigmas[order] * rng.normal(size=len(order))
        run.record(batch, BatchResults.of(len(means), order, values))
    nothing_told = kind == "batch constants" and size == 1
    assert run.verdict.decided or kind in ("budget", "few of each") or nothing_told
    assert run.model() is not None


def test_yes_and_no():
    asked = fl.Problem(ARMS, noise=fl.Bernoulli(), check=0.03)
    means, rng = 0.5 + 0.14 * STRAIGHT, np.random.default_rng(0)
    run = started(asked)
    while not run.verdict.decided and run.verdict.pulls < 2000:
        batch = run.next(24)
        order = order_of(batch, rng)
        values = (rng.random(len(order)) < means[order]).astype(float)
        run.record(batch, BatchResults.of(25, order, values))
    assert run.verdict.winner == 24


def test_with_other_arms_the_evidence_against_the_model_goes_on():
    run, rng = started(problem(delta=1e-9)), np.random.default_rng(2)
    for _ in range(6):
        step(run, 0.3 * STRAIGHT, rng, 8)
    before = run._course.model.evidence.log_total
    kept = np.arange(20)
    fewer = problem(delta=1e-9).with_(arms=fl.Arms(GRID[:20]).with_intercept())
    after = run.changed(fewer, kept, 0.01, afresh=True)
    assert after._course.model.evidence.log_total == pytest.approx(before)


# ---- the chance that something is hidden ---------------------------------------------------


#: Three arms on a line through 0: the model has one coefficient, so that integrals are on a plane.
LINE = fl.Arms(np.array([[1.0], [2.0], [4.0]]))
ORDER, VALUES = np.array([0, 1, 2, 2, 0, 1]), np.array([0.3, 3.4, 1.2, 1.4, 0.1, 2.9])
CELLS = Cells.of([BatchSums.of(BatchResults.of(3, ORDER, VALUES))], None, shifted=False)


def odds(sigma, h):
    """Return how much likelier each bend alone is than none, before weights."""
    asked, bends = fl.Problem(LINE, noise=fl.Gaussian(sigma), check=0.03), Bends.of(LINE)
    found = hidden(asked, bends, CELLS, [0], h, [1])
    assert bends.count == 2
    return bends, found.share[:-1] / found.none / ((1.0 - TOGETHER) / bends.count)


def test_the_bayes_factor_is_a_ratio_of_integrals():
    h, sigma = 0.7, 0.8
    bends, ratios = odds(sigma, h)
    # With a flat prior of theta, and both integrals on one grid.
    theta, beta = np.meshgrid(np.linspace(-4, 4, 801), np.linspace(-8, 8, 801))
    rest = VALUES[:, None, None] - theta * LINE.features[ORDER, 0][:, None, None]

    def likelihood(rest):
        return np.exp(-0.5 * np.sum(rest**2, axis=0) / sigma**2)

    low = np.sum(likelihood(rest)[0])
    for column, ratio in zip(bends.columns.T, ratios, strict=True):
        bent = likelihood(rest - beta * column[ORDER][:, None, None])
        top = np.sum(bent * stats.norm(0.0, h * sigma).pdf(beta)) * (16.0 / 800)
        assert ratio == pytest.approx(top / low, rel=1e-4)
        assert abs(np.log(ratio)) > 0.2  # else it would say little


def test_the_bayes_factor_with_an_unknown_sigma_has_both_sums_of_squares():
    """The integral over sigma leaves a power of each: (rss / penalised rss)^((n - r) / 2)."""
    h, X = 0.7, LINE.features[ORDER]
    bends, ratios = odds(None, h)
    rss = VALUES @ VALUES - (X.T @ VALUES) ** 2 / (X.T @ X)
    for column, ratio in zip(bends.columns.T, ratios, strict=True):
        both = np.column_stack([X, column[ORDER]])
        P = both.T @ both + np.diag([0.0, 1.0 / h**2])
        penalised = VALUES @ VALUES - VALUES @ both @ np.linalg.solve(P, both.T @ VALUES)
        size = np.sqrt((X.T @ X).item() / np.linalg.det(P)) / h
        expected = size * (rss.item() / penalised) ** ((len(VALUES) - 1) / 2)
        assert ratio == pytest.approx(expected, rel=1e-9)
        assert abs(np.log(ratio)) > 0.05


@pytest.mark.parametrize(
    ("words", "winners"),
    [
        ({}, [2]),
        ({"goal": EpsilonBest(0.4)}, [2]),
        ({"goal": TopM(2)}, [2, 0]),
        ({"objective": "min"}, [2]),
    ],
)
def test_the_chance_is_one_of_draws(words, winners):
    arms = fl.Arms(np.array([[-1.0], [0.0], [1.0]])).with_intercept()
    bends, h, sign = Bends.of(arms), 0.6, -1 if words.get("objective") == "min" else 1
    order = np.repeat([0, 1, 2], [4, 2, 4])
    values = sign * np.array([0.0] * 4 + [2.2] * 2 + [2.0] * 4)
    cells = Cells.of([BatchSums.of(BatchResults.of(3, order, values))], None, shifted=False)
    asked = fl.Problem(arms, noise=fl.Gaussian(1.0), check=0.03, **words)
    found = hidden(asked, bends, cells, winners, h, [1])
    X = np.column_stack([arms.features, bends.columns])
    P = X[order].T @ X[order] + np.diag([0.0, 0.0, 1.0 / h**2])
    mean, cov = np.linalg.solve(P, X[order].T @ values), np.linalg.inv(P)
    draws = sign * np.random.default_rng(0).multivariate_normal(mean, cov, 100_000) @ X.T
    others = [i for i in range(3) if i not in winners]
    worst = draws[:, winners].min(axis=1)
    wrong = np.mean(draws[:, others].max(axis=1) > worst + asked.epsilon)
    assert 0.02 < wrong < 0.995
    share = 1.0 - found.none
    assert found.chance == pytest.approx(share * wrong, abs=4 * share * np.sqrt(wrong / 250))


def test_the_first_block_has_what_was_kept_back_of_the_pilot(monkeypatch):
    seen, add = [], BendEvidence.add

    def watched(self, block, before):
        seen.append((block, before))
        add(self, block, before)

    monkeypatch.setattr(BendEvidence, "add", watched)
    run, rng, told = (
        started(problem(delta=1e-9)),
        np.random.default_rng(4),
        np.zeros((2, len(ARMS))),
    )
    while not seen:
        batch = run.next(1)
        (arm,) = order_of(batch, rng)
        value = STRAIGHT[arm] + rng.normal()
        run.record(batch, BatchResults.of(len(ARMS), np.array([arm]), np.array([value])))
        told[:, arm] += 1.0, value
    both = np.zeros_like(told)
    for cells in seen[0]:
        np.add.at(both[0], cells.arms, cells.weight)
        np.add.at(both[1], cells.arms, cells.weight * cells.mean)
    assert both == pytest.approx(told)
    assert 0.0 < seen[0][1].weight.sum() < told[0].sum()


def test_the_constants_of_the_check():
    assert (PROBES, MORE, PART, MOST, HOPELESS) == (0.1, 4, 0.15, 2.0, 0.95)


def test_a_model_that_was_shown_to_be_wrong_is_not_certain_by_its_chance():
    run, rng = started(problem(delta=1e-14)), np.random.default_rng(0)
    while run.verdict.pulls < 100 and not run.verdict.decided:
        step(run, STRAIGHT, rng, 8)
    model, sums = run._course.model, [BatchSums.of(run._course.past.pooled.statistics)]
    for alarm, outcome in ((False, "certain"), (True, "bent")):
        model.evidence.alarm = alarm
        model.judge(run._course.past, sums, (24,))
        assert model.found.chance < 0.03
        assert model.outcome == outcome
