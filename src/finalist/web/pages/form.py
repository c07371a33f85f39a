"""The form for a new study: its fields, and the settings they mean."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from finalist.arms import Arms
from finalist.arms.table import ArmsTable
from finalist.errors import FinalistError, ProblemError
from finalist.planning import (
    MarginPrices,
    ModelPrices,
    Plan,
    margin_prices,
    model_prices,
    plan,
)
from finalist.problem import UNSET
from finalist.problem.noise import NOISES
from finalist.settings import SETTINGS, Kind, Setting
from finalist.strategies import about, all_strategies
from finalist.study.rules import check_name
from finalist.tables import Dialect
from finalist.web.arms_preview import Reading
from finalist.web.pages.fields import (
    not_negative,
    one_of,
    percent,
    percent_or_none,
    positive,
    read_size,
    whole,
)
from finalist.web.workers.pool import PLAN, Workers

#: What says how the table is read; empty means that it is found out.
DIALECT = ("delimiter", "decimal", "encoding", "sheet")
#: Fields with this before the name of a column hold its role.
ROLE = "role:"
#: Settings of a problem that are a field of their own; sigma and cost come from elsewhere too.
_FIELDS = {name: one for name, one in SETTINGS.items() if one.kind != "each"}


def _shown(default: object) -> str:
    if default is None or isinstance(default, bool):
        return ""
    return default if isinstance(default, str) else f"{default:g}"


#: Initial values of the fields.
DEFAULTS: dict[str, str] = {
    **{name: _shown(one.default) for name, one in _FIELDS.items()},
    "delta": "5",  # per cent
    "check": "3",
    "name": "",
    "until": "",
    "known": "unknown",
    "sigma": "",
    "batch_size": "",
    "strategy": "gauntlet",
    "gap": "",
    "guess": "",
    "intercept": "yes",
    "model": "straight",
    "drop_incomplete": "",
    **dict.fromkeys(("candidate_column", "result_column", "known_only"), ""),  # of old results
    **dict.fromkeys(DIALECT, ""),
}
#: What a result is, by the model of its noise.
RESULTS = {name: model.result for name, model in NOISES.items()}
#: How methods are called on the page, where their names are those of papers.
METHODS = {"gauntlet": "test after every batch (the usual one)"}
#: Choices of how the file is read.
DIALECTS = {
    "delimiter": {",": "commas", ";": "semicolons", "tab": "tabs", "|": "vertical bars"},
    "decimal": {".": "decimal point", ",": "decimal comma"},
    "encoding": {"utf-8": "UTF-8", "windows-1252": "Windows-1252", "utf-16": "UTF-16"},
}
#: A plan is simulated up to so many arms times squared rank.
MAX_WORK = 100_000
DRAWS, MAX_PULLS = 20, 300_000
#: The margins that are compared here, in leads: smaller ones take long to simulate.
MARGINS = (0.5, 1.0, 2.0)
#: Further leads are simulated up to so many arms times squared rank.
MAX_LEADS = 10_000


def strategies() -> list[str]:
    """Return the names of the strategies a study can use: those that need not know the truth."""
    return [name for name, cls in all_strategies().items() if about(cls).knowing is None]


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
    words : dict
        Keywords of `Study.create` besides the name and the arms.
    gap, guess : float or None
        For a plan: a lead that matters, and a guess of sigma if that is unknown.
    """

    name: str
    words: dict[str, Any]
    gap: float | None
    guess: float | None


def reading_of(values: Mapping[str, str], roles: Mapping[str, str]) -> Reading:
    """Return how the fields say that the table is to be read."""
    dialect = Dialect(*(values[field] or None for field in DIALECT))
    return Reading(
        roles,
        dialect,
        values["model"] or "straight",
        values["intercept"] != "no",
        values["drop_incomplete"] == "yes",
    )


def _reader(setting: Setting) -> Callable[[str], Any]:
    """Return what reads a setting from its field."""
    if setting.name == "delta":
        return percent
    if setting.name == "check":
        return percent_or_none
    readers: dict[Kind, Callable[[str], Any]] = {
        "number": not_negative,
        "whole": whole,
        "flag": lambda text: text == "yes",
        "choice": one_of(setting.choices),
        "text": str,
    }
    return readers[setting.kind]


