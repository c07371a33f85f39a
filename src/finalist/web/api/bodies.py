"""Request bodies of the API and their limits; the library checks what they mean."""

import json
from typing import Annotated, Any, Literal

from pydantic import (
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    create_model,
)
from pydantic import field_validator as checked_field
from pydantic import model_validator as checked_model

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.problem import UNSET, PerArm, Unset
from finalist.problem.noise import missing_sigma, takes_sigma
from finalist.settings import SETTINGS, Kind, Setting
from finalist.web.api.arms import (
    LARGEST,
    ArmsBody,
    Body,
    Each,
    Name,
    Number,
    TableBody,
    Text,
    Whole,
)
from finalist.web.uploads import MAX_ARMS, MAX_RESULTS, read_arms_table

#: Pulls issued at a time.
MAX_PULLS = 100_000
#: Characters of the metadata as JSON, and its levels of nesting.
_MAX_METADATA, _MAX_DEPTH = 65_536, 16


_KINDS: dict[Kind, Any] = {
    "number": Number,
    "whole": StrictInt,
    "flag": StrictBool,
    "each": Each,
    "text": Text,
}


def _field(setting: Setting) -> tuple[Any, Any]:
    """Return the type and the default of a setting in a body."""
    kind = Literal[setting.choices] if setting.choices else _KINDS[setting.kind]
    if setting.kind in ("number", "whole"):
        most = LARGEST if setting.kind == "whole" else None
        bounds = Field(gt=setting.above, ge=setting.least, lt=setting.below, le=most)
        kind = Annotated[kind, bounds]
    description = f"{setting.help}."
    return kind | None if setting.optional else kind, Field(setting.usual, description=description)


_FIELDS: dict[str, Any] = {name: _field(one) for name, one in SETTINGS.items()}
SettingsBody = create_model("SettingsBody", __base__=Body, **_FIELDS)


class Question(SettingsBody):
    """What a study asks, as in `fl.Study.create` and `fl.plan`."""

    arms: ArmsBody | None = None
    arms_csv: Annotated[StrictStr, Field(max_length=10 * 2**20)] | None = Field(
        None, description="The text of a CSV file whose columns are features, instead of `arms`."
    )
    table: TableBody | None = None
    strategy: Annotated[StrictStr, Field(max_length=100)] = "gauntlet"

    @checked_model(mode="after")
    def _one_of_two(self) -> "Question":
        if sum(form is not None for form in (self.arms, self.arms_csv, self.table)) != 1:
            raise ValueError("give the arms once, as `arms`, `arms_csv` or `table`")
        return self

    def read(self) -> tuple[Arms, dict[str, Any]]:
        """Return the arms in whichever form they were given, and keywords of the library."""
        words = {word: getattr(self, word) for word in type(self).model_fields if word not in _OWN}
        if self.table is not None:
            found = self.table.read()
            if found.cost is not None:
                words["cost"] = found.cost
            return found.arms, {**words, "sigma": self._sigma(found.sigma)}
        if self.arms is not None:
            arms = self.arms.to_arms()
        else:
            assert self.arms_csv is not None
            arms = read_arms_table(self.arms_csv.encode(), "arms_csv").arms
        return arms, {**words, "sigma": self._sigma()}

    def _sigma(self, column: PerArm | None = None) -> PerArm | Unset | None:
        """Return the size of the noise; a default would silently invalidate all results."""
        sigma: PerArm | None = self.sigma if column is None else column
        if column is not None and self.sigma is not None:
            raise ProblemError("a column of the table and `sigma` both give the noise; use one.")
        if sigma is not None:
            return sigma
        if not takes_sigma(self.noise):
            return UNSET
        if "sigma" not in self.model_fields_set:
            raise missing_sigma(
                unknown="null if it is unknown: the gauntlet then estimates Gaussian noise from "
                "the results; a plan needs a guess",
                noise=self.noise,
            )
        return None


#: Fields of a question that are not keywords of the library.
_OWN = frozenset({"arms", "arms_csv", "table", "name", "settings", "history"})


class MoreArms(ArmsBody):
    """Arms to add, with their noise and cost if those differ between arms."""

    sigma: Each | None = None
    cost: Each | None = None


_EXAMPLE_ARMS: dict[str, Any] = {"names": ["red", "green", "blue"]}


class Earlier(Body):
    """A measurement made before the study."""

    arm: Name
    reward: Number


