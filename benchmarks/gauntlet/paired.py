"""Two rules on the same noise: small differences in a fraction of the runs.

    python -m benchmarks.gauntlet.paired [--bound 200 1000] [--runs 10] [--delta 0.05]
        [--rules 4] [--change untilted=0.05] [--only sphere]

The n-th result of an arm is the same number under both rules, however they choose. Means over the
lower bound then differ by what the rules do and by little noise: 500 runs tell 1 % where unpaired
ones need ten times as many. On the instances that settings may be tuned on, and no others. For
each bound prints the geometric mean over families of the ratio, changed over unchanged, with its
standard error, and keeps nothing.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import finalist as fl
from benchmarks.gauntlet.cells import CAP
from benchmarks.gauntlet.families import BOUNDS, FAMILIES, family, lower_bound
from benchmarks.harness import console
from finalist.inference.statistics import BatchResults
from finalist.problem import as_problem
from finalist.problem.rules import NEWEST, Rules, rules_of
from finalist.simulation.instances import Instance

#: Results of an arm that are drawn at first; then twice as many, and so on.
FIRST = 64


class CommonNoise:
    """Results of which each arm has a sequence of its own, by the seed alone.

    Examples
    --------
    >>> one, other = (CommonNoise(np.array([5.0, 0.0]), seed=1) for _ in range(2))
    >>> early, late = one.sequence(np.array([0, 1, 0])), other.sequence(np.array([1, 0, 0]))
    >>> bool((early.mean == late.mean).all())
    True
    """

    def __init__(self, means: np.ndarray, seed: int) -> None:
        self._means = means
        self._rngs = [np.random.default_rng([seed, k]) for k in range(len(means))]
        self._noise = [rng.standard_normal(FIRST) for rng in self._rngs]
        self._used = [0] * len(means)

    def sequence(self, order: np.ndarray) -> BatchResults:
        """Return the next results of some pulls, in their order."""
        values = np.array([self._next(int(arm)) for arm in order])
        return BatchResults.of(len(self._means), order, values)

    def _next(self, arm: int) -> float:
        n = self._used[arm]
        if n == len(self._noise[arm]):
            self._noise[arm] = np.append(self._noise[arm], self._rngs[arm].standard_normal(n))
        self._used[arm] += 1
        return float(self._means[arm] + self._noise[arm][n])


def pulls_of(instance: Instance, rules: Rules, delta: float, seed: int, most: float) -> int:
    """Return the pulls that a run takes; at least `most` if that many do not decide."""
    means = instance.arms.means(instance.theta)
    problem = as_problem(instance.arms, sigma=1.0, delta=delta, rules=rules)
    run, noise = fl.Gauntlet().start(problem, seed=seed), CommonNoise(means, seed)
    while not run.verdict.decided and run.verdict.pulls < most:
        batch = run.next()
        order = batch.order
        if order is None:
            order = np.repeat(np.arange(len(means)), batch.counts)
        results = noise.sequence(order)
        if batch.order is None:
            results.arm = results.value = None
        run.record(batch, results)
    return run.decided_at or run.verdict.pulls


def ratio(
    size: float, both: Sequence[Rules], delta: float, runs: int, only: str = ""
) -> tuple[float, float]:
    """Return the pulls by the second rules over those by the first, with the standard error.

    The geometric mean over families of the ratio of mean pulls (delta method).
    """
    logs, squares = [], []
    for name in (name for name in FAMILIES if only in name):
        spec = family(name, "tuning", size, delta)
        most = CAP * lower_bound(spec.numbered[0].instance, delta)
        pulls = np.array(
            [
                [
                    [pulls_of(instance, rules, delta, 10**6 * seed + k, most) for k in range(runs)]
                    for instance, seed in spec.numbered
                ]
                for rules in both
            ],
            dtype=float,
        )
        first, second = pulls.mean(axis=(1, 2))
        apart = pulls[1] / second - pulls[0] / first
        squares.append(float((apart.var(axis=1, ddof=1) / runs).sum()) / len(apart) ** 2)
        logs.append(math.log(second / first))
        console.print(f"  {name}: {second / first:.3f} +- {math.sqrt(squares[-1]):.3f}")
    mean = math.exp(sum(logs) / len(logs))
    return mean, mean * math.sqrt(sum(squares)) / len(logs)


def changed(rules: Rules, changes: Sequence[str]) -> Rules:
    """Return rules of which fields are others, as "name=value" has them.

    Examples
    --------
    >>> changed(rules_of(4), ["untilted=0.05"]).untilted
    0.05
    """
    fields = dict(change.split("=", 1) for change in changes)
    kinds = {name: type(getattr(rules, name)) for name in fields}
    values = {
        name: text == "True" if kinds[name] is bool else kinds[name](text)
        for name, text in fields.items()
    }
    return replace(rules, **values)


def main() -> int:
    """Compare rules with themselves, changed."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--bound", type=int, nargs="+", choices=BOUNDS, default=[200, 1_000])
    parser.add_argument("--runs", type=int, default=10, help="on each of ten instances a family")
    parser.add_argument("--delta", type=float, default=0.05)
    parser.add_argument("--rules", type=int, default=NEWEST.number)
    parser.add_argument("--change", nargs="+", default=[], metavar="FIELD=VALUE")
    parser.add_argument("--only", default="", help="part of the name of a family")
    words = parser.parse_args()
    rules = rules_of(words.rules)
    for size in words.bound:
        both = rules, changed(rules, words.change)
        mean, error = ratio(size, both, words.delta, words.runs, words.only)
        console.print(f"bound {size:,}: {mean:.4f} +- {error:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
