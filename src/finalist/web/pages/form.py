"""The form of a new study: what somebody typed, and what it means."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from finalist.arms import Arms
from finalist.errors import FinalistError, ProblemError
from finalist.planning import Plan
from finalist.problem.noise import UNSET
from finalist.strategies import all_strategies
from finalist.study.rules import check_name
from finalist.web import format as words
from finalist.web.arms_preview import Preview
from finalist.web.pages.typed import read_size
from finalist.web.workers import jobs
from finalist.web.workers.pool import PLAN, Workers

#: Fields for columns of the table that are no features, and what those are for.
ROLES = {"sigma_column": "sigma", "cost_column": "cost", "measurable_column": "measurable"}
#: What the fields hold at first.
DEFAULTS: dict[str, str] = {
    "name": "",
    "noise": "gaussian",
    "known": "unknown",
    "sigma": "",
    "delta": "5",
    "epsilon": "0",
    "objective": "max",
    "batch_size": "",
    "budget": "",
    "max_pulls_per_arm": "",
    "strategy": "gauntlet",
    "gap": "",
    "guess": "",
    "top": "1",
    "intercept": "yes",
    "batch_intercept": "",
    "misspecification": "0",
    **dict.fromkeys(ROLES, ""),
}
NOISES = {
    "gaussian": "a number with bell-shaped noise",
    "sub-gaussian": "a number with any noise that is not wilder than sigma",
    "bernoulli": "success or failure, 1 or 0",
}
#: A plan is simulated up to so many arms times the square of their rank.
MAX_WORK = 100_000
DRAWS, MAX_PULLS = 20, 300_000


def strategies() -> list[str]:
    """Return the strategies that a study can use: those that need not know the truth."""
    return [name for name, cls in all_strategies().items() if not hasattr(cls, "knowing")]


class FormError(Exception):
    """Fields that are wrong: what is wrong with each."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(problems.values()))
        self.problems = dict(problems)


@dataclass(frozen=True)
class Wish:
    """What a new study should be.

    Attributes
    ----------
    name : str
    words : dict
        Of `Study.create` besides the name and the arms.
    gap, guess : float or None
        For the plan: a lead that matters, and a guess of sigma where it is unknown.
    """

    name: str
    words: dict[str, Any]
    gap: float | None
    guess: float | None


def roles_of(values: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that are no features, by what they are for."""
    return {role: values[field] for field, role in ROLES.items() if values[field]}


def read_wish(values: Mapping[str, str], found: Preview) -> Wish:
    """Read the fields, or say of each what is wrong with it; noise and cost may be in the table."""
    problems: dict[str, str] = {}

    def take(field: str, read: Callable[[str], Any], otherwise: Any = None) -> Any:
        text = values.get(field, "").strip()
        try:
            return read(text) if text else otherwise
        except ValueError as error:
            problems[field] = str(error)
            return otherwise

    noise = take("noise", _one_of(NOISES), "gaussian")
    sigma: Any = None
    if found.sigma is not None or values.get("known") == "column":
        sigma = found.sigma
        if found.sigma is None:
            problems["sigma"] = "Choose the column that holds the noise, or write its size."
        elif values.get("known") != "column":
            problems["sigma"] = "A column holds the noise of each arm; give the noise once."
    elif noise == "bernoulli":
        sigma = UNSET
    elif values.get("known") != "unknown":
        sigma = take("sigma", _positive) if values.get("known") == "known" else None
        if sigma is None:
            problems.setdefault("sigma", "Write the size of the noise, or choose “unknown”.")
    elif noise == "sub-gaussian":
        problems["sigma"] = "With noise of this kind its size must be known; write it here."
    delta = take("delta", _percent, 0.05)
    name = values.get("name", "").strip()
    try:
        check_name(name)
    except FinalistError as error:
        problems["name"] = str(error) if name else "Give the study a name."
    size = take("batch_size", read_size)
    wish = Wish(
        name,
        {
            "sigma": sigma,
            "noise": noise,
            "delta": delta,
            "epsilon": take("epsilon", _not_negative, 0.0),
            "top": take("top", _whole, 1),
            "cost": 1.0 if found.cost is None else found.cost,
            "batch_intercept": values.get("batch_intercept") == "yes",
            "misspecification": take("misspecification", _not_negative, 0.0),
            "objective": take("objective", _one_of(("max", "min")), "max"),
            "budget": take("budget", _whole),
            "max_pulls_per_arm": take("max_pulls_per_arm", _whole),
            "strategy": take("strategy", _one_of(strategies()), "gauntlet"),
            "metadata": {} if size is None else {"batch_size": size},
        },
        take("gap", _positive),
        take("guess", _positive),
    )
    if problems:
        raise FormError(problems)
    return wish


def make_plan(arms: Arms, wish: Wish, workers: Workers) -> Plan:
    """Simulate the study before it begins."""
    given = {k: v for k, v in wish.words.items() if k not in _UNPLANNED}
    if wish.gap is None:
        raise FormError({"gap": "Write how large a lead has to be to matter; a plan needs it."})
    if given["sigma"] is None:
        if wish.guess is None:
            raise FormError({"guess": "Guess the size of the noise; a plan needs it."})
        given["sigma"] = wish.guess
    if len(arms) * arms.rank**2 > MAX_WORK:
        raise ProblemError(
            f"{len(arms):,} arms of rank {arms.rank} take too long to simulate here; the command "
            "'finalist plan' does it."
        )
    given |= {"gap": wish.gap, "draws": DRAWS, "max_pulls": MAX_PULLS}
    plan: Plan = workers.run(PLAN, jobs.plan, arms, given, tells=True)
    return plan


#: What a plan does not take.
_UNPLANNED = ("budget", "max_pulls_per_arm", "metadata")


def _number(text: str) -> float:
    plain = text.replace(words.MINUS, "-")
    try:
        value = float(plain) if "_" not in plain and plain.isascii() else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        hint = " with a point, not a comma" if "," in text else ""
        raise ValueError(f"“{text[:40]}” is not a number{hint}.")
    return value


def _positive(text: str) -> float:
    value = _number(text)
    if value <= 0:
        raise ValueError(f"{text[:40]} is not above 0.")
    return value


def _not_negative(text: str) -> float:
    value = _number(text)
    if value < 0:
        raise ValueError(f"{text[:40]} is below 0.")
    return value


def _percent(text: str) -> float:
    value = _number(text.removesuffix("%").strip())
    if not 0 < value < 100:
        raise ValueError(f"{text[:40]} is not between 0 and 100.")
    return value / 100


def _whole(text: str) -> int:
    value = _number(text)
    if value != int(value) or not 1 <= value <= 10**9:
        raise ValueError(f"{text[:40]} is not a whole number, 1 or more.")
    return int(value)


def _one_of(known: Any) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in known:
            raise ValueError(f"“{text[:40]}” is not one of these.")
        return text

    return read
