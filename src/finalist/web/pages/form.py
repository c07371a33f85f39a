"""The form for a new study: its fields, and the settings they mean."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from finalist.arms import Arms
from finalist.errors import FinalistError, ProblemError
from finalist.planning import Plan
from finalist.problem import UNSET
from finalist.strategies import all_strategies
from finalist.study.rules import check_name
from finalist.web.arms_preview import Preview
from finalist.web.pages.fields import not_negative, one_of, percent, positive, read_size, whole
from finalist.web.workers import jobs
from finalist.web.workers.pool import PLAN, Workers

#: Fields for columns of the table that are not features, and what those hold.
ROLES = {"sigma_column": "sigma", "cost_column": "cost", "measurable_column": "measurable"}
#: Initial values of the fields.
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
#: A plan is simulated up to so many arms times squared rank.
MAX_WORK = 100_000
DRAWS, MAX_PULLS = 20, 300_000
#: Settings of a study that a plan does not take.
_UNPLANNED = ("budget", "max_pulls_per_arm", "metadata")


def strategies() -> list[str]:
    """Return the names of the strategies a study can use: those that need not know the truth."""
    return [name for name, cls in all_strategies().items() if not hasattr(cls, "knowing")]


class FormError(Exception):
    """Invalid fields, each with what is wrong."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(problems.values()))
        self.problems = dict(problems)


@dataclass(frozen=True)
class StudyDraft:
    """A study as the form describes it, before it is created.

    Attributes
    ----------
    name : str
    words : dict
        Keywords of `Study.create` besides the name and the arms.
    gap, guess : float or None
        For a plan: a lead that matters, and a guess of sigma if that is unknown.
    """

    name: str
    words: dict[str, Any]
    gap: float | None
    guess: float | None


def roles_of(values: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that are not features, by what they hold."""
    return {role: values[field] for field, role in ROLES.items() if values[field]}


def read_draft(values: Mapping[str, str], found: Preview) -> StudyDraft:
    """Read the fields, or raise with what is wrong with each; the table may hold noise and cost."""
    problems: dict[str, str] = {}

    def take(field: str, read: Callable[[str], Any], otherwise: Any = None) -> Any:
        text = values.get(field, "").strip()
        try:
            return read(text) if text else otherwise
        except ValueError as error:
            problems[field] = str(error)
            return otherwise

    noise = take("noise", one_of(NOISES), "gaussian")
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
        sigma = take("sigma", positive) if values.get("known") == "known" else None
        if sigma is None:
            problems.setdefault("sigma", "Write the size of the noise, or choose “unknown”.")
    elif noise == "sub-gaussian":
        problems["sigma"] = "With noise of this kind its size must be known; write it here."
    delta = take("delta", percent, 0.05)
    name = values.get("name", "").strip()
    try:
        check_name(name)
    except FinalistError as error:
        problems["name"] = str(error) if name else "Give the study a name."
    size = take("batch_size", read_size)
    draft = StudyDraft(
        name,
        {
            "sigma": sigma,
            "noise": noise,
            "delta": delta,
            "epsilon": take("epsilon", not_negative, 0.0),
            "top": take("top", whole, 1),
            "cost": 1.0 if found.cost is None else found.cost,
            "batch_intercept": values.get("batch_intercept") == "yes",
            "misspecification": take("misspecification", not_negative, 0.0),
            "objective": take("objective", one_of(("max", "min")), "max"),
            "budget": take("budget", whole),
            "max_pulls_per_arm": take("max_pulls_per_arm", whole),
            "strategy": take("strategy", one_of(strategies()), "gauntlet"),
            "metadata": {} if size is None else {"batch_size": size},
        },
        take("gap", positive),
        take("guess", positive),
    )
    if problems:
        raise FormError(problems)
    return draft


def make_plan(arms: Arms, draft: StudyDraft, workers: Workers) -> Plan:
    """Simulate the study before it begins."""
    given = {k: v for k, v in draft.words.items() if k not in _UNPLANNED}
    if draft.gap is None:
        raise FormError({"gap": "Write how large a lead has to be to matter; a plan needs it."})
    if given["sigma"] is None:
        if draft.guess is None:
            raise FormError({"guess": "Guess the size of the noise; a plan needs it."})
        given["sigma"] = draft.guess
    if len(arms) * arms.rank**2 > MAX_WORK:
        raise ProblemError(
            f"{len(arms):,} arms of rank {arms.rank} take too long to simulate here; use the "
            "command 'finalist plan'."
        )
    given |= {"gap": draft.gap, "draws": DRAWS, "max_pulls": MAX_PULLS}
    plan: Plan = workers.run(PLAN, jobs.plan, arms, given, tells=True)
    return plan
