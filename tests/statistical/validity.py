"""Is the promised probability of error kept? Many runs on named instances, with exact bounds.

    python -m tests.statistical.validity [--group field] [--runs 1000] [--only xy-adaptive]

Prints a table and writes it to benchmarks/results/validity.md for the strategies of the paper
(10,000 runs) and to validity-field.md for the others (1,000 runs: most are slower). A claim fails
when the exact 99.9 % lower bound of its error probability exceeds delta. Results are kept in a
store (--store), so a stopped run goes on where it was. The radius of the sharp bound made three
times too small has to be caught, on the tied instance, by the same test: it is the last line.

On an exactly tied instance no arm is better than another, so any winner named before the cap is
an error, whichever it is: the confidence sets, if they hold, never let a tied rival be ruled out.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import finalist as fl
from finalist.lab.store import Store
from finalist.problem import Problem
from finalist.simulation import Simulation
from finalist.simulation.binomial import exact_lower_bound, exact_upper_bound
from finalist.simulation.rewards import Kind
from finalist.strategies import (
    RAGE,
    FullyAdaptive,
    LazyTS,
    LinGame,
    LinGapE,
    Strategy,
    TrackAndStop,
    Uniform,
    XYAdaptive,
    XYAllocation,
    XYOracle,
    named,
)
from finalist.strategies.static.static import StaticRun
from tests import instances

DELTA = 0.05
#: A failure of the test must not be an accident of the test.
CONFIDENCE = 0.999
RESULTS = Path("benchmarks/results")


@dataclass(frozen=True)
class Instance:
    """Arms with a true parameter, and up to how many pulls a run is watched."""

    name: str
    features: np.ndarray
    theta: tuple[float, ...]
    cap: int = 100_000
    rewards: Kind = "gaussian"

    @property
    def arms(self) -> fl.Arms:
        """The arms."""
        return fl.Arms(self.features)

    @property
    def tied(self) -> bool:
        """Whether the two best arms are equally good."""
        best = np.sort(self.features @ np.array(self.theta))[-2:]
        return bool(best[1] - best[0] < 1e-12)

    @property
    def small(self) -> bool:
        """Whether there are few arms; with many the greedy rules take long."""
        return len(self.features) < 10

    def errors(self, result: Simulation) -> int:
        """Count wrong winners; where arms are tied, every winner is one."""
        return int(result.decided.sum() if self.tied else (result.decided & ~result.correct).sum())


#: The paper's arms at a wide angle; a parameter between the first and the last makes them tie.
BENT = instances.paper(3, 0.5)
INSTANCES = (
    Instance("easy", np.eye(3), (1.0, 0.2, 0.0)),
    Instance("nearly tied", np.eye(4), (0.2, 0.0, 0.0, 0.0)),
    Instance("nearly tied, +-1", np.eye(3), (0.2, 0.0, 0.0), rewards="bounded"),
    Instance("exactly tied", np.eye(3), (0.0, 0.0, 0.0), cap=10_000),
    Instance("paper, tied", BENT.features, (math.cos(0.25), math.sin(0.25), 0.0), cap=10_000),
    Instance("many arms", instances.unit_sphere(20, 3, 1), (2.0, -1.0, 0.6)),
)


@dataclass(frozen=True)
class TooSmall:
    """XY-allocation with the sharp radius divided by three: it has to be caught."""

    name: ClassVar[str] = "radius / 3"
    factor: float = 1 / 3

    def start(self, problem: Problem, seed: int = 0) -> StaticRun:
        """Begin like XY-allocation, then break it."""
        run = XYAllocation().start(problem, seed)
        run._rule = run._rule._replace(scale=run._rule.scale * self.factor)
        return run


def strategies(instance: Instance) -> Iterator[Strategy]:
    """Yield every strategy that claims delta, in every form of its rule, for an instance."""
    yield from paper_strategies(instance)
    yield from field_strategies(instance)


def static_strategies(instance: Instance, *names: str) -> Iterator[Strategy]:
    """Yield fixed allocations, by the optimal design and by the greedy rule."""
    for name in names:
        static: Any = named(name, instance.arms)
        yield static
        if instance.small:
            yield replace(static, allocation="greedy")


def adaptive(instance: Instance) -> FullyAdaptive:
    """Return the fully adaptive strategy; a bound on the rewards has to be some number."""
    knowing = FullyAdaptive.knowing(instance.arms, np.array(instance.theta))
    return FullyAdaptive(theta_norm=1.0) if knowing.theta_norm < 1e-3 else knowing


def paper_strategies(instance: Instance) -> Iterator[Strategy]:
    """Yield the strategies of the paper."""
    yield from static_strategies(instance, "g", "xy")
    if not instance.tied:  # the oracle knows better than to tell tied arms apart
        yield XYOracle(instance.theta)
        yield XYOracle(instance.theta, stopping="empirical")
    yield XYAdaptive()
    yield XYAdaptive(alpha=0.1)
    if instance.small:
        yield XYAdaptive(allocation="greedy")
    yield adaptive(instance)
    yield replace(adaptive(instance), bound="soare")


def field_strategies(instance: Instance) -> Iterator[Strategy]:
    """Yield the strategies that are not the paper's, but the gauntlet."""
    size = adaptive(instance).theta_norm
    yield Uniform()
    yield from static_strategies(instance, "v")
    yield RAGE()
    yield LinGapE(theta_norm=size)
    yield LinGapE(theta_norm=size, selection="ratio")
    yield LinGame(theta_norm=size)
    yield LazyTS()
    if TrackAndStop.suits(instance.arms):
        yield TrackAndStop()
        yield TrackAndStop(tracking="C")


