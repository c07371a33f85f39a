"""Request bodies of the API and their limits; the library checks what they mean."""

import json
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    create_model,
)
from pydantic import field_validator as checked_field
from pydantic import model_validator as checked_model

from finalist.arms import Arms
from finalist.arms.inputs import check_columns, checked
from finalist.arms.parts import any_of, as_mask
from finalist.errors import ArmsError
from finalist.problem import UNSET, PerArm, Unset
from finalist.problem.noise import missing_sigma, takes_sigma
from finalist.settings import SETTINGS, Kind, Setting
from finalist.web.uploads import MAX_ARMS, MAX_RESULTS, read_arms_table

#: The largest integer that every JSON parser reads exactly.
LARGEST = 2**53 - 1
MAX_CELLS = 1_000_000
#: Pulls issued at a time.
MAX_PULLS = 100_000
#: Characters of the metadata as JSON, and its levels of nesting.
_MAX_METADATA, _MAX_DEPTH = 65_536, 16

Text = Annotated[StrictStr, Field(min_length=1, max_length=10_000)]
Name = Annotated[StrictStr, Field(min_length=1, max_length=1_000)]
Number = Annotated[StrictFloat, Field(allow_inf_nan=False)]
Whole = Annotated[StrictInt, Field(ge=1, le=LARGEST)]


class Body(BaseModel):
    """A body: unknown keys are rejected."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


Roles = Annotated[list[StrictBool], Field(max_length=MAX_ARMS)]
#: A positive number for all arms, or one per arm.
Each = (
    Annotated[Number, Field(gt=0)]
    | Annotated[list[Annotated[Number, Field(gt=0)]], Field(max_length=MAX_ARMS)]
)


class ArmsBody(Body):
    """Arms, with a row of features each; without features they are unrelated."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "names": ["oak", "ash", "elm"],
                    "feature_names": ["height", "age"],
                    "features": [[1.0, 0.2], [0.4, 0.9], [0.7, 0.7]],
                },
                {"names": ["red", "green", "blue"]},
            ]
        }
    )
    names: Annotated[list[Name], Field(max_length=MAX_ARMS)] | None = None
    features: (
        Annotated[list[Annotated[list[Number], Field(max_length=1000)]], Field(max_length=MAX_ARMS)]
        | None
    ) = None
    feature_names: Annotated[list[Name], Field(max_length=1000)] | None = None
    measurable: Roles | None = Field(None, description="Which rows can be pulled; all if null.")
    candidate: Roles | None = Field(None, description="Which rows can win; all if null.")

    def to_arms(self) -> Arms:
        """Return the arms with their roles; raises if the library rejects them."""
        arms = self._plain_arms()
        masks = {"measurable": self.measurable, "candidate": self.candidate}
        owner = arms._parts.owners()
        roles = [any_of(as_mask(name, mask, len(owner)), owner) for name, mask in masks.items()]
        return arms._marked(*roles)

    def _plain_arms(self) -> Arms:
        if self.features is None:
            if not self.names or self.feature_names:
                raise ArmsError("give features, or only names if the arms are unrelated.")
            if len(self.names) > 2000:
                raise ArmsError(
                    f"{len(self.names):,} arms without features are too many; the limit is 2,000. "
                    "Describe them by features."
                )
            return Arms.unstructured(self.names)
        lengths = {len(row) for row in self.features}
        if len(lengths) != 1:
            raise ArmsError("give at least one arm, and the same number of features for each.")
        if len(self.features) * max(lengths) > MAX_CELLS:
            raise ArmsError(f"the arms have more than {MAX_CELLS:,} numbers.")
        if self.feature_names is None:
            return Arms(np.array(self.features), self.names)
        columns = check_columns(self.feature_names, ArmsError, "")
        if lengths != {len(columns)}:
            raise ArmsError(f"there are {len(columns)} feature names for {max(lengths)} features.")
        return Arms._from_table(checked(np.array(self.features, float), self.names, columns))


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
    return kind | None if setting.optional else kind, Field(
        setting.default, description=description
    )