class NewStudy(Question):
    """A study to create."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "colours", "arms": _EXAMPLE_ARMS, "sigma": 1.0, "delta": 0.05}]
        }
    )
    name: Name
    settings: Annotated[
        dict[Annotated[str, Field(max_length=100)], StrictBool | StrictInt | Number | Text | None],
        Field(max_length=30),
    ] = Field(default={}, description="Settings of the strategy other than its defaults.")
    seed: Annotated[StrictInt, Field(ge=0, le=LARGEST)] | None = None
    metadata: dict[str, Any] = Field(default={})
    history: Annotated[list[Earlier], Field(max_length=MAX_RESULTS)] = Field(
        default=[], description="What was measured before; it guides and is never tested."
    )

    @checked_field("metadata")
    @classmethod
    def _small(cls, metadata: dict[str, Any]) -> dict[str, Any]:
        if _depth(metadata) > _MAX_DEPTH:
            raise ValueError(f"metadata is nested deeper than {_MAX_DEPTH} levels")
        if len(json.dumps(metadata)) > _MAX_METADATA:
            raise ValueError(f"metadata has more than {_MAX_METADATA:,} characters")
        return metadata


def _depth(value: Any) -> int:
    """Return how deep lists and dicts are nested, counting up to one level too many."""
    level, depth = [value], 0
    while level and depth <= _MAX_DEPTH:
        inner = [
            v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list)
        ]
        level, depth = [item for items in inner for item in items], depth + bool(inner)
    return depth


class Simulated(Question):
    """What is simulated before the first pull, with a lead of the best arm."""

    gap: Annotated[Number, Field(gt=0)] = Field(description="How far the best arm leads.")
    seed: Annotated[StrictInt, Field(ge=0, le=LARGEST)] = 0
    max_pulls: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = 1_000_000
    size: Annotated[StrictInt, Field(ge=1, le=MAX_PULLS)] | None = Field(
        None, description="Measurements of a batch; if null, the strategy's own sizes."
    )
    guess: Annotated[Number, Field(gt=0)] | None = Field(
        None, description="The size of the noise to simulate, if `sigma` is null: unknown."
    )


class PlanBody(Simulated):
    """A plan to simulate before the first pull."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"arms": _EXAMPLE_ARMS, "sigma": 1.0, "gap": 0.5}]}
    )
    draws: Annotated[StrictInt, Field(ge=1, le=100)] = 50
    against: (
        Annotated[list[Annotated[StrictStr, Field(max_length=100)]], Field(max_length=3)] | None
    ) = Field(None, description="Strategies to compare with; if null, uniform where possible.")
    within: Annotated[Number, Field(ge=0)] | None = Field(
        None, description="With a budget: how close to the best is counted; by default the gap."
    )
    leads: Annotated[list[Annotated[Number, Field(gt=0)]], Field(max_length=4)] = Field(
        default=[], description="Further leads to simulate beside the gap."
    )


class MarginsBody(Simulated):
    """Margins to compare before the first pull; `epsilon` is one of them if it is not 0."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"arms": _EXAMPLE_ARMS, "sigma": 1.0, "gap": 0.5, "draws": 5}]
        }
    )
    margins: (
        Annotated[list[Annotated[Number, Field(gt=0)]], Field(min_length=1, max_length=6)] | None
    ) = Field(None, description="If null, a quarter, half, all and twice of the gap.")
    draws: Annotated[StrictInt, Field(ge=1, le=50)] = 20


class AskBody(Body):
    """How many pulls can be measured now, and by whom."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"size": 12, "worker": "robot 1"}]})
    size: Annotated[StrictInt, Field(ge=1, le=MAX_PULLS)] | None = None
    worker: Name | None = None


class Result(Body):
    """A reward; `arm` is checked against the pull if it is given."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"pull_id": 1, "reward": 0.5, "arm": "red", "notes": {"lamp": "2"}}]
        }
    )

    pull_id: Whole
    reward: Number | Literal["failed"] = Field(
        description="What was measured; failed if the measurement failed: it is made again."
    )
    arm: Text | None = None
    notes: (
        Annotated[
            dict[Annotated[str, Field(max_length=200)], Annotated[str, Field(max_length=10_000)]],
            Field(max_length=50),
        ]
        | None
    ) = Field(None, description="Anything to keep with it, as in further columns of a table.")


class TellBody(Body):
    """Rewards: all of them are stored, or none."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"results": [{"pull_id": 1, "reward": 0.5}, {"pull_id": 2, "reward": 0.25}]}
            ]
        }
    )
    results: Annotated[list[Result], Field(min_length=1, max_length=MAX_RESULTS)]


class ReasonBody(Body):
    """The reason, which is kept in the log."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "the plate fell"}]})
    reason: Text


class AmendBody(ReasonBody):
    """The right reward, and the reason."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"reward": 0.75, "reason": "misread the scale"}]}
    )
    reward: Number


class UndoBody(Body):
    """The event that brought the results: then those of another are never taken back."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"event": None}]})
    event: Annotated[StrictInt, Field(ge=1, le=LARGEST)] | None = None


class NoteBody(Body):
    """A remark for the log."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "a new lamp"}]})
    text: Text


class ForkBody(Body):
    """The name of the new study, and the batch to go back to, or another model or margin."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "again", "until": 1}]})
    name: Name
    until: Whole | None = None
    model: Literal["straight", "bending", "surface", "separate"] | None = None
    epsilon: Annotated[Number, Field(ge=0)] | None = Field(
        None, description="A margin: so far from the best is good enough; 0 for none."
    )


class BudgetBody(Body):
    """The most pulls in all; null for no limit."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"budget": 80}]})

    budget: Annotated[StrictInt, Field(ge=1, le=LARGEST)] | None


class WithdrawBody(Body):
    """Arms to withdraw."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"names": ["blue"]}]})

    names: Annotated[list[Name], Field(min_length=1, max_length=MAX_ARMS)]


class HistoryBody(Body):
    """Measurements made before the study; they guide the choice but are never tested."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"measurements": [{"arm": "red", "reward": 0.5}]}]}
    )

    measurements: Annotated[list[Earlier], Field(min_length=1, max_length=MAX_RESULTS)]