@dataclass(frozen=True)
class Group:
    """Strategies that share a table."""

    strategies: Callable[[Instance], Iterator[Strategy]]
    runs: int
    file: str
    title: str


GROUPS = {
    "paper": Group(paper_strategies, 10_000, "validity.md", "Validity"),
    "field": Group(field_strategies, 1_000, "validity-field.md", "Validity of other strategies"),
}


@dataclass(frozen=True)
class Claim:
    """What came out for one strategy on one instance."""

    instance: str
    strategy: str
    runs: int
    errors: int
    undecided: int
    pulls: float

    @property
    def lower(self) -> float:
        """The error probability is at least this, with confidence 99.9 %."""
        return exact_lower_bound(self.errors, self.runs, CONFIDENCE)

    @property
    def upper(self) -> float:
        """The error probability is at most this, with confidence 95 %."""
        return exact_upper_bound(self.errors, self.runs, 0.95)

    @property
    def kept(self) -> bool:
        """Whether the data are consistent with the promised delta."""
        return self.lower <= DELTA


def measure(
    store: Store, instance: Instance, strategy: Strategy, runs: int, jobs: int = 1
) -> Claim:
    """Simulate, or read what was simulated before."""
    result = store.simulate(
        instance.arms,
        instance.theta,
        strategy,
        delta=DELTA,
        runs=runs,
        block=500,
        seed=20141208,
        n_jobs=jobs,
        rewards=instance.rewards,
        max_pulls=instance.cap,
        sigma=1.0,
    )
    if len(result.samples) < runs:
        raise KeyboardInterrupt  # what is finished is in the store
    undecided, pulls = int((~result.decided).sum()), float(result.samples.mean())
    text = TooSmall.name if isinstance(strategy, TooSmall) else describe(strategy)
    return Claim(instance.name, text, runs, instance.errors(result), undecided, pulls)


def describe(strategy: Strategy) -> str:
    """Return the name of a strategy and the settings that are not the default."""
    settings: dict[str, Any] = {
        key: value
        for key, value in vars(strategy).items()
        if value != getattr(type(strategy), key, None) and key not in ("theta", "theta_norm")
    }
    return ", ".join([strategy.name, *(f"{key}={value}" for key, value in settings.items())])


def table(claims: Sequence[Claim], broken: Claim) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [
        "| instance | strategy | runs | mean pulls | undecided | errors | error rate | at least "
        "(99.9 %) | at most (95 %) | delta kept |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [row(claim, "yes" if claim.kept else "**no**") for claim in claims]
    return [*lines, row(broken, "**not caught**" if broken.kept else "no: caught")]


def row(claim: Claim, verdict: str) -> str:
    """Return one line of the table."""
    return (
        f"| {claim.instance} | {claim.strategy} | {claim.runs:,} | {claim.pulls:,.0f} "
        f"| {claim.undecided:,} | {claim.errors:,} | {claim.errors / claim.runs:.4f} "
        f"| {claim.lower:.4f} | {claim.upper:.4f} | {verdict} |"
    )


def main() -> int:
    """Measure everything and say whether all promises are kept."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--group", choices=list(GROUPS), help="default: one after the other")
    parser.add_argument("--runs", type=int, help="default: 10,000 and 1,000")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--store", type=Path, default=Path("validity.sqlite"))
    parser.add_argument("--only", help="part of the name of a strategy or an instance")
    words = parser.parse_args()
    names = list(GROUPS) if words.group is None else [words.group]
    return max(check(name, words) for name in names)


def check(name: str, words: argparse.Namespace) -> int:
    """Measure the strategies of a group; return 1 if a promise is broken."""
    group, store, claims = GROUPS[name], Store(words.store), []
    runs = words.runs or group.runs
    for instance in INSTANCES:
        for strategy in group.strategies(instance):
            if words.only is None or words.only in f"{instance.name} {describe(strategy)}":
                claims.append(measure(store, instance, strategy, runs, words.jobs))
                print(row(claims[-1], "yes" if claims[-1].kept else "**no**"), flush=True)
    tied = next(instance for instance in INSTANCES if instance.name == "exactly tied")
    broken = measure(store, tied, TooSmall(), runs, words.jobs)
    lines = table(claims, broken)
    print(lines[-1])
    if words.only is None:
        command = f"python -m tests.statistical.validity --group {name} --runs {runs}"
        about = f"`make validate` (`{command}`), delta = {DELTA}, finalist {fl.__version__}."
        text = "\n".join([f"# {group.title}", "", about, "", *lines, ""])
        (RESULTS / group.file).write_text(text)
    failed = [claim for claim in claims if not claim.kept]
    for claim in failed:
        print(f"FAILED: {claim.strategy} on {claim.instance}: {claim.errors} of {claim.runs}")
    if broken.kept:
        print("FAILED: a radius three times too small was not caught")
    return 1 if failed or broken.kept else 0


if __name__ == "__main__":
    sys.exit(main())