_FIELDS: dict[str, Any] = {name: _field(one) for name, one in SETTINGS.items()}
SettingsBody = create_model("SettingsBody", __base__=Body, **_FIELDS)


class Question(SettingsBody):
    """What a study asks, as in `fl.Study.create` and `fl.plan`."""

    arms: ArmsBody | None = None
    arms_csv: Annotated[StrictStr, Field(max_length=10 * 2**20)] | None = Field(
        None, description="The arms as the text of a CSV file, instead of `arms`."
    )
    strategy: Annotated[StrictStr, Field(max_length=100)] = "gauntlet"

    @checked_model(mode="after")
    def _one_of_two(self) -> "Question":
        if (self.arms is None) == (self.arms_csv is None):
            raise ValueError("give the arms once, as `arms` or as `arms_csv`")
        return self

    def to_arms(self) -> Arms:
        """Return the arms, in whichever form they were given."""
        if self.arms is not None:
            return self.arms.to_arms()
        assert self.arms_csv is not None
        return read_arms_table(self.arms_csv.encode(), "arms_csv").arms

    def words(self) -> dict[str, Any]:
        """Return all settings as keywords of `Study.create` or `fl.plan`."""
        given = {word: getattr(self, word) for word in type(self).model_fields if word not in _OWN}
        return {**given, "sigma": self._sigma()}

    def _sigma(self) -> PerArm | Unset | None:
        """Return the size of the noise; a default would silently invalidate all results."""
        sigma: PerArm | None = self.sigma
        if sigma is not None:
            return sigma
        if not takes_sigma(self.noise):
            return UNSET
        if "sigma" not in self.model_fields_set:
            raise missing_sigma(
                unknown="null if it is unknown: the gauntlet then estimates Gaussian noise from "
                "the rewards; a plan needs a guess",
                noise=self.noise,
            )
        return None


#: Fields of a question that are not keywords of the library.
_OWN = frozenset({"arms", "arms_csv", "name", "settings"})


class MoreArms(ArmsBody):
    """Arms to add, with their noise and cost if those differ between arms."""

    sigma: Each | None = None
    cost: Each | None = None


_EXAMPLE_ARMS: dict[str, Any] = {"names": ["red", "green", "blue"]}


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


class PlanBody(Question):
    """A plan to simulate before the first pull."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"arms": _EXAMPLE_ARMS, "sigma": 1.0, "gap": 0.5}]}
    )
    gap: Annotated[Number, Field(gt=0)] = Field(description="How far the best arm leads.")
    draws: Annotated[StrictInt, Field(ge=1, le=100)] = 50
    seed: Annotated[StrictInt, Field(ge=0, le=LARGEST)] = 0
    against: (
        Annotated[list[Annotated[StrictStr, Field(max_length=100)]], Field(max_length=3)] | None
    ) = Field(None, description="Strategies to compare with; if null, uniform where possible.")
    max_pulls: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = 1_000_000


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
    reward: Number
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


class NoteBody(Body):
    """A remark for the log."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "a new lamp"}]})
    text: Text


class ForkBody(Body):
    """The name of the new study, and the batch to go back to."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "again", "until": 1}]})
    name: Name
    until: Whole


class WithdrawBody(Body):
    """Arms to withdraw."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"names": ["blue"]}]})

    names: Annotated[list[Name], Field(min_length=1, max_length=MAX_ARMS)]


class Earlier(Body):
    """A measurement made before the study."""

    arm: Name
    reward: Number


class HistoryBody(Body):
    """Measurements made before the study; they guide the choice but are never tested."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"measurements": [{"arm": "red", "reward": 0.5}]}]}
    )

    measurements: Annotated[list[Earlier], Field(min_length=1, max_length=MAX_RESULTS)]