def read_draft(values: Mapping[str, str], found: ArmsTable) -> StudyDraft:
    """Read the fields, or raise with what is wrong with each; the table may hold noise and cost."""
    problems: dict[str, str] = {}

    def take(field: str, read: Callable[[str], Any], otherwise: Any = None) -> Any:
        text = values.get(field, "").strip()
        try:
            return read(text) if text else otherwise
        except ValueError as error:
            problems[field] = str(error)
            return otherwise

    words = {name: take(name, _reader(one), one.usual) for name, one in _FIELDS.items()}
    if values.get("until") == "budget" and not values.get("budget", "").strip():
        problems["budget"] = (
            "Write how many measurements there are, or choose “when it is certain”."
        )
    elif values.get("until") == "certain" and values.get("budget", "").strip():
        problems["budget"] = "You chose “when it is certain”: leave the number out, or choose it."
    sigma: Any = None
    if found.sigma is not None or values.get("known") == "column":
        sigma = found.sigma
        if found.sigma is None:
            problems["sigma"] = "Choose the column that holds the noise, or write its size."
        elif values.get("known") != "column":
            problems["sigma"] = "A column holds the noise of each candidate; give the noise once."
    elif words["noise"] == "bernoulli":
        sigma = UNSET
    elif values.get("known") != "unknown":
        sigma = take("sigma", positive) if values.get("known") == "known" else None
        if sigma is None:
            problems.setdefault("sigma", "Write the size of the noise, or choose “unknown”.")
    elif values.get("sigma", "").strip():
        problems["sigma"] = "You chose “unknown”: leave the number out, or choose “known”."
    elif words["noise"] == "sub-gaussian":
        problems["sigma"] = "With noise of this kind its size must be known; write it here."
    name = values.get("name", "").strip()
    try:
        check_name(name)
    except FinalistError as error:
        problems["name"] = str(error) if name else "Give the study a name."
    size = take("batch_size", read_size)
    draft = StudyDraft(
        name,
        {
            **words,
            "sigma": sigma,
            "cost": 1.0 if found.cost is None else found.cost,
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
    leads = len(arms) * arms.rank**2 <= MAX_LEADS and draft.words["budget"] is None
    given = _simulated(arms, draft) | {"leads": leads}
    return workers.run(PLAN, partial(plan, arms, **given), tells=True)


def make_prices(arms: Arms, draft: StudyDraft, workers: Workers) -> ModelPrices:
    """Simulate the study with each model."""
    if len(arms) ** 3 > MAX_WORK:
        raise ProblemError(
            f"{len(arms):,} candidates take too long to compare models here; use the command "
            "'finalist plan' with --models."
        )
    given = _simulated(arms, draft)
    return workers.run(PLAN, partial(model_prices, arms, **given), tells=True)


def make_margins(arms: Arms, draft: StudyDraft, workers: Workers) -> MarginPrices:
    """Simulate the study without a margin and with several."""
    given = _simulated(arms, draft) | {"draws": DRAWS // 2}  # of eight questions
    given["margins"] = [step * given["gap"] for step in MARGINS]
    return workers.run(PLAN, partial(margin_prices, arms, **given), tells=True)


def _simulated(arms: Arms, draft: StudyDraft) -> dict[str, Any]:
    """Return what a simulation of the study needs; refuse one that takes too long."""
    given = {k: v for k, v in draft.words.items() if k != "metadata"}
    if draft.gap is None:
        raise FormError({"gap": "Write how large a lead has to be to matter; a plan needs it."})
    if given["sigma"] is None:
        if draft.guess is None:
            raise FormError({"guess": "Guess the size of the noise; a plan needs it."})
        given["guess"] = draft.guess
    if len(arms) * arms.rank**2 > MAX_WORK:
        raise ProblemError(
            f"{len(arms):,} candidates with {arms.rank} numbers to learn take too long to simulate "
            "here; use the command 'finalist plan'."
        )
    size = draft.words["metadata"].get("batch_size")
    return {**given, "gap": draft.gap, "draws": DRAWS, "max_pulls": MAX_PULLS, "size": size}
