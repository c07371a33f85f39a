"""Random lives of a study against a plain model in memory: ask, tell, void, amend, reopen, ..."""

import math

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

import finalist as fl
from finalist.errors import ConflictError, StudyError
from finalist.study import Study

ARMS = fl.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], ["a", "b", "c"])
VALUES = st.floats(-3, 3).map(lambda x: round(x, 3))


class Model:
    """What a person would write on paper: pulls of the open batch and what became of them."""

    def __init__(self):
        self.open = {}  # pull -> arm, of the batch that is not complete
        self.told = {}  # pull -> reward, of the same batch
        self.gone = set()  # void and missing ones, of all batches
        self.used = {}  # pull -> reward, of complete batches
        self.batches = 0
        self.count = 0  # pulls issued so far

    def issue(self, batch):
        self.open = {pull.pull_id: pull.arm for pull in batch}
        self.count += len(batch)

    def settle(self):
        """Complete the batch if nothing of it is left to measure."""
        if self.open and not self.left:
            self.used |= self.told
            self.open, self.told = {}, {}
            self.batches += 1

    @property
    def left(self):
        return [p for p in self.open if p not in self.told and p not in self.gone]


class Life(RuleBasedStateMachine):
    """One study, two handles on it, and the model."""

    place = ""
    number = 0

    @initialize(sigma=st.sampled_from([1.0, None]))
    def begin(self, sigma):
        Life.number += 1
        self.name = f"life {Life.number}"
        self.study = Study.create(self.place, self.name, ARMS, sigma=sigma, seed=Life.number)
        self.other = Study.open(self.place, self.name)
        self.model = Model()
        self.calls = {}

    def teardown(self):
        if hasattr(self, "study"):
            self.study.close()
            self.other.close()

    def handle(self, second):
        return self.other if second else self.study

    @rule(size=st.integers(1, 9), second=st.booleans())
    def ask(self, size, second):
        study = self.handle(second)
        batch = study.ask(size)
        if batch.state == "decided":
            assert study.status(forecast=False).verdict == "winner"
            return
        if not self.model.open:
            whole = study.ask()
            assert whole.batch == self.model.batches + 1
            assert [p.pull_id for p in whole] == list(
                range(self.model.count + 1, self.model.count + len(whole) + 1)
            )
            self.model.issue(whole)
        assert [p.pull_id for p in batch] == self.model.left[:size]
        assert all(self.model.open[p.pull_id] == p.arm for p in batch)

    @precondition(lambda self: self.model.left)
    @rule(data=st.data(), second=st.booleans())
    def tell(self, data, second):
        some = data.draw(st.lists(st.sampled_from(self.model.left), min_size=1, unique=True))
        rewards = {pull: data.draw(VALUES) for pull in some}
        assert self.handle(second).tell(rewards) == len(rewards)
        self.model.told |= rewards
        self.model.settle()

    @precondition(lambda self: self.model.left)
    @rule(value=VALUES, second=st.booleans())
    def tell_all(self, value, second):
        rewards = {p: value + math.sin(p) for p in self.model.left}
        name = f"call {len(self.calls)}"
        self.handle(second).tell(rewards, client_id=name)
        self.calls[name] = rewards
        self.model.told |= rewards
        self.model.settle()

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), second=st.booleans())
    def repeat_a_call(self, data, second):
        name = data.draw(st.sampled_from(sorted(self.calls)))
        assert self.handle(second).tell(self.calls[name], client_id=name) == 0

    @precondition(lambda self: self.model.told or self.model.used)
    @rule(data=st.data(), second=st.booleans())
    def tell_again(self, data, second):
        known = self.model.used | self.model.told
        pull = data.draw(st.sampled_from(sorted(known)))
        assert self.handle(second).tell({pull: known[pull]}) == 0
        try:
            self.handle(second).tell({pull: known[pull] + 1.0})
        except ConflictError:
            return
        raise AssertionError("another reward was taken")

    @precondition(lambda self: self.model.left)
    @rule(data=st.data(), second=st.booleans())
    def void(self, data, second):
        pull = data.draw(st.sampled_from(self.model.left))
        new = self.handle(second).void(pull, "broken")
        assert (new.pull_id, new.arm) == (self.model.count + 1, self.model.open[pull])
        self.model.count += 1
        self.model.gone.add(pull)
        self.model.open[new.pull_id] = new.arm

    @precondition(lambda self: self.model.left)
    @rule(data=st.data(), second=st.booleans())
    def missing(self, data, second):
        pull = data.draw(st.sampled_from(self.model.left))
        self.handle(second).missing(pull, "lost")
        self.model.gone.add(pull)
        self.model.settle()

    @precondition(lambda self: self.model.told)
    @rule(data=st.data(), value=VALUES, second=st.booleans())
    def amend(self, data, value, second):
        pull = data.draw(st.sampled_from(sorted(self.model.told)))
        self.handle(second).amend(pull, value, "typing error")
        self.model.told[pull] = value

    @precondition(lambda self: self.model.used)
    @rule(data=st.data(), second=st.booleans())
    def change_what_was_used(self, data, second):
        pull = data.draw(st.sampled_from(sorted(self.model.used)))
        for act in (
            lambda study: study.amend(pull, 0.0, "too late"),
            lambda study: study.void(pull, "too late"),
            lambda study: study.missing(pull, "too late"),
            lambda study: study.tell({pull: 1e9}),
        ):
            try:
                act(self.handle(second))
            except ConflictError:
                continue
            raise AssertionError("what a decision used was changed")

    @rule(pull=st.integers(-2, 10**6), second=st.booleans())
    def tell_of_a_pull_that_is_none(self, pull, second):
        if 1 <= pull <= self.model.count:
            return
        try:
            self.handle(second).tell({pull: 0.0})
        except StudyError:
            return
        raise AssertionError("an unknown pull was taken")

    @rule(budget=st.none() | st.integers(1000, 9000), second=st.booleans())
    def rebudget(self, budget, second):
        study = self.handle(second)
        try:
            study.set_budget(budget)
        except ConflictError:  # decided, or a pilot that is seen waits for its test
            return
        assert self.handle(not second).snapshot().problem.budget == budget

    @rule(second=st.booleans())
    def reopen(self, second):
        before = self.handle(second).status(forecast=False)
        again = Study.open(self.place, self.name)
        assert again.status(forecast=False) == before
        if second:
            self.other.close()
            self.other = again
        else:
            self.study.close()
            self.study = again

    @invariant()
    def both_handles_and_the_model_agree(self):
        if not hasattr(self, "study"):
            return
        frame = self.study.to_frame()
        known = self.model.used | self.model.told
        told = frame[frame.state == "told"]
        assert dict(zip(told.pull_id, told.reward, strict=True)) == known
        assert set(frame[frame.state.isin(["void", "missing"])].pull_id) == self.model.gone
        status = self.other.status(forecast=False)
        assert (status.pulls, status.batches) == (len(known), self.model.batches)
        assert status.open_pulls == len(self.model.left)
        counts = {arm.name: arm.pulls for arm in status.arms}
        used = frame[frame.pull_id.isin(list(self.model.used))]
        assert counts == {name: int((used.arm == name).sum()) for name in ARMS.names}
        events = self.study.history()
        assert [event["number"] for event in events] == list(np.arange(len(events)) + 1)


def run(place, examples, steps):
    Life.place = place
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    case = Life.TestCase
    case.settings = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=checks,
    )
    case("runTest").runTest()


def test_random_lives(where):
    run(where, examples=8, steps=25)
