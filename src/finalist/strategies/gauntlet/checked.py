"""The course of the gauntlet whose model is checked (`model_check`)."""

from typing import ClassVar

import numpy as np
from jaxtyping import Int

from finalist.inference.pooling import BatchSums
from finalist.inference.statistics import BatchResults, Statistics
from finalist.strategies.gauntlet.chooser import Chooser
from finalist.strategies.gauntlet.claims import Claims
from finalist.strategies.gauntlet.epochs import Epochs
from finalist.strategies.gauntlet.model_check import ModelCheck
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.planner import Planner
from finalist.strategies.gauntlet.walk import as_results
from finalist.strategies.model_words import about, accepted, looked_for
from finalist.strategies.protocol import Batch, Verdict
from finalist.text import counted, named


class CheckedEpochs(Epochs):
    """Pilot and epochs with probes; when the gauntlet has its winners, batches of probes alone."""

    kinds: ClassVar[tuple[str, ...]] = (*Epochs.kinds, "probe")

    def __init__(self, past: Past, planner: Planner, claims: Claims, model: ModelCheck) -> None:
        super().__init__(past, planner, claims)
        self.model = model

    def copy(self) -> "CheckedEpochs":
        """Return one that changes independently."""
        new = super().copy()
        assert isinstance(new, CheckedEpochs)
        new.model = self.model.copy()
        return new

    @property
    def verdict(self) -> Verdict:
        """What is certain now, if the model is right and where it was probed."""
        straight = self.claims.verdict(self.past.pulls)
        return self.model.verdict(straight) if straight.decided else straight

    @property
    def probing(self) -> bool:
        """Whether the gauntlet has its winners, and the model is still looked at."""
        return self.claims.verdict(0).decided

    def words(self, straight: str) -> str:
        """Say what is certain if the model is right, and what is known of that."""
        found = self.model.findings()
        straight += self._unmeasured()
        if not self.probing or found.chance is None:
            return straight
        names, problem = self.past.problem.arms.names, self.past.problem
        if found.outcome == "certain":
            return (
                f"{straight} That holds if the model is right. {looked_for(found)}; the chance "
                f"that they hide a better candidate is {about(found.chance)}."
            )
        who = named([names[i] for i in found.winners], problem.top)
        what = f"is {problem.goal.phrase}" if problem.top == 1 else f"are the {problem.top} best"
        return (
            f"If the model is right, {who} {what}. Whether {found.sought} hide a better "
            f"candidate is still being checked: the chance is {about(found.chance)}, and "
            f"{accepted(found.limit)}."
        )

    def _unmeasured(self) -> str:
        """Say how many arms are out by the model alone."""
        past = self.past
        out = past.problem.arms.candidate.copy()
        out[list(self.claims.verdict(0).survivors)] = False
        never = int((out & (past.pooled.statistics.count == 0)).sum())
        if never == 0:
            return ""
        verb = "is" if never == 1 else "are"
        who = f"{counted(never, 'candidate')} {verb} ruled out by the model alone"
        return f" {who} and {'was' if never == 1 else 'were'} never measured."

    def _chooser(self) -> Chooser:
        return Chooser(self.planner, self.claims, self._looks, self.model)

    def _next(self, size: int | None) -> Batch:
        if not self.probing:
            return super()._next(size)
        note = {"batch": self.past.recorded}
        if self.until_end > 0:
            assert self.epoch is not None
            rest = self.epoch.later[:size]
            return self._batch(rest, {"kind": "test", **note, "rest": len(rest)})
        planned = np.zeros(len(self.past.Z), dtype=np.int64)
        leader = self.claims.verdict(0).winners[0]
        n = self.model.size(self.past, size)
        counts = self.model.choose(self.past, planned, leader, n)
        return Batch(counts, {"kind": "probe", **note, "rest": 0})

    def purpose(self, batch: Batch) -> str:
        """Say what a batch is for that is not recorded yet."""
        if batch.note["kind"] == "probe":
            return (
                "Every other candidate is out if the model is right. These measurements look for "
                f"{self.model.bends.words()} that would hide a better one."
            )
        if self.probing:
            return "These complete a group that is tested together, and help to check the model."
        return super().purpose(batch)

    def may_decide(
        self, batch: Batch, rewards: Statistics, seen: Int[np.ndarray, " K"] | None
    ) -> bool:
        """Return whether what has arrived of a batch reaches a look that was not taken yet."""
        return not self.probing and super().may_decide(batch, rewards, seen)

    def record(self, batch: Batch, rewards: Statistics, *, complete: bool = True) -> None:
        """Turn a batch into evidence for arms and against the model; then learn from it."""
        results = rewards if isinstance(rewards, BatchResults) else as_results(rewards)
        kind = batch.note["kind"]
        if self.probing:
            self._probed(batch, results)
        else:
            if kind == "pilot" and self.past.reserve is None:
                self.model.block(self.past, results)
            if "epoch" in batch.note:
                self.model.probed += len(batch.note["epoch"].get("probed", ()))
            super().record(batch, rewards, complete=complete)
            self._end_complete_epoch(complete)
        self._judge()

    def _probed(self, batch: Batch, results: BatchResults) -> None:
        """Take the rest of an epoch, or a batch of probes: no arm is tested any more."""
        past, self._chosen = self.past, {}
        past.recorded += 1
        past.pooled.add(results)
        if batch.note["kind"] == "probe":
            self.model.block(past, results)
            self.model.probed += results.pulls
            past.learn(results, tested=True)
            return
        epoch = self.epoch
        assert epoch is not None
        epoch.later = epoch.later[batch.note["rest"] :]
        epoch.results.merge(results)
        if len(epoch.later) == 0:
            self._end_epoch()

    def _close(self, pulls: int) -> None:
        assert self.epoch is not None
        self.model.block(self.past, self.epoch.results)
        super()._close(pulls)

    def _end_epoch(self) -> None:
        """Complete an epoch in which the gauntlet had its winners already."""
        past, epoch = self.past, self.epoch
        assert epoch is not None
        self.model.block(past, epoch.results)
        if past.reserve is not None:
            past.release()
        past.learn(epoch.results, tested=True)
        self.epoch = None

    def _end_complete_epoch(self, complete: bool) -> None:
        if self.probing and self.epoch is not None and self.until_end == 0 and complete:
            self._end_epoch()

    def _judge(self) -> None:
        if not self.probing:
            return
        past = self.past
        shifted = past.problem.batch_intercept
        sums = past.sums if shifted else [BatchSums.of(past.pooled.statistics)]
        self.model.judge(past, sums, self.claims.verdict(0).winners)
