"""What the API answers, for its description."""

from typing import Any, Literal

from pydantic import BaseModel

Verdict = Literal["continue", "winner", "uncertain", "undecided"]


class Line(BaseModel):
    """A study in the list; `error` says why it cannot be read, and is null if it can.

    `risk` is the probability with which the winner is wrong, at most; null without a guarantee,
    and then `winner` is a recommendation.
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


class PullAnswer(BaseModel):
    """A measurement to make."""

    pull_id: int
    arm: str
    worker: str | None


class BatchAnswer(BaseModel):
    """Pulls to measure; none when there is nothing to do, and `reason` says why."""

    pulls: list[PullAnswer]
    state: Literal["open", "waiting", "decided", "stopped", "budget", "exhausted"]
    batch: int
    left: int
    words: str
    reason: str


class ToldAnswer(BaseModel):
    """How many rewards were new; they are on the disk.

    `repeated`: this call, with the same `Idempotency-Key`, was made before; `new` is what the
    first one was answered. `risk` as in the status: without it, `winner`
    is a recommendation.
    """

    new: int
    repeated: bool
    verdict: Verdict
    certain: bool
    winner: str | None
    risk: float | None


class ForecastAnswer(BaseModel):
    """Pulls that are still needed, of each draw in `pulls`; null is more than `cap`."""

    median: float | None
    low: float | None
    high: float | None
    cap: int
    words: str
    pulls: list[float | None]


class ArmStatusAnswer(BaseModel):
    """One arm: what is known, and what speaks against it."""

    name: str
    pulls: int
    estimate: float | None
    low: float | None
    high: float | None
    evidence: float | None
    p_value: float | None
    rival: str | None
    survives: bool
    measurable: bool
    candidate: bool


class StatusAnswer(BaseModel):
    """What is certain; the same as `fl.Study.status`, and the number of the last event."""

    last: int
    name: str
    verdict: Verdict
    certain: bool
    winner: str | None
    winners: list[str]
    top: int
    leader: str | None
    survivors: list[str]
    risk: float | None
    recommendation: str | None
    error_estimate: float | None
    certainty: float | None
    advice: str | None
    sentence: str
    pulls: int
    open_pulls: int
    batches: int
    budget_left: int | None
    assumptions: list[str]
    warnings: list[str]
    doubts: list[str]
    forecast: ForecastAnswer | None
    arms: list[ArmStatusAnswer]


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
    """A cell; `bad` if it should be a number and is none."""

    text: str
    bad: bool


class RowAnswer(BaseModel):
    """A row, with the line of the file on which it starts."""

    line: int
    cells: list[CellAnswer]


class PreviewAnswer(BaseModel):
    """A table of arms before it is used; `problem` is null if it can be.

    `rows` are the first ones, and those with a bad cell; `duplicates` are names with the same
    features, which are one arm.
    """

    columns: list[str]
    name_column: str | None
    feature_columns: list[str]
    rows: list[RowAnswer]
    row_count: int
    arms: int | None
    rank: int | None
    duplicates: list[list[str]]
    problem: str | None


class PlanRowAnswer(BaseModel):
    """What one strategy needs; null is more than `max_pulls`."""

    name: str
    median: float | None
    low: float | None
    high: float | None
    mean: float | None
    undecided: int
    wrong: int


class PlanAnswer(BaseModel):
    """How many pulls to expect."""

    words: str
    gap: float | None
    sigma: float | list[float]
    delta: float
    draws: int
    max_pulls: int
    seed: int
    lower_bound: float | None
    unit: Literal["pulls", "units of cost"]
    rows: list[PlanRowAnswer]
