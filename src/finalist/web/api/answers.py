"""Response bodies of the API, for its OpenAPI description."""

from dataclasses import fields
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, create_model

from finalist.planning import LeadRow, MarginPrices
from finalist.planning.result import Unit
from finalist.study import ArmStatus, Batch, Effect, Pull, Status
from finalist.web.api.arms import GivenBody

Verdict = Literal["continue", "winner", "uncertain", "undecided"]


def described(cls: type, doc: str, **others: Any) -> type[BaseModel]:
    """Return the model of a dataclass that is sent as JSON; `others` are fields that differ.

    Fields that do not count in comparisons are not sent.
    """
    hints = get_type_hints(cls)
    types = {field.name: hints[field.name] for field in fields(cls) if field.compare} | others
    words: dict[str, Any] = {name: (kind, ...) for name, kind in types.items()}
    return create_model(f"{cls.__name__}Answer", __doc__=doc, **words)


class Line(BaseModel):
    """A study in the list; `error` says why it cannot be read, and is null if it can.

    `risk` bounds the probability that the winner is wrong; without a guarantee it is null, and
    `winner` is a recommendation.
    """

    number: int
    name: str
    created: str
    strategy: str
    last: int
    arms: int | None
    candidates: int | None
    survivors: int | None
    pulls: int | None
    open_pulls: int | None
    verdict: Verdict | None
    certain: bool | None
    winner: str | None
    winners: list[str] | None
    risk: float | None
    sentence: str | None
    error: str | None


class StudiesAnswer(BaseModel):
    """Studies, by name."""

    studies: list[Line]


class StudyAnswer(BaseModel):
    """A study as it was created; `last` is the number of its last event."""

    number: int
    name: str
    created: str
    last: int
    settings: dict[str, Any]


class OneArm(BaseModel):
    """An arm with all its names."""

    names: list[str]
    features: list[float]
    measurable: bool
    candidate: bool


class ArmsAnswer(BaseModel):
    """The arms as they are now."""

    feature_names: list[str]
    arms: list[OneArm]
    given: GivenBody


PullAnswer = described(Pull, "A measurement to make.")
BatchAnswer = described(
    Batch,
    "Pulls to measure; if there are none, `reason` says why.",
    pulls=list[PullAnswer],
    reason=str,
)


class ToldAnswer(BaseModel):
    """How many rewards were new; they are stored on disk.

    `again`: how many pulls failed and are measured again.
    `repeated`: a call with the same `Idempotency-Key` was made before; `new` and `again` are those
    of that call.
    `risk` as in the status: without it, `winner` is a recommendation.
    """

    new: int
    again: int
    repeated: bool
    verdict: Verdict
    certain: bool
    winner: str | None
    risk: float | None


class TakenBackResult(BaseModel):
    """A result that was taken back; its pull is open again."""

    pull_id: int
    arm: str
    reward: float


class TakenBackAnswer(BaseModel):
    """What was taken back. Telling `results` again undoes it."""

    results: list[TakenBackResult]


class ForecastAnswer(BaseModel):
    """Pulls still needed, of each draw in `pulls`; null means more than `cap`."""

    median: float | None
    low: float | None
    high: float | None
    cap: int
    words: str
    remedy: str | None
    pulls: list[float | None]


EffectAnswer = described(Effect, "What one column or level does to the mean of a result.")
ArmStatusAnswer = described(ArmStatus, "One arm: its estimate, and the evidence against it.")
StatusAnswer = described(
    Status,
    "What is certain, as in `fl.Study.status`, and the number of the last event.",
    last=int,
    forecast=ForecastAnswer | None,
    arms=list[ArmStatusAnswer],
    effects=list[EffectAnswer],
)


class EvidenceAnswer(BaseModel):
    """Evidence against each arm after each batch, since the arms last changed."""

    arms: list[str]
    pulls: list[int]
    evidence: list[list[float]]


class EventsAnswer(BaseModel):
    """What happened, oldest first."""

    events: list[dict[str, Any]]


class WordsAnswer(BaseModel):
    """What was done, in words."""

    words: str


class CountAnswer(BaseModel):
    """How many."""

    count: int


class CellAnswer(BaseModel):
    """A cell; `bad` if it should be a number but is not."""

    text: str
    bad: bool


class RowAnswer(BaseModel):
    """A row, with the line of the file on which it starts."""

    line: int
    cells: list[CellAnswer]


class RoleAnswer(BaseModel):
    """What a column is for, and why; `question` has to be answered if it is not empty."""

    role: str
    why: str
    question: str


class PreviewAnswer(BaseModel):
    """A preview of a table of arms; `problem` is null if it can be used.

    `rows` are the first ones, and those with a bad cell; `duplicates` are names with the same
    features, which are one arm.
    """

    columns: list[str]
    roles: list[RoleAnswer]
    read_as: str
    remarks: list[str]
    name_column: str | None
    feature_columns: list[str]
    rows: list[RowAnswer]
    row_count: int
    arms: int | None
    rank: int | None
    duplicates: list[list[str]]
    problem: str | None


class PullsAnswer(BaseModel):
    """How many pulls simulated runs needed; null means more than `max_pulls`."""

    median: float | None
    low: float | None
    high: float | None
    mean: float | None
    undecided: int
    wrong: int
    right: int | None = None
    near: int | None = None


class PlanRowAnswer(PullsAnswer):
    """What one strategy needs."""

    name: str


class MarginPriceAnswer(PullsAnswer):
    """What one margin (0: none) needs with one lead."""

    margin: float
    lead: float


MarginsAnswer = described(
    MarginPrices,
    "How many pulls to expect of each margin; `words` speaks of the one that is `chosen`.",
    words=str,
    rows=list[MarginPriceAnswer],
)
LeadAnswer = described(
    LeadRow,
    "How many measurements to expect at one lead; `fixed` with a fixed number and one test.",
    rows=list[PlanRowAnswer],
)


class PlanAnswer(BaseModel):
    """How many measurements to expect; beside them a fixed number with one test at the end."""

    words: str
    gap: float | None
    sigma: float | list[float]
    delta: float
    draws: int
    max_pulls: int
    seed: int
    lower_bound: float | None
    unit: Unit
    budget: int | None = None
    within: float | None = None
    size: int | None
    known: bool
    fixed: float | None
    by_lead: list[LeadAnswer]
    rows: list[PlanRowAnswer]
