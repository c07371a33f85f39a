"""The m best of many candidates: whose money is where, and what follows from it for every set."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.errors import ProblemError
from finalist.problem import as_problem
from finalist.problem.rules import rules_of
from finalist.problem.values import UNSET
from finalist.simulation.rewards import DrawnRewards
from finalist.simulation.task import drawn
from finalist.strategies.gauntlet import top, top_portfolio
from finalist.strategies.gauntlet.bets import Bets
from finalist.strategies.gauntlet.top import TopArms
from finalist.strategies.gauntlet.top_answer import swaps
from finalist.strategies.gauntlet.top_portfolio import TopPortfolio

DELTA, C, M = 0.05, 6, 2
SETS = [frozenset(some) for some in combinations(range(C), M)]
MEANS = [0.4, 0.3, 0.2, 0.1, 0.0, 0.0]


@pytest.fixture(autouse=True)
def _no_set_is_listed(monkeypatch):
    monkeypatch.setattr(top, "MAX_SETS", 0)


def problem_of(arms: fl.Arms | None = None, **words: Any) -> fl.Problem:
    settings = {"sigma": 1.0, "delta": DELTA, "top": M, **words}
    return as_problem(arms or fl.Arms.unstructured(C), **settings)


def begun(arms: fl.Arms | None = None, **words: Any) -> Any:
    return fl.Gauntlet().start(problem_of(arms, **words), seed=1)


def claims_of(run: Any) -> TopPortfolio:
    claims = run._claims
    assert isinstance(claims, TopPortfolio)
    return claims


def drive(run: Any, means: Any, epochs: int, seed: int = 1) -> Any:
    """Go on for some epochs after the pilot."""
    lab = DrawnRewards(np.array(means), 1.0, "gaussian", np.random.default_rng(seed))
    while epochs > 0 and not run.verdict.decided:
        batch = run.next()
        run.record(batch, drawn(lab, batch))
        epochs -= batch.note["kind"] == "test"
    return run


def account(claims: TopPortfolio, number: int, some: frozenset[int]) -> int:
    """Return which account of a claimant a set has its money in: found by looking at all pairs."""
    one = claims.claimants[number]
    x = next(x for x in one.outside.tolist() if x in some)  # the last of the order first
    a = next(a for a in one.inside.tolist() if a not in some)
    pairs = list(zip(*(part.tolist() for part in swaps(one.inside, one.outside)), strict=True))
    return pairs.index((x, a))


def wealth(claims: TopPortfolio, some: frozenset[int]) -> float:
    """Return what a set has: reserve, accounts, and what it would have given to itself."""
    total = claims._reserve
    for number, one in claims.claimants.items():
        if frozenset(one.inside.tolist()) == some:
            total += claims._given[number]
        else:
            total += math.exp(claims.accounts[number].log_m[account(claims, number, some)])
    return total


@pytest.mark.parametrize("words", [{}, {"sigma": None}, {"objective": "min"}])
def test_money_is_moved_and_never_made(words, monkeypatch):
    monkeypatch.setattr(Bets, "place_along", lambda *_: None)
    monkeypatch.setattr(top_portfolio, "CLAIMANTS", 20)  # so that none is dismissed
    run = begun(**words)
    for k in range(6):
        drive(run, np.array(MEANS) / 4, 1, seed=k)
        claims = claims_of(run)
        found = [wealth(claims, some) for some in SETS]
        np.testing.assert_allclose(found, 1.0, rtol=1e-12)
        assert claims._reserve >= 1 / (claims._epochs + 1) - 1e-12
    assert len(claims.claimants) > 2


def test_no_set_gains_when_claimants_are_dismissed():
    rng, claims = np.random.default_rng(1), TopPortfolio(problem_of())
    claims._most = 2
    for k in range(40):
        some = rng.permutation(len(SETS))[:2]
        order = rng.permutation(C).tolist()
        sets = [sorted(SETS[i]) for i in some]
        before = [wealth(claims, one) for one in SETS]
        claims.move({"order": order, "sets": sets, "odds": [0.6, 0.3], "able": True})
        after = [wealth(claims, one) for one in SETS]
        assert (np.array(after) <= np.array(before) + 1e-12).all()
        assert len(claims.claimants) == 2
        if k % 3 == 0:  # bets are won and lost, above what was given as well
            for bets in claims.accounts.values():
                bets.log_m[:] += rng.normal(2.0 * (k % 2), 1.0, len(bets.log_m))
                np.minimum(bets.log_m, bets.limit, out=bets.log_m)


def test_what_is_known_of_candidates_follows_for_every_set():
    rng = np.random.default_rng(5)
    partly = whole = 0
    for _ in range(300):
        claims, contradicted = TopPortfolio(problem_of()), dict.fromkeys(SETS, False)
        past: Any = begun()._past
        for _ in range(int(rng.integers(1, 4))):
            order = rng.permutation(C)
            some = SETS[int(rng.integers(len(SETS)))]
            if some in {frozenset(one.key) for one in claims.claimants.values()}:
                continue
            note = {"order": order.tolist(), "sets": [sorted(some)], "odds": [0.5], "able": True}
            claims.move(note)
        for number in claims.claimants:
            hit = rng.random(M * (C - M)) < rng.choice([0.5, 0.9])
            claims.accounts[number].log_m[hit] = claims._limit
            for some in SETS:
                if some != frozenset(claims.claimants[number].key):
                    contradicted[some] |= bool(hit[account(claims, number, some)])
        claims._win = lambda *_: None  # type: ignore[method-assign]
        claims.settle({}, past, 1)
        left = [some for some in SETS if not contradicted[some]]
        for x in range(C):
            if not claims._possible[x]:
                assert not any(x in some for some in left)
            if claims._sure[x]:
                assert all(x in some for some in left)
        partly += bool((~claims._possible).any() and left)
        whole += len(left) <= 1
    assert partly > 20
    assert whole > 5


@pytest.mark.parametrize("short", [None, 0, 3, 7])
def test_a_set_is_returned_when_every_swap_is_out(short):
    run = begun()
    claims = claims_of(run)
    order = [3, 1, 0, 2, 4, 5]
    claims.move({"order": order, "sets": [[1, 3]], "odds": [1.0], "able": True})
    bets = claims.accounts[0]
    bets.log_m[:] = bets.limit
    if short is not None:
        bets.log_m[short] -= 1e-9
    claims.settle({}, run._past, 1)
    verdict = claims.verdict(1)
    assert verdict.decided == (short is None)
    if short is None:
        assert set(verdict.winners) == {1, 3}
    elif short == 7:  # the first that is outside, 0, against the second inside, 1
        assert verdict.survivors == (0, 1, 3)
        assert claims.certain == (3,)
    elif short == 0:  # the last one outside against the first inside: nothing follows
        assert verdict.survivors == tuple(range(C))
        assert claims.certain == ()


def test_accounts_bet_on_what_seems_better():
    claims = TopPortfolio(problem_of())
    claims.move({"order": [3, 1, 0, 2, 4, 5], "sets": [[1, 3]], "odds": [1.0], "able": True})
    note = {"order": [3, 0, 1, 2, 4, 5], "able": True}
    (wager,) = claims.wagers(note)
    found = list(zip(wager.pairs.rivals.tolist(), wager.pairs.arms.tolist(), strict=True))
    # 1 came before 0 once, but does not seem better any more.
    assert found == [(3, 5), (1, 5), (3, 4), (1, 4), (3, 2), (1, 2), (3, 0)]
    assert wager.at.tolist() == list(range(7))
    assert (wager.epsilon, wager.odds) == (0.0, None)
    assert list(claims.wagers({**note, "able": False})) == []
    assert claims.accounts[0].limit.tolist() == [-math.log(DELTA)] * 8


def test_money_goes_to_likely_sets():
    claims = TopPortfolio(problem_of())
    claims.move({"order": list(range(C)), "sets": [[0, 1], [0, 2]], "odds": [0.5, 0.25]})
    first, second = (np.exp(claims.accounts[n].log_m) for n in (0, 1))
    np.testing.assert_allclose(first, top_portfolio.MOST * 0.5**2)
    np.testing.assert_allclose(second, top_portfolio.MOST * 0.25**2)
    # All together at most so much that a third is left after two epochs.
    claims.move({"order": list(range(C)), "sets": [[0, 1]], "odds": [1.0]})
    assert claims._reserve == pytest.approx(1 / 3)


def test_evidence_of_an_arm_is_that_of_its_poorest_set():
    run = begun()
    claims = claims_of(run)
    assert run.evidence().share.tolist() == [0.0] * C
    claims.move({"order": list(range(C)), "sets": [[0, 1]], "odds": [1.0], "able": True})
    bets, limit = claims.accounts[0], claims._limit
    # By the arms outside, the last first (5, 4, 3, 2), against 0 and 1.
    bets.log_m[:] = limit * np.array([1.0, 1.0, 0.7, 0.6, 0.9, 0.8, -0.5, 0.5])
    claims.settle({}, run._past, 1)
    found = claims.evidence()
    np.testing.assert_allclose(found.share, [0.0, 0.0, 0.0, 0.6, 0.6, 1.0])
    np.testing.assert_allclose(found.p_value, DELTA**found.share)
    assert found.rejected.tolist() == [False] * 5 + [True]
    assert found.rival[2:5].tolist() == [0, 1, 1]


LINE = fl.Arms(np.column_stack([np.ones(9), np.linspace(-1.0, 1.0, 9)]))
LONE = fl.Arms(np.vstack([np.eye(5), np.eye(5)[:2] + 0.3]), measurable=[True] * 5 + [False] * 2)


@pytest.mark.parametrize(
    ("arms", "words"),
    [
        (None, {}),
        (None, {"sigma": None}),
        (None, {"objective": "min"}),
        (None, {"sigma": [0.5, 1.0, 1.0, 0.5, 1.0, 2.0]}),
        (None, {"sigma": UNSET, "noise": fl.SubGaussian(1.0)}),
        (None, {"batch_intercept": True}),
        (LINE, {}),
        (LINE, {"misspecification": 0.02}),
        (LONE, {}),
    ],
)
def test_it_finds_the_best_set(arms, words):
    problem = problem_of(arms, **words)
    rng = np.random.default_rng(3)
    theta = rng.permutation(np.linspace(1.0, 5.0, problem.arms.features.shape[1]))
    run = drive(begun(arms, **words), problem.arms.means(theta), 400)
    good = problem.sign * problem.arms.means(theta)
    assert run.verdict.decided
    assert set(run.verdict.winners) == set(np.argsort(-good)[:M].tolist())
    assert "are the 2 best" in run.words()


def test_claimants_are_few(monkeypatch):
    monkeypatch.setattr(top_portfolio, "CLAIMANTS", 3)
    run = drive(begun(), np.zeros(C), 12)
    claims = claims_of(run)
    assert len(claims.claimants) == len(claims.accounts) == 3
    assert sum(claims._given.values()) + claims._reserve <= 1.0 + 12 * 1.0
    assert TopPortfolio(problem_of(fl.Arms.unstructured(400), top=60))._most == 2


def test_a_copy_is_another_one():
    claims = claims_of(drive(begun(), np.zeros(C), 2))
    new = claims.copy()
    before = claims._reserve, claims.accounts.bets.log_m.copy(), dict(claims.claimants)
    new.move({"order": list(range(C)), "sets": [[4, 5]], "odds": [1.0], "able": True})
    new.accounts.bets.log_m[:] = 0.0
    assert claims._reserve == before[0]
    assert (claims.accounts.bets.log_m == before[1]).all()
    assert claims.claimants == before[2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"order": [0, 1, 2, 3, 4, 4]},
        {"order": None},
        {"sets": [[0, 0]]},
        {"sets": [[0, 6]]},
        {"sets": [[0, 1], [0, 1]], "odds": [0.5, 0.5]},
        {"odds": [0.5]},
        {"odds": [float("nan"), 0.5]},
        {"odds": [0.9, 0.9]},
        {"odds": [-0.1, 0.9]},
        {"able": None},
    ],
)
def test_other_notes_are_refused(wrong):
    claims = TopPortfolio(problem_of())
    note = {"kind": "test", "order": list(range(C)), "sets": [[0, 1], [1, 2]], "odds": [0.5, 0.2]}
    claims.check({**note, "able": True})
    claims.check({"kind": "pilot"})
    with pytest.raises(ProblemError, match="is not as `next` returns it"):
        claims.check({**note, "able": True, **wrong})


def test_what_has_pairs_and_what_has_accounts():
    assert isinstance(begun()._claims, TopPortfolio)
    assert isinstance(begun(rules=rules_of(3))._claims, TopArms)
    with pytest.raises(ProblemError, match="401 candidates are too many pairs to test"):
        begun(fl.Arms.unstructured(401))
