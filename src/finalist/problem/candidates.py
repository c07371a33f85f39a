"""Arms to measure and candidates to choose from: joined, and checked to be comparable."""

import numpy as np

from finalist.arms import Arms
from finalist.errors import OutsideSpanError, ProblemError


def joined(arms: Arms, candidates: object) -> tuple[Arms, Arms]:
    """Return one set of arms and candidates (None: those of the arms), and the candidates alone."""
    if candidates is not None:
        if not isinstance(candidates, Arms):
            kind = type(candidates).__name__
            raise ProblemError(f"candidates is of type {kind}; use Arms(features).")
        d, other = arms.features.shape[1], candidates.features.shape[1]
        if d != other:
            raise ProblemError(f"candidates have {other} features and arms {d}; use the same.")
        if candidates != arms:
            arms = arms.with_candidates(candidates)
    return arms, arms if arms.candidate.all() else arms.only(arms.candidate)


def check_comparable(arms: Arms, candidates: Arms, batch_intercept: bool) -> None:
    """Refuse candidates whose differences the arms cannot estimate."""
    if arms.measurable.all():
        return
    directions = candidates.features[1:] - candidates.features[0]
    if batch_intercept:  # only what is free of the constant of a batch can be compared
        wider = np.column_stack([arms.features, np.ones(len(arms))])
        arms = Arms(wider, measurable=arms.measurable)
        directions = np.column_stack([directions, np.zeros(len(directions))])
    try:
        arms.to_span(directions)
    except OutsideSpanError as error:
        raise ProblemError(
            "candidates cannot be compared by measuring these arms (direction 1 is the second "
            f"candidate, {candidates.names[1]!r}, minus the first, {candidates.names[0]!r}, and so "
            f"on): {error} Or leave such candidates out."
        ) from error


def check_told_apart(candidates: Arms, misspecification: float) -> None:
    """Refuse rows that the model merges into one arm although their means may differ."""
    if misspecification == 0.0:
        return
    for names in candidates.aliases:
        if len(names) > 1:
            raise ProblemError(
                f"{names[0]} and {names[1]} have the same features, so they count as one arm; but "
                f"with misspecification = {misspecification:g} their means may differ. Add "
                "a feature that tells them apart, or leave one of them out."
            )
