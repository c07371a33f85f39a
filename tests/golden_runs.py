"""Simulated runs of every strategy, each as a hash: did a change change what is decided?

    python -m tests.golden_runs --compare 855b9b6   # this tree beside a commit, on this machine
    python -m tests.golden_runs --write FILE        # the hashes of the finalist that is imported
    python -m tests.golden_runs --clear [RULES]     # write golden_runs.json again, or a part of it

A hash is over what was pulled, chosen and decided, batch by batch, and over no number that is not
whole. Runs are by rules 1, those of the gauntlet by all rules that there have been. The last digits
of floating-point numbers still differ between processors, and with them now and then a choice, so
that hashes of different machines are not compared. `golden_runs.json` has no hashes but the sizes
of batches, the survivors and the winner, and only of runs in which features that are a little
different change nothing.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import finalist as fl
from finalist.errors import NotYetSupportedError, ProblemError
from finalist.problem import Problem, as_problem
from finalist.strategies import STRATEGIES, Playable, Run, Strategy, named, promise_of

#: The word for the most pulls of an arm, which earlier commits called otherwise.
LIMIT = "max_pulls_per_arm" if hasattr(Problem, "capacity") else "most_pulls"
if TYPE_CHECKING or find_spec("finalist.inference"):
    from finalist.problem.rules import RULES
    from finalist.simulation.rewards import DrawnRewards, Kind
else:  # an earlier commit, whose modules have other paths and perhaps no numbers for its rules
    from finalist.rewards import DrawnRewards, Kind  # type: ignore[import-not-found,no-redef]

    RULES = import_module("finalist.rules").RULES if find_spec("finalist.rules") else {}

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).with_suffix(".json")
SEEDS = (1, 2, 3)
#: A run ends here if it has no winner before; compiled loops are faster and go on for longer.
MAX_PULLS, MAX_BATCHES, MAX_PLAYED = 1500, 60, 3000
#: The budget of strategies that need one.
BUDGET = 60
#: By what part features are changed to see whether a run is clear, and how often.
JOSTLE, JOSTLED = 1e-9, 6

#: No column has a power of two as its largest number: arms are scaled by powers of two.
FEATURES = np.array(
    [
        [1.1, 0.1, 0.0],
        [0.2, 0.9, -0.3],
        [-0.5, 0.4, 0.8],
        [0.7, -0.6, 0.5],
        [0.3, 0.3, 0.9],
        [-0.8, -0.2, 0.1],
    ]
)
THETA = (1.4, 0.4, 0.2)
LINE = np.array([[0.95, 0.2], [0.45, 0.7], [0.2, 0.1], [0.05, 0.9]])


@dataclass(frozen=True)
class Question:
    """A problem to run strategies on, with its truth.

    Attributes
    ----------
    words : mapping
        Words of `as_problem`; sigma is 0.6 unless given.
    theta : tuple of float
    features : (K, d) array
    measurable : tuple of bool, optional
    candidates : (C, d) array, optional
    rewards : "gaussian", "bounded" or "bernoulli"
    noise : float
        The true size of the noise where sigma is unknown.
    shift : float
        Of each batch.
    size : int, optional
        Of batches.
    """

    words: Mapping[str, Any] = field(default_factory=dict)
    theta: tuple[float, ...] = THETA
    features: Any = field(default_factory=lambda: FEATURES)
    measurable: tuple[bool, ...] | None = None
    candidates: Any = None
    rewards: Kind = "gaussian"
    noise: float = 0.6
    shift: float = 0.0
    size: int | None = None

    def problem(self, budget: int | None = None, rules: int = 1) -> Problem:
        """Return the problem, with the rules of a number."""
        words = {"sigma": 0.6, **self.words}
        if RULES:
            words["rules"] = RULES[rules]
        if words.get("noise") == "bernoulli":
            del words["sigma"]
        if budget is not None:
            words["budget"] = budget
        if self.candidates is not None:
            names = [f"candidate {i}" for i in range(len(self.candidates))]
            words["candidates"] = fl.Arms(self.candidates, names)
        names = [f"arm {i}" for i in range(len(self.features))]
        return as_problem(fl.Arms(self.features, names, measurable=self.measurable), **words)

    def draw(self, problem: Problem, seed: int) -> DrawnRewards:
        """Return where the rewards come from."""
        means = problem.arms.features @ np.array(self.theta)
        sigma: Any = self.noise
        if self.rewards != "bernoulli" and problem.noise.sigma is not None:
            uneven = isinstance(problem.noise.sigma, tuple)
            sigma = np.array(problem.sigmas) if uneven else problem.sigma
        rng = np.random.default_rng(seed)
        return DrawnRewards(means, sigma, self.rewards, rng, self.shift)

    def jostled(self, seed: int) -> "Question":
        """Return the question with features that are a little different."""
        rng = np.random.default_rng(seed)

        def moved(X: np.ndarray) -> np.ndarray:
            return np.asarray(X * (1.0 + JOSTLE * rng.standard_normal(X.shape)))

        candidates = None if self.candidates is None else moved(self.candidates)
        return replace(self, features=moved(self.features), candidates=candidates)


def _questions() -> dict[str, Question]:
    uneven = {"sigma": (0.4, 0.5, 0.6, 0.7, 0.8, 0.6)}
    cost = {"cost": (1.0, 3.0, 2.0, 1.0, 2.0, 4.0)}
    free, chances = np.eye(4), (0.85, 0.5, 0.3, 0.2)
    chance = Question({"noise": "bernoulli"}, chances, free, rewards="bernoulli")
    many = np.random.default_rng(5).standard_normal((16, 3)).round(2)
    lone = np.array([[0.9, 0.6, 0.1], [0.4, 1.0, 0.6], [0.1, 0.2, 1.0]])
    return {
        "best": Question(),
        "best, small batches": Question(size=2),
        "best, plates": Question(size=10),
        "best, delta": Question({"delta": 0.001}),
        "free": Question(theta=(1.0, 0.4, 0.2, 0.0), features=free),
        "free, plates, min": Question({"objective": "min"}, (0.0, 0.9, 1.1, 1.3), free, size=12),
        "line": Question(theta=(1.0, 0.3), features=FEATURES[:5, :2], size=16),
        "min": Question({"objective": "min"}),
        "epsilon": Question({"epsilon": 0.3}),
        "epsilon, min, plates": Question({"epsilon": 0.2, "objective": "min"}, size=9),
        "sub-gaussian": Question({"noise": "sub-gaussian"}, rewards="bounded"),
        "bernoulli": chance,
        "bernoulli, epsilon": replace(chance, words={"noise": "bernoulli", "epsilon": 0.25}),
        "bernoulli, min, plates": replace(
            chance, words={"noise": "bernoulli", "objective": "min"}, size=30
        ),
        "bernoulli, line": Question(
            {"noise": "bernoulli"}, (0.9, 0.2), LINE, rewards="bernoulli", size=20
        ),
        "unknown sigma": Question({"sigma": None}),
        "unknown sigma, plates": Question({"sigma": None}, size=15),
        "unknown sigma, epsilon": Question({"sigma": None, "epsilon": 0.3}),
        "per arm": Question(uneven),
        "per arm, epsilon": Question(uneven | {"epsilon": 0.3}),
        "per arm, sub-gaussian": Question(
            uneven | {"noise": "sub-gaussian"}, rewards="bounded", size=12
        ),
        "cost": Question(cost),
        "per arm, cost": Question(uneven | cost, size=15),
        "measurable": Question(measurable=(False, True, True, True, True, True)),
        "candidates": Question(candidates=lone),
        "candidates, per arm, epsilon": Question(uneven | {"epsilon": 0.1}, candidates=lone),
        "top": Question({"top": 2}),
        "top, per arm, cost": Question(uneven | cost | {"top": 3}, size=18),
        "top, unknown sigma, min": Question({"sigma": None, "top": 2, "objective": "min"}),
        "top, candidates": Question({"top": 2}, candidates=lone),
        "top of many": Question({"top": 6}, features=many, size=30),
        "shifts": Question({"batch_intercept": True}, shift=3.0),
        "shifts, unknown sigma": Question({"batch_intercept": True, "sigma": None}, shift=3.0),
        "shifts, line": Question({"batch_intercept": True}, (1.5, 0.3), LINE, shift=3.0, size=16),
        "shifts, top": Question({"batch_intercept": True, "top": 2}, shift=3.0, size=20),
        "misspecification": Question({"misspecification": 0.03}),
        "misspecification, line": Question({"misspecification": 0.02}, (1.5, 0.3), LINE, size=12),
        "misspecification, per arm": Question(uneven | {"misspecification": 0.03}),
        "misspecification, top": Question({"misspecification": 0.03, "top": 2}, size=20),
        "misspecification, epsilon": Question({"misspecification": 0.03, "epsilon": 0.3}),
        "limited pulls": Question({"sigma": 1.5, LIMIT: 9}),
        "limited pulls, winner": Question({LIMIT: 30}, size=10),
        "many options": Question(
            uneven
            | cost
            | {
                "batch_intercept": True,
                "misspecification": 0.02,
                "epsilon": 0.2,
                "objective": "min",
            },
            shift=2.0,
            size=24,
        ),
    }


QUESTIONS = _questions()

#: Settings of strategies that are tried beside the usual ones.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "gauntlet": [{"growth": 0.5}],
    "uniform": [{"bound": "soare"}],
    "g": [{"bound": "soare"}, {"allocation": "greedy"}],
    "xy": [{"bound": "soare"}, {"allocation": "greedy"}],
    "v": [{"bound": "soare"}, {"allocation": "greedy"}],
    "xy-oracle": [{"stopping": "empirical"}, {"allocation": "greedy"}, {"bound": "soare"}],
    "xy-adaptive": [{"alpha": 0.1}, {"allocation": "greedy"}],
    "fully-adaptive": [{"bound": "soare"}],
    "gse": [{"eta": 3}],
    "rage": [{"first_gap": 1.0}],
    "lingape": [{"selection": "ratio"}, {"threshold": "heuristic"}],
    "lingame": [{"threshold": "determinant"}, {"threshold": "heuristic"}, {"optimism": "paper"}],
    "lazy-ts": [{"threshold": "heuristic"}],
    "track-and-stop": [{"tracking": "C"}, {"threshold": "heuristic"}],
}
#: Questions for settings that are not the usual ones: the others are answered by the usual ones.
FEW = ("best", "free", "epsilon, min, plates", "bernoulli", "per arm")


@dataclass(frozen=True)
class Case:
    """A strategy on a question, with a seed."""

    strategy: str
    settings: tuple[tuple[str, Any], ...]
    question: str
    seed: int
    rules: int = 1

    @property
    def name(self) -> str:
        """Its key in the files."""
        settings = "".join(f":{word}={value}" for word, value in self.settings)
        settings += "" if self.rules == 1 else f":rules={self.rules}"
        return f"{self.strategy}{settings} | {self.question} | {self.seed}"

    def made(self, question: Question) -> tuple[Strategy, Problem]:
        """Return the strategy with its settings, and the problem."""
        budgeted = promise_of(STRATEGIES[self.strategy]) == "budget"
        problem = question.problem(BUDGET if budgeted else None, self.rules)
        strategy: Any = named(self.strategy, problem.arms, np.array(question.theta))
        return replace(strategy, **dict(self.settings)), problem

    def refused(self) -> bool:
        """Tell whether the strategy cannot answer the question."""
        strategy, problem = self.made(QUESTIONS[self.question])
        suits = getattr(strategy, "suits", None)
        if suits is not None and not suits(problem.arms):
            return True
        try:
            strategy.start(problem)
        except NotYetSupportedError:
            return True
        except ProblemError:  # an indifference zone has to be given
            return promise_of(strategy) == "zone"
        return False

    def run(self, jostle: int | None = None) -> "Outcome":
        """Run it, with features that are a little different if asked for."""
        question = QUESTIONS[self.question]
        if jostle is not None:
            question = question.jostled(jostle)
        return outcome_of(*self.made(question), question, self.seed)


@dataclass(frozen=True)
class Outcome:
    """What came out of a run."""

    hash: str
    winner: int | None
    sizes: tuple[int, ...]
    survivors: tuple[tuple[int, ...], ...]

    def summary(self) -> dict[str, Any]:
        """Return what is written beside a hash."""
        pulls, batches = sum(self.sizes), len(self.sizes)
        return {"hash": self.hash, "pulls": pulls, "winner": self.winner, "batches": batches}

    def plain(self) -> dict[str, Any]:
        """Return what is the same on every machine if the run is clear."""
        survivors = [list(some) for some in self.survivors]
        return {"winner": self.winner, "sizes": list(self.sizes), "survivors": survivors}


def outcome_of(strategy: Strategy, problem: Problem, question: Question, seed: int) -> Outcome:
    """Run a strategy batch by batch, and once more in its compiled loop if it has one."""
    sizes: list[int] = []
    survivors: list[tuple[int, ...]] = []
    digest = hashlib.sha256()
    run, rewards = strategy.start(problem, seed=seed), question.draw(problem, seed)
    made = np.zeros(len(problem.arms), dtype=np.int64)
    while sum(sizes) < MAX_PULLS and len(sizes) < MAX_BATCHES and _may_go_on(run, problem, made):
        batch = run.next(question.size)
        order = getattr(batch, "order", None)  # which batches of earlier commits have not
        run.record(batch, rewards.batch(batch.counts) if order is None else rewards.sequence(order))
        made += batch.counts
        sizes.append(batch.size)
        survivors.append(run.verdict.survivors)
        _take(digest, [batch.counts.tolist(), whole(dict(batch.note)), _verdict(run)])
    winner = run.verdict.winner
    again = strategy.start(problem, seed=seed)
    if isinstance(again, Playable):
        _take(digest, again.play(question.draw(problem, seed), MAX_PLAYED).tolist())
        _take(digest, _verdict(again))
    return Outcome(digest.hexdigest(), winner, tuple(sizes), tuple(survivors))


def _may_go_on(run: Run, problem: Problem, made: np.ndarray) -> bool:
    most = getattr(problem, LIMIT)
    exhausted = most is not None and bool((made[problem.arms.measurable] >= most).all())
    return not (run.verdict.decided or exhausted)


def _verdict(run: Run) -> list[Any]:
    found = run.verdict
    return [found.winner, list(found.winners), list(found.survivors), found.pulls]


def _take(digest: Any, value: Any) -> None:
    digest.update(json.dumps(value, sort_keys=True, allow_nan=False).encode() + b"\n")


def whole(value: Any) -> Any:
    """Return a note without its words and without numbers that are not whole."""
    if isinstance(value, dict):
        return {k: whole(v) for k, v in value.items() if k != "words" and not _is_float(v)}
    if isinstance(value, list | tuple):
        return [whole(v) for v in value if not _is_float(v)]
    return value


def _is_float(value: Any) -> bool:
    return isinstance(value, float | np.floating)


def cases() -> Iterator[Case]:
    """Return all cases, also those that a strategy refuses."""
    for strategy in STRATEGIES:
        for settings in ({}, *SETTINGS.get(strategy, [])):
            for question in FEW if settings else QUESTIONS:
                for seed in SEEDS:
                    for rules in RULES or (1,) if strategy == "gauntlet" else (1,):
                        yield Case(strategy, tuple(settings.items()), question, seed, rules)


def outcomes() -> Iterator[tuple[Case, Outcome]]:
    """Run all cases that strategies do not refuse."""
    for case in cases():
        if not case.refused():
            yield case, case.run()


# ---- files and other versions ------------------------------------------------------------------


def write(file: Path) -> None:
    """Write the outcome of every case."""
    found = {case.name: outcome.summary() for case, outcome in outcomes()}
    file.write_text(json.dumps(found, indent=0) + "\n")


#: Whose runs are kept for all machines, with which seeds, and of how many batches at most.
CLEAR = (
    "gauntlet", "uniform", "g", "xy", "v", "xy-adaptive", "rage", "od-linbai", "gse", "peace",
    "g-budget",
)  # fmt: skip
CLEAR_SEEDS, CLEAR_BATCHES = SEEDS[:2], 20


def write_clear(file: Path, rules: int = 0) -> None:
    """Write the runs that small changes of the features leave as they are.

    With a number of rules only those of the gauntlet by these rules, beside what there is.
    """
    mine = f"gauntlet:rules={rules} "
    kept = json.loads(file.read_text()) if rules else {}
    found = {name: run for name, run in kept.items() if not name.startswith(mine)}
    for case in cases():
        if rules and (case.strategy != "gauntlet" or case.rules != rules):
            continue
        if case.strategy not in CLEAR or case.seed not in CLEAR_SEEDS or case.settings:
            continue
        if case.refused():
            continue
        outcome = case.run()
        if len(outcome.sizes) > CLEAR_BATCHES:
            continue
        if all(case.run(jostle).hash == outcome.hash for jostle in range(JOSTLED)):
            found[case.name] = outcome.plain()
    lines = [f"{json.dumps(name)}: {json.dumps(plain)}" for name, plain in found.items()]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def compare(commit: str) -> int:
    """Run all cases here and with a commit; print what differs and return how many do."""
    with tempfile.TemporaryDirectory() as folder:
        there = _outcomes_of(_installed(commit, Path(folder)), Path(folder) / "there.json")
        here = _outcomes_of(ROOT / "src", Path(folder) / "here.json")
    gone = [name for name in there if name not in here]
    changed = [name for name in there if name in here and here[name] != there[name]]
    for name in changed:
        print(f"differs: {name}: {_said(there[name])}; now {_said(here[name])}")
    for name in gone:
        print(f"gone: {name}")
    same, new = len(there) - len(gone) - len(changed), len(here.keys() - there.keys())
    print(
        f"{same} runs are as with {commit}, {len(changed)} differ, {len(gone)} are gone, "
        f"{new} are new."
    )
    return len(changed) + len(gone)


def _said(outcome: Mapping[str, Any]) -> str:
    return f"{outcome['pulls']} pulls in {outcome['batches']} batches, winner {outcome['winner']}"


def _installed(commit: str, folder: Path) -> Path:
    """Install a commit into a folder, as a wheel; hatchling comes from the package index."""
    source, target = folder / "source", folder / "installed"
    source.mkdir()
    archive = subprocess.run(
        ["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    subprocess.run(["tar", "-x", "-C", str(source)], input=archive.stdout, check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--target", str(target), str(source)], check=True)
    return target


def _outcomes_of(place: Path, file: Path) -> dict[str, dict[str, Any]]:
    """Run all cases in a process that imports finalist from a folder."""
    path = os.pathsep.join([str(place), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden_runs", "--write", str(file)],
        cwd=file.parent,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    if not Path(done.stdout.strip()).is_relative_to(place):
        raise RuntimeError(
            f"finalist was imported from {done.stdout.strip()} and not from {place}."
        )
    found: dict[str, dict[str, Any]] = json.loads(file.read_text())
    return found


def main() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--write", type=Path, metavar="FILE")
    choice.add_argument("--compare", metavar="COMMIT")
    choice.add_argument("--clear", type=int, nargs="?", const=0, metavar="RULES")
    words = parser.parse_args()
    if words.compare is not None:
        return 1 if compare(words.compare) else 0
    if words.clear is not None:
        write_clear(KEPT, words.clear)
        return 0
    write(words.write)
    print(Path(fl.__file__).parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
