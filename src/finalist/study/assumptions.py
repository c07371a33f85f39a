"""What the guarantee of a study rests on, in words."""

from finalist.strategies import guaranteed
from finalist.study.pulls import Fork, asked_anew
from finalist.study.snapshot import Snapshot
from finalist.text import counted, quoted


def assumptions(snapshot: Snapshot) -> list[str]:
    """Say what the guarantee rests on."""
    what = snapshot.problem.noise.assumption(_size(snapshot))
    found = [
        f"{what}, independent between measurements",
        _model(snapshot),
        "no result was left out, measured again or changed because of its value",
    ]
    void, missing = snapshot.void, snapshot.missing
    if missing or void:
        lost = " and ".join(f"{n:,} {kind}" for n, kind in _kinds(void, missing) if n)
        what, whose = ("measurement", "its") if void + missing == 1 else ("measurements", "their")
        found.append(f"the loss of {lost} {what} had nothing to do with {whose} value")
    if len(snapshot.levels) > 1:
        often = "once" if snapshot.stage == 1 else counted(snapshot.stage, "time")
        found.append(f"the candidates changed {often}; the levels {_sum(snapshot.levels)} add up")
    if snapshot.problem.noise.sigma is None:
        found.append("intervals take sigma from the residuals, at the upper end of what is likely")
    if snapshot.history_pulls:
        one = snapshot.history_pulls == 1
        earlier = counted(snapshot.history_pulls, "earlier measurement")
        verb, never = ("guides", "is") if one else ("guide", "are")
        found.append(f"{earlier} {verb} what is measured and {never} never tested")
    if snapshot.fork is not None and guaranteed(snapshot.strategy):
        found.append(forked(snapshot.fork, sum(snapshot.levels)))
    return found


def forked(fork: Fork, risk: float) -> str:
    """Say where a study with this risk comes from, and what the probabilities add up to.

    Examples
    --------
    >>> forked(Fork("seeds", None, "bending", 0.05), 0.05)
    'this study has the model bending and fresh evidence, ... 0.05 + 0.05 = 0.1 in all'
    """
    changed = asked_anew(fork.model, fork.epsilon)
    if changed:
        return (
            f"this study has {changed} and fresh evidence, and measures where the "
            f"results of {quoted(fork.source)} suggest; if you rely on both, the "
            f"probabilities of error "
            f"add up: {fork.risk:.3g} + {risk:.3g} = {fork.risk + risk:.3g} in all"
        )
    return (
        f"this is a fork of {quoted(fork.source)} from before batch {fork.until}: each of the two "
        "is wrong with its own probability, and these add up if both are looked at, or if the "
        "fork was made because of results"
    )


def _kinds(void: int, missing: int) -> tuple[tuple[int, str], ...]:
    return (void, "void"), (missing, "missing")


def _size(snapshot: Snapshot) -> str:
    """Describe a known sigma."""
    sigma = snapshot.problem.noise.sigma
    if isinstance(sigma, tuple):
        measured = snapshot.problem.sigmas[snapshot.arms.measurable]  # others have none
        low, high = measured.min(), measured.max()
        return f"of a size that is given for each candidate, {low:.3g} to {high:.3g}"
    return f"of size {sigma if sigma is None else format(sigma, 'g')}"


def _model(snapshot: Snapshot) -> str:
    """Say what is assumed of the means."""
    problem, arms = snapshot.problem, snapshot.arms
    linear = "linear in the features"
    if problem.misspecification > 0:
        linear = f"within {problem.misspecification:g} of a function that is {linear}"
    what = f"the expected result is {linear}"
    if arms.recipe.words():
        what += f" ({arms.recipe.words()})"
    if arms.rank == len(arms) and arms.measurable.all():
        what = "nothing is assumed about how the candidates are related"
    if problem.batch_intercept:
        what += ", and all results of a batch may share a constant of their own"
    if not arms.measurable.all():
        what += f"; {counted(int((~arms.measurable).sum()), 'candidate')} cannot be measured"
    return what


def _sum(levels: tuple[float, ...]) -> str:
    return " + ".join(f"{level:.3g}" for level in levels)
