"""Groups of options that several commands have: a dataclass, for one parameter of a command."""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from finalist.cli import output
from finalist.cli.options import (
    AllOption,
    CandidatesOption,
    ChartOption,
    ColumnOption,
    ConstantOption,
    CostColumnOption,
    DecimalOption,
    DelimiterOption,
    DropOption,
    EncodingOption,
    Format,
    FormatOption,
    FormulaOption,
    InterceptOption,
    MeasurableOption,
    ModelOption,
    OutputOption,
    SheetOption,
    SigmaColumnOption,
    option_of,
)
from finalist.settings import SETTINGS

if TYPE_CHECKING:
    from finalist.tables import Dialect

#: Sigma and cost come with the arms: a column, or an option of the command's own.
_SETTINGS = {name: one for name, one in SETTINGS.items() if one.kind != "each"}


@dataclass(frozen=True)
class ReadingOptions:
    """How a table is written, as options; what is not given is found out."""

    delimiter: DelimiterOption = None
    decimal: DecimalOption = None
    encoding: EncodingOption = None
    sheet: SheetOption = None

    def dialect(self) -> "Dialect":
        """Return it as tables are read by it."""
        from finalist.tables import Dialect

        return Dialect(self.delimiter, self.decimal, self.encoding, self.sheet)


@dataclass(frozen=True)
class AnswerOptions:
    """What becomes of a result, as options: how it is printed, written and drawn."""

    everything: AllOption = False
    form: FormatOption = Format.table
    out: OutputOption = None
    chart: ChartOption = None

    def check(self) -> None:
        """Refuse files that cannot be written, before any work is done."""
        output.check_files(self.out, self.chart)


@dataclass(frozen=True)
class ProblemOptions:
    """The problem, as options that `new`, `plan` and `simulate` have in common."""

    words: dict[str, Any]
    candidates: CandidatesOption = None
    measurable_column: MeasurableOption = None
    sigma_column: SigmaColumnOption = None
    cost_column: CostColumnOption = None
    intercept: InterceptOption = False
    reading: ReadingOptions = ReadingOptions()


@dataclass(frozen=True)
class TableOptions(ProblemOptions):
    """The problem, with how a table of candidates becomes features: for `new` and `plan`."""

    intercept: ConstantOption = True
    column: ColumnOption = None
    model: ModelOption = "straight"
    formula: FormulaOption = None
    drop_incomplete: DropOption = False


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter that is a group of options, a dataclass, by the options in it."""
    own = signature(command)
    groups = {
        name: one.annotation for name, one in own.parameters.items() if is_dataclass(one.annotation)
    }

    @wraps(command)
    def run(**given: Any) -> None:
        command(**{name: _gathered(kind, given) for name, kind in groups.items()}, **given)

    parameters = [
        parameter
        for name, old in own.parameters.items()
        for parameter in (
            _spread(groups[name]) if name in groups else [old.replace(kind=Parameter.KEYWORD_ONLY)]
        )
    ]
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _spread(kind: Any) -> list[Parameter]:
    """Return the options of a group, in order; its `words` are the settings of a problem."""
    options: list[Parameter] = []
    for field in fields(kind):
        if field.name == "words":
            options += _settings(real=issubclass(kind, TableOptions))
        elif is_dataclass(field.type):
            options += _spread(field.type)
        else:
            options.append(_parameter(field.name, field.default, field.type))
    return options


def _settings(real: bool) -> list[Parameter]:
    """Return the settings of a problem, with the defaults of real studies or of simulated ones."""
    return [
        _parameter(name, one.usual if real else one.default, option_of(one))
        for name, one in _SETTINGS.items()
    ]


def _parameter(name: str, default: Any, annotation: Any) -> Parameter:
    given = Parameter.empty if default is MISSING else default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=given, annotation=annotation)


def _gathered(kind: Any, given: dict[str, Any]) -> Any:
    """Return a group, and take the values of its options out of what is given."""
    values: dict[str, Any] = {}
    for field in fields(kind):
        if field.name == "words":
            values["words"] = {name: given.pop(name) for name in _SETTINGS}
        elif is_dataclass(field.type):
            values[field.name] = _gathered(field.type, given)
        else:
            values[field.name] = given.pop(field.name)
    return kind(**values)
