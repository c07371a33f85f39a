"""Claimants of a portfolio: who is pulled for, when that changes, and where their accounts are."""

import math

import numpy as np
import pytest

import finalist as fl
from finalist.problem import as_problem
from finalist.problem.rules import RULES
from finalist.strategies.gauntlet import portfolio
from finalist.strategies.gauntlet.portfolio import Portfolio
from tests.unit.test_portfolio import DELTA, EPSILON, FOUR, begun, claims_of, drive, lab_of

NEEDED = {0: 1.0, 1: 1.9, 2: 2.1, 3: 1.2, 4: 1.6, 5: 0.0}


def test_pulls_are_for_claimants_that_may_be_returned_nearly_as_soon():
    claims = Portfolio(as_problem(FOUR, sigma=1.0, epsilon=EPSILON))
    # Two others at most, which need at most twice as much; the sooner, the more weight.
    assert claims._near(NEEDED, 0) == [(3, 1 / 1.2), (4, 1 / 1.6)]
    assert claims._near({0: 1.0, 1: 2.0, 2: 2.1}, 0) == [(1, 0.5)]
    before = Portfolio(as_problem(FOUR, sigma=1.0, epsilon=EPSILON, rules=RULES[3]))
    assert before._near(NEEDED, 0) == []


def test_a_claimant_is_kept_until_another_needs_clearly_less():
    claims = Portfolio(as_problem(FOUR, sigma=1.0, epsilon=EPSILON))
    before = Portfolio(as_problem(FOUR, sigma=1.0, epsilon=EPSILON, rules=RULES[3]))
    needed = {0: 1.0, 1: 1.29, 2: 1.31}
    for last, claimant in [(None, 0), (0, 0), (1, 1), (2, 0), (3, 0)]:
        claims._shown = before._shown = last
        assert claims._claimant(needed) == claimant
        assert before._claimant(needed) == 0


def test_pairs_of_other_claimants_are_those_still_open_against_them():
    run = begun(fl.Arms.unstructured(6))
    drive(run, lab_of([0.0, 0.0, 0.0, -9.0, -9.0, -9.0], 2), 4)
    claims, past = claims_of(run), run._course.past
    wanted, needed = claims.wanted(past), claims._needed_by_each(past)
    near = claims._near(needed, wanted.leader)
    assert near  # or this tests nothing
    parts = []
    for c, weight in [(wanted.leader, 1.0), *near]:
        open_ = np.flatnonzero(~claims._out(c))
        has = np.maximum(claims.accounts[c].log_m, math.log(portfolio.LEAST))[open_]
        missing = weight * (1.0 - has / -math.log(DELTA))
        parts += [(c, int(x), m) for x, m in zip(open_, missing, strict=True)]
    first, second, missing = zip(*parts, strict=True)
    assert wanted.first.tolist() == list(first)
    assert wanted.second.tolist() == list(second)
    np.testing.assert_allclose(wanted.missing, missing)
    # How large an epoch is goes by the claimant alone.
    alone = wanted.of_leader()
    n = np.count_nonzero(~claims._out(wanted.leader))
    assert alone.second.tolist() == wanted.second[:n].tolist()
    assert (alone.first == wanted.leader).all()
    assert len(alone.missing) == n < len(wanted.missing)


def test_what_a_claimant_needs_is_of_its_slowest_comparison():
    run = begun()
    drive(run, lab_of([0.3, 0.2, 0.1, 0.0]), 3)
    claims, past = claims_of(run), run._course.past
    fit, limit, found = past.estimate(), -math.log(DELTA), claims._needed_by_each(past)
    assert list(found)[: len(claims.accounts)] == list(claims.accounts)
    for c, bets in claims.accounts.items():
        slowest = 0.0
        for x in np.flatnonzero(~claims._out(c)):
            y = past.Z[c] - past.Z[x]
            v = float(fit.information.variances(y[None])[0])
            gap = max(float(y @ fit.phi) + EPSILON, portfolio.LEAST_GAP * math.sqrt(v))
            missing = limit - max(float(bets.log_m[x]), math.log(portfolio.LEAST))
            slowest = max(slowest, 2.0 * missing * v / gap**2)
        assert found[c] == pytest.approx(slowest)


def test_accounts_are_side_by_side_and_share_memory(monkeypatch):
    claims = Portfolio(as_problem(FOUR, sigma=1.0, epsilon=EPSILON))
    claims.move({"leader": 2, "favoured": [[2, 0.5], [0, 0.5]]})
    accounts = claims.accounts
    assert (list(accounts), accounts.place([2, 0]).tolist()) == ([0, 2], [4, 0])
    accounts[2].log_m[3] = accounts[2].path[1, 3] = -7.0
    assert (accounts.bets.log_m[7], accounts.log_m[1, 3]) == (-7.0, -7.0)
    other = claims.copy()
    claims.end_epoch()
    assert (accounts[2].path[1, 3], other.accounts[2].path[1, 3]) == (0.0, -7.0)
    assert list(accounts.groups()) == [[0, 2]]
    monkeypatch.setattr("finalist.strategies.gauntlet.accounts.MANY", 7)
    assert list(accounts.groups()) == [[0], [2]]


def test_many_accounts_bet_in_groups(monkeypatch):
    found = []
    for many in (20_000, 5):
        monkeypatch.setattr("finalist.strategies.gauntlet.accounts.MANY", many)
        run = drive(begun(), lab_of([0.3, 0.2, 0.1, 0.0]), 4)
        found.append(claims_of(run).accounts.log_m.copy())
    assert len(found[0]) > 1
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
