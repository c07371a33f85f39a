"""Arms in requests: as features, with the table they were made of, or as a table alone."""

from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr
from pydantic import model_validator as checked_model

from finalist.arms import Arms
from finalist.arms.inputs import check_columns, checked
from finalist.arms.parts import any_of, as_mask
from finalist.arms.table import ArmsTable, read_candidates
from finalist.errors import ArmsError
from finalist.study.tables import checked_given
from finalist.tables import Dialect
from finalist.web.arms_preview import unpack
from finalist.web.uploads import LIMITS, MAX_ARMS

#: The largest integer that every JSON parser reads exactly.
LARGEST = 2**53 - 1
MAX_CELLS = 1_000_000
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


#: A cell of a table.
Cell = StrictBool | StrictInt | Number | Annotated[StrictStr, Field(max_length=10_000)] | None


class RecipeBody(Body):
    """How features were made of the columns of a table."""

    name: Literal["given", "straight", "bending", "surface", "separate", "formula"]
    columns: Annotated[list[Name], Field(max_length=1000)]
    text: Annotated[StrictStr, Field(max_length=10_000)] = ""
    constant: StrictBool = False
    levels: dict[Name, Annotated[list[Name], Field(max_length=1000)]] = {}
    centres: dict[Name, Number] = {}
    squares: Annotated[list[Name], Field(max_length=1000)] = []


class GivenBody(Body):
    """The table from which arms were made, and its recipe.

    `table` has pairs of a column and its cells, a row for every name; cells that are null are the
    feature of that name, or the names.
    """

    recipe: RecipeBody
    table: Annotated[list[tuple[Name, list[Cell] | None]], Field(max_length=2000)] | None = None


class TableBody(Body):
    """A table as somebody has it, instead of `arms`: its columns have roles, as in `finalist new`.

    `text` is that of a text file, `base64` has the bytes of any file: .xlsx, .ods, .parquet.
    """

    text: Annotated[StrictStr, Field(max_length=10 * 2**20)] | None = None
    base64: Annotated[StrictStr, Field(max_length=10 * 2**20)] | None = None
    columns: Annotated[dict[Name, Name], Field(max_length=2000)] = Field(
        {}, description="Roles of columns whose guess is wrong, such as ignore or category."
    )
    model: Literal["straight", "bending", "surface", "separate"] = "straight"
    intercept: StrictBool = True
    drop_incomplete: StrictBool = False
    delimiter: Name | None = None
    decimal: Literal[".", ","] | None = None
    encoding: Name | None = None
    sheet: Name | None = None

    @checked_model(mode="after")
    def _one_of_two(self) -> "TableBody":
        if (self.text is None) == (self.base64 is None):
            raise ValueError("give the table once, as `text` or as `base64`")
        return self

    def read(self) -> ArmsTable:
        """Return the arms, with noise and cost of each if columns hold them."""
        content = unpack(self.base64 or "") if self.text is None else self.text.encode()
        return read_candidates(
            content,
            self.columns,
            model=self.model,
            intercept=self.intercept,
            drop_incomplete=self.drop_incomplete,
            dialect=Dialect(self.delimiter, self.decimal, self.encoding, self.sheet),
            limits=LIMITS,
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
    given: GivenBody | None = None

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
        table = checked(np.array(self.features, float), self.names, columns)
        if self.given is not None:
            table = checked_given(table, self.given.model_dump())
        return Arms._from_table(table)
