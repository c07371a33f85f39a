"""Does the model of the means leave out a bend? What the check of a study says."""

from typing import TYPE_CHECKING

import numpy as np

from finalist.arms import Arms
from finalist.inference.bending import ALARM, BendEvidence
from finalist.inference.pooling import BatchSums
from finalist.inference.residuals import Cells
from finalist.inference.statistics import BatchResults
from finalist.problem import Problem
from finalist.strategies import Run
from finalist.strategies.abilities import ModelFindings, Modelled
from finalist.strategies.model_words import about, accepted
from finalist.study.check import Check
from finalist.text import counted, named

if TYPE_CHECKING:
    from finalist.study.state import State


def findings_of(state: "State") -> ModelFindings | None:
    """Return what is known of bends: by the strategy, or else by batches; None if unchecked."""
    if isinstance(state.run, Modelled) and state.replay.follows:
        modelled = state.run.model()
        if modelled is not None:
            return modelled
    found = state.bends
    if found is None:
        return None
    evidence, limit = found.log_total, state.problem.check
    return ModelFindings(found.bends.words(), evidence, found.alarm, found.strongest, limit=limit)


def first_evidence(
    run: Run, problem: Problem, before: BendEvidence | None = None
) -> BendEvidence | None:
    """Begin to look for bends, or go on with other arms; None where the strategy does so."""
    strategy_does = isinstance(run, Modelled) and run.model() is not None
    return None if strategy_does else BendEvidence.of(problem, before)


def look_for_bends(state: "State", rewards: BatchResults) -> None:
    """Take a batch as evidence of bends, where the strategy does not look for them."""
    if state.bends is None or rewards.pulls == 0:
        return
    shifted, p = state.problem.batch_intercept, state.problem.precisions
    known = state.measured if shifted else [BatchSums.of(state.pooled.statistics)]
    before = Cells.of(known, p, shifted=shifted)
    state.bends.add(Cells.of([BatchSums.of(rewards)], p, shifted=shifted), before)


def bend_checks(
    found: ModelFindings | None, problem: Problem, pulls: int, end: str | None
) -> list[Check]:
    """Return the check that fails, if the model is wrong or a bend may hide a better arm.

    `end` is why there is nothing left to ask, if that is so.
    """
    arms = problem.arms
    if found is None:
        return []
    if problem.misspecification > 0.0:
        return _within(found, problem)
    if found.alarm:
        return [
            Check(
                "bend",
                f"The model does not fit: the means bend, and {found.strongest} is missing in it "
                "(if it did fit, evidence as strong as this would be seen in fewer than 1 of "
                f"{_rounded(found.evidence)} studies)",
                True,
                f"Go on with a model that has it: {remedy(found, arms)}. {_or_noise(problem)}",
                next_model(found.strongest, arms),
            )
        ]
    unknown = end is not None and found.outcome == "open" and found.chance is not None
    if found.outcome != "hidden" and not unknown:
        return []
    one, other = (named([arms.names[i] for i in who]) for who in (found.winners, found.bent))
    assert found.chance is not None
    made = counted(pulls, "measurement")
    if found.winners == found.bent:
        seen = (
            f"A bend may hide a better candidate than {one}: the chance is {about(found.chance)} "
            f"after {made}, and {accepted(found.limit)}"
        )
        more = f"Go on with a model that bends: {remedy(found, arms)}."
    else:
        seen = (
            f"The model says {one}, a model with {found.sought} says {other}, and {made} cannot "
            f"tell for certain which is right: the chance that a bend hides a better candidate is "
            f"{about(found.chance)}"
        )
        both = "both" if len({*found.winners, *found.bent}) == 2 else "all of them"
        more = f"Measure {both} again, or go on with a model that bends: {remedy(found, arms)}."
    return [Check("bend", seen, True, more, next_model(found.strongest, arms))]


def _within(found: ModelFindings, problem: Problem) -> list[Check]:
    """Show evidence of a bend where means may be off the model: no alarm, since that may be it."""
    if found.evidence < -np.log(ALARM):
        return []
    go_on = remedy(found, problem.arms)
    return [
        Check(
            "bend",
            f"The means seem to bend: {found.strongest} is missing in the model. They are allowed "
            f"to be off it by {problem.misspecification:g}, so this alone contradicts nothing",
            False,
            f"If they bend by more, go on with a model that has it: {go_on}.",
            next_model(found.strongest, problem.arms),
        )
    ]


def _or_noise(problem: Problem) -> str:
    """Say what looks like a bend and is none (figures: benchmarks/results/model-validity.md)."""
    if problem.scale is not None and problem.noise.sigma is not None:
        return "Or sigma is larger than stated: noise that is too large can look like a bend."
    return "Noise that is larger for some candidates than for others can look like a bend, too."


def remedy(found: ModelFindings, arms: Arms) -> str:
    """Say how to go on with a model that bends.

    Examples
    --------
    >>> remedy(ModelFindings("squares", 9.0, True, "dose^2"), Arms([[1.0], [2.0]]))
    "study.fork(NAME, model='bending'), or finalist fork --model bending"
    """
    model = next_model(found.strongest, arms)
    return f"study.fork(NAME, model={model!r}), or finalist fork --model {model}"


def next_model(bend: str, arms: Arms) -> str:
    """Return the simplest model that has a bend."""
    used = arms.recipe.name
    if used in ("bending", "surface") and " * " in bend and "^" not in bend and used == "bending":
        return "surface"
    if used in ("bending", "surface"):
        return "separate"
    return "surface" if " * " in bend else "bending"


def _rounded(log_evidence: float) -> str:
    return f"{min(2.718281828 ** min(log_evidence, 30.0), 1e9):,.0f}"
