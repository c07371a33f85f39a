"""Rules about how often a strategy that promises delta is wrong, on several instances.

A strategy fails only if its number of errors would have a probability below `ALPHA` were each run
wrong with probability at most delta: the exact tail of the binomial distribution (Clopper and
Pearson 1934). All trials together share `ALPHA`, so a strategy that keeps delta passes all of them
with probability at least 1 - `ALPHA`. Seeds are fixed, so the outcome is the same every time.

Proofs leave slack, which hides widths that are too narrow if a run continues until the gaps are
clear. Narrow widths show early, with arms that are nearly tied: most trials have small gaps, end
after a few pulls of each arm whether or not there is a winner, and count only wrong answers. Two
arms leave the least slack in a union bound, so that trial has the most runs.

What this catches, measured with other seeds by `python -m tests.statistical.contract_power`: with
widths of a quarter, `uniform`, `g` and `xy-adaptive` are wrong in 682, 729 and 528 of 2,000 runs on
two arms, where 8 of 500 are too many, so always. With widths of a half they are wrong in 68, 76 and
58, which is caught with probability 0.995, 0.999 and 0.978. A quarter is not caught in `rage`,
whose phases are long: wrong in 7 of 2,000 runs on two arms, and in none on the other instances.
"many arms" has power against strategies that rule out arms one by one; one that only names a winner
must be wrong 19 times over.
"""

from dataclasses import dataclass

import numpy as np

from finalist.arms import Arms
from finalist.problem import as_problem
from finalist.shapes import Float
from finalist.simulation import exact_lower_bound
from finalist.simulation.instances import paper
from finalist.strategies import Strategy, guaranteed
from finalist.testing.runs import MAX_PULLS, Make, NotApplicable, ensure, play, where_supported

#: Probability, over all rules together, that a strategy fails although it keeps delta.
ALPHA = 1e-6
#: Means within this of the best count as tied.
TIED = 1e-12


@dataclass(frozen=True, eq=False)
class Trial:
    """An instance and the runs to make on it.

    Attributes
    ----------
    rounds : int or None
        Pulls per arm after which a run ends; None to run until there is a winner.
    turned : bool
        Whether the best arm changes from run to run; only if all arms are alike.
    """

    arms: Arms
    theta: Float[np.ndarray, " d"]
    runs: int
    delta: float = 1e-3
    rounds: int | None = 40
    turned: bool = True

    @property
    def cap(self) -> int:
        """Pulls after which a run ends."""
        return MAX_PULLS if self.rounds is None else self.rounds * len(self.arms)

    def parameter(self, run: int) -> Float[np.ndarray, " d"]:
        """Return the parameter of a run."""
        return np.roll(self.theta, run) if self.turned else self.theta


def _unstructured(means: list[float], runs: int, **more: float | None) -> Trial:
    return Trial(Arms.unstructured(len(means)), np.array(means), runs, **more)  # type: ignore[arg-type]


def _linear(runs: int) -> Trial:
    """Return the paper's instance (Soare 2014, Sect. 6), the best arm last, with a small angle."""
    found = paper(5, 0.1)
    return Trial(Arms(found.features[::-1]), found.theta, runs, turned=False)


#: The trials by name.
TRIALS: dict[str, Trial] = {
    "two arms": _unstructured([0.05, 0.0], 500),
    "five arms": _unstructured([0.1, 0.0, 0.0, 0.0, 0.0], 200),
    "tied best arms": _unstructured([0.1, 0.1, 0.0, 0.0, 0.0], 200),
    "many arms": _unstructured([0.1, *[0.0] * 19], 60),
    "linear": _linear(200),
    "to the end": _unstructured([0.5, 0.0, 0.0, 0.0], 100, delta=0.05, rounds=None),
}


def errors_are_as_rare_as_promised(make: Make, trial: str) -> None:
    """One of the best arms wins or, if a run ends before that, is still possible.

    An arm that is ruled out never comes back: a run with none of the best left can only end with
    a wrong answer.
    """
    given, wrong = TRIALS[trial], 0
    problem = as_problem(given.arms, sigma=1.0, delta=given.delta)
    for run in range(given.runs):
        theta = given.parameter(run)
        strategy = make(given.arms, theta)
        refuse_without_promise(strategy)
        with where_supported():
            # A strategy that checks every pull but has no compiled loop checks once per round.
            least = len(given.arms)
            played = play(strategy, problem, theta, run, given.cap, least=least, own_seed=run)
        means = given.arms.means(theta)
        best = set(np.flatnonzero(means >= means.max() - TIED).tolist())
        verdict = played.verdict
        left = verdict.winners if verdict.decided else verdict.survivors
        wrong += not best & set(left)
        ensure_rare(wrong, given.runs, given.delta, "it is wrong", made=run + 1)


def good_enough_rules_out_no_best_arm(make: Make) -> None:
    """If an arm within epsilon suffices, the best one still stays among the survivors."""
    arms, theta = Arms.unstructured(4), np.array([1.0, 0.9, 0.0, 0.0])
    problem, strategy = as_problem(arms, sigma=1.0, epsilon=0.5, delta=1e-3), make(arms, theta)
    refuse_without_promise(strategy)
    missing = 0
    for seed in range(60):
        with where_supported():
            verdict = play(strategy, problem, theta, seed).verdict
        ensure(verdict.winner in verdict.survivors, f"no survivor wins: {verdict}")
        missing += 0 not in verdict.survivors
    ensure_rare(missing, 60, 1e-3, "the best arm is not a survivor")


def refuse_without_promise(strategy: Strategy) -> None:
    """Skip a rule about errors for a strategy that declares it has no proof."""
    if not guaranteed(strategy):
        raise NotApplicable("it promises no error probability")


def ensure_rare(errors: int, runs: int, delta: float, what: str, made: int | None = None) -> None:
    """Raise AssertionError if there are too many errors, even if all remaining runs were right.

    Parameters
    ----------
    errors, runs : int
        Errors so far, and the total number of runs.
    delta : float
        The promised error probability.
    what : str
        The error, for the message.
    made : int, optional
        Runs so far; by default all.
    """
    if errors == 0:
        return
    share = ALPHA / (len(TRIALS) + 1)
    least = exact_lower_bound(errors, runs, 1.0 - share)
    words = f"{what} in {errors} of {runs if made is None else made} runs"
    words += "" if made in (None, runs) else f" ({runs} were planned)"
    likely = f"too many to be chance (probability below {share:.0e})"
    ensure(least <= delta, f"{words}, {likely}; promised is {delta}")
