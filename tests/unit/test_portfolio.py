"""The gauntlet with a margin: whose money bets on what, and when an arm is returned."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.errors import ProblemError
from finalist.problem import as_problem
from finalist.simulation.rewards import DrawnRewards
from finalist.simulation.task import drawn
from finalist.strategies import Batch
from finalist.strategies.gauntlet import portfolio
from finalist.strategies.gauntlet.bets import Bets
from finalist.strategies.gauntlet.portfolio import ACCOUNT_0, MARGIN_ODDS, Portfolio

FOUR = fl.Arms.unstructured(4)
DELTA, EPSILON = 0.05, 0.5


def begun(arms: fl.Arms = FOUR, seed: int = 1, **words: Any) -> Any:
    settings = {"sigma": 1.0, "delta": DELTA, "epsilon": EPSILON, **words}
    return fl.Gauntlet().start(as_problem(arms, **settings), seed=seed)


def lab_of(means: Sequence[float] | np.ndarray, seed: int = 1, sigma: float = 1.0) -> DrawnRewards:
    return DrawnRewards(np.array(means), sigma, "gaussian", np.random.default_rng(seed))


def drive(run: Any, lab: DrawnRewards, epochs: int) -> Any:
    """Go on for some epochs after the pilot."""
    while epochs > 0 and not run.verdict.decided:
        batch = run.next()
        run.record(batch, drawn(lab, batch))
        epochs -= batch.note["kind"] == "test"
    return run


def claims_of(run: Any) -> Portfolio:
    claims = run._claims
    assert isinstance(claims, Portfolio)
    return claims


def capital(claims: Portfolio) -> np.ndarray:
    """What account 0, the reserve and all other accounts of each arm have."""
    total = np.exp(claims.bets.log_m) + claims._reserve
    for bets in claims.accounts.values():
        total = total + np.exp(bets.log_m)
    return np.asarray(total)


@pytest.mark.parametrize("words", [{}, {"sigma": None}, {"objective": "min"}])
def test_money_is_moved_and_never_made(words, monkeypatch):
    monkeypatch.setattr(Bets, "place_along", lambda *_: None)
    run, moved = begun(**words), []
    for _ in range(6):
        drive(run, lab_of([0.3, 0.2, 0.1, 0.0]), 1)
        claims = claims_of(run)
        np.testing.assert_allclose(capital(claims), 1.0, rtol=1e-12)
        np.testing.assert_allclose(np.exp(claims.bets.log_m), ACCOUNT_0, rtol=1e-12)
        assert (claims._reserve >= 0.0).all()
        moved.append(claims._reserve.copy())
        for c, bets in claims.accounts.items():
            assert bets.log_m[c] == -np.inf  # nobody bets on being better than oneself
    assert (np.diff(moved, axis=0) <= 0.0).all()


def test_money_follows_what_is_likely():
    claims = Portfolio(as_problem(fl.Arms.unstructured(3), sigma=1.0, epsilon=1.0))
    claims.move({"leader": 0, "favoured": [[0, 0.5], [1, 0.25]]})
    whole = portfolio.MOST * (1 - ACCOUNT_0)
    # Of arm 2 all three are possible rivals; of arm 0 and 1 themselves the others.
    first, second = (np.exp(claims.accounts[c].log_m) for c in (0, 1))
    np.testing.assert_allclose(first, [0.0, whole * (0.5 / 0.75) ** 1.2, whole * 0.5**1.2])
    np.testing.assert_allclose(second, [whole * (0.25 / 0.5) ** 1.2, 0.0, whole * 0.25**1.2])
    # More money joins what is there, at its face value.
    claims.accounts[0].log_m[2], left = math.log(2.0), claims._reserve[2]
    claims.move({"leader": 0, "favoured": [[0, 1.0]]})
    assert math.exp(claims.accounts[0].log_m[2]) == pytest.approx(2.0 + portfolio.MOST * left)


def test_of_two_arms_each_has_one_claimant():
    run = drive(begun(fl.Arms.unstructured(2)), lab_of([0.0, 0.0]), 1)
    assert (claims_of(run)._reserve <= (1 - portfolio.MOST) * (1 - ACCOUNT_0) + 1e-12).all()


def test_accounts_bet_on_leads_plus_epsilon():
    run = drive(begun(), lab_of([0.3, 0.2, 0.1, 0.0]), 1)
    claims = claims_of(run)
    first, others = claims.wagers({"rivals": [-1, 0, 0, 0]})
    assert first.bets is claims.bets
    assert (first.epsilon, first.odds) == (0.0, None)
    assert others.bets is claims.accounts.bets
    assert others.epsilon == EPSILON
    pairs = [(c, x) for c in claims.accounts for x in range(4) if x != c]
    assert list(zip(others.pairs.rivals.tolist(), others.pairs.arms.tolist(), strict=True)) == pairs
    places = {c: 4 * place for place, c in enumerate(claims.accounts)}
    assert others.at.tolist() == [places[c] + x for c, x in pairs]
    for bets in claims.accounts.values():
        assert bets.limit.tolist() == [-math.log(DELTA)] * 4
    # The drifts of the grid are in units of epsilon / sigma.
    np.testing.assert_allclose(others.bets.scale[others.at], (1.0 / EPSILON) ** 2)


def test_odds_are_a_prior():
    assert np.exp(MARGIN_ODDS.prior).sum() == pytest.approx(1.0, abs=1e-12)
    assert MARGIN_ODDS.grid.min() < 0.15
    assert MARGIN_ODDS.grid.max() > 20


@pytest.mark.parametrize(("short", "winner"), [(None, 1), (0, None), (2, None), (3, None)])
def test_it_returns_when_every_other_arm_is_out(short, winner):
    claims = Portfolio(as_problem(FOUR, sigma=1.0, epsilon=EPSILON, delta=DELTA))
    run = begun()
    note = {"leader": 1, "rivals": [-1] * 4, "favoured": [[1, 1.0]]}
    claims.move(note)
    limit = -math.log(DELTA)
    claims.accounts[1].log_m[[0, 2]] = limit
    claims.bets.log_m[3] = limit  # not the best arm: as good
    if short is not None:
        bets = claims.bets if short == 3 else claims.accounts[1]
        bets.log_m[short] = limit * (1 - 1e-9)
    claims.settle(note, run._course.past, 10)
    assert claims.winner == winner


def test_evidence_for_another_claimant_does_not_count():
    claims = Portfolio(as_problem(FOUR, sigma=1.0, epsilon=EPSILON, delta=DELTA))
    note = {"leader": 1, "rivals": [-1] * 4, "favoured": [[0, 0.5], [1, 0.5]]}
    claims.move(note)
    limit = -math.log(DELTA)
    claims.accounts[1].log_m[[0, 2]] = limit
    claims.accounts[0].log_m[[1, 3]] = limit
    claims.settle(note, begun()._course.past, 10)
    assert claims.winner is None


BAD: list[Any] = [
    None,
    [[0, 0.7], [1, 0.4]],  # more than there is
    [[0, 0.3], [0, 0.3]],
    [[4, 0.5]],
    [[0, -0.1]],
    [[0, math.nan]],
    [[0.5, 0.5]],
    [[0]],
]


@pytest.mark.parametrize("favoured", BAD)
def test_notes_that_would_make_money_are_refused(favoured):
    run = begun()
    lab = lab_of([0.3, 0.2, 0.1, 0.0])
    while (batch := run.next()).note["kind"] == "pilot":
        run.record(batch, drawn(lab, batch))
    plan = batch.note["epoch"]
    attack = {**plan["attack"], "favoured": favoured}
    note = {**batch.note, "epoch": {**plan, "attack": attack}}
    before = run.verdict
    with pytest.raises(ProblemError, match="note of this batch"):
        run.record(Batch(batch.counts, note, batch.order), drawn(lab, batch))
    assert run.verdict == before
    run.record(batch, drawn(lab, batch))


def test_arms_that_are_added_have_a_capital_of_their_own(monkeypatch):
    monkeypatch.setattr(Bets, "place_along", lambda *_: None)
    run = drive(begun(), lab_of([0.3, 0.2, 0.1, 0.0]), 3)
    problem = as_problem(fl.Arms.unstructured(5), sigma=1.0, delta=DELTA, epsilon=EPSILON)
    new = run.changed(problem, np.array([0, 1, 2, 3, -1]), 0.025, afresh=False)
    claims, before = claims_of(new), claims_of(run)
    np.testing.assert_allclose(capital(claims), 1.0, rtol=1e-12)
    assert claims.bets.limit.tolist() == pytest.approx([-math.log(0.05)] * 4 + [-math.log(0.025)])
    assert claims._reserve[4] == 1 - ACCOUNT_0
    assert list(claims.accounts) == list(before.accounts)
    drive(new, lab_of([0.3, 0.2, 0.1, 0.0, 0.0]), 1)
    np.testing.assert_allclose(capital(claims_of(new)), 1.0, rtol=1e-12)


def test_withdrawn_arms_begin_a_new_question():
    run = drive(begun(), lab_of([0.3, 0.2, 0.1, 0.0]), 3)
    problem = as_problem(fl.Arms.unstructured(3), sigma=1.0, delta=DELTA, epsilon=EPSILON)
    claims = claims_of(run.changed(problem, np.array([0, 1, 3]), 0.025, afresh=True))
    assert claims.bets.limit.tolist() == pytest.approx([-math.log(0.025)] * 3)
    assert len(claims.accounts) == 0
    np.testing.assert_allclose(capital(claims), 1.0, rtol=1e-12)


def test_epochs_are_small_when_few_arms_are_open():
    # Twenty arms, of which only two are near: later epochs need not pull the others.
    means = np.full(20, -8.0)
    means[:2] = 0.0, -0.1
    run, lab, sizes = begun(fl.Arms.unstructured(20)), lab_of(means), []
    while not run.verdict.decided:
        batch = run.next()
        run.record(batch, drawn(lab, batch))
        sizes.append(batch.size)
    assert run.verdict.winner in (0, 1)
    assert min(sizes[2:]) < 10


def test_words_say_who_may_still_be_better():
    run = begun()
    assert run.words() == "Nothing has been tested yet."
    drive(run, lab_of([6.0, 5.9, -6.0, -6.0]), 3)
    words, claims = run.words(), claims_of(run)
    assert not run.verdict.decided
    assert claims._shown in (0, 1)
    outs = zip(FOUR.names, claims._out(claims._shown), strict=True)
    rest = [str(name) for name, out in outs if not out]
    assert words.startswith(f"{FOUR.names[claims._shown]} may be within 0.5 of the best after ")
    assert f"; {' and '.join(rest)} may still be better than it by more." in words
    drive(run, lab_of([6.0, 5.9, -6.0, -6.0]), 1000)
    assert (
        f"is within 0.5 of the best, after {run.verdict.pulls} measurements; this is wrong"
        in run.words()
    )


def test_nothing_is_looked_at_inside_an_epoch():
    # A sum over several differences is a supermartingale at the ends of epochs only.
    run, lab = begun(), lab_of([5.0, 0.0, 0.0, 0.0])
    while (batch := run.next()).note["kind"] == "pilot":
        run.record(batch, drawn(lab, batch))
    assert batch.note["epoch"]["every"] == 0
    order = np.repeat(np.arange(4), batch.counts)
    for n in range(1, batch.size):
        assert not run.look(batch, lab.sequence(order[:n]))


def test_evidence_is_about_being_the_best():
    # What is shown reaches 1 where an arm is out, and p-values hold for the best arm.
    run = drive(begun(), lab_of([3.0, 2.9, -9.0, -9.0]), 5)
    evidence, claims = run.evidence(), claims_of(run)
    out = [x not in run.verdict.survivors for x in range(4)]
    assert (evidence.share >= 1.0).tolist() == evidence.rejected.tolist() == out
    assert any(out)
    np.testing.assert_allclose(
        evidence.p_value, np.exp(-np.clip(claims.bets.log_m, 0.0, -math.log(DELTA)))
    )


@pytest.mark.parametrize(
    "words",
    [
        {"sigma": None},
        {"sigma": (0.5, 1.0, 1.0, 2.0)},
        {"noise": "sub-gaussian"},
        {"batch_intercept": True},
        {"misspecification": 0.05},
        {"cost": (1.0, 2.0, 1.0, 1.0)},
        {"max_pulls_per_arm": 400},
        {"objective": "min"},
    ],
    ids=lambda words: next(iter(words)),
)
@pytest.mark.parametrize("size", [None, 1, 3])
def test_every_setting_comes_to_an_end(words, size):
    sign = -1.0 if words.get("objective") == "min" else 1.0
    means = sign * np.array([1.5, 0.0, 0.0, -0.5])
    run, lab = begun(**words), lab_of(means)
    if words.get("batch_intercept"):
        size = None if size == 1 else size and 6
    for _ in range(3000):
        if run.verdict.decided:
            break
        batch = run.next(size)
        run.record(batch, drawn(lab, batch))
    assert run.verdict.winner == 0
