"""The settings of a problem, described once.

`SETTINGS` feeds the keywords of public functions (`ProblemWords`), the options of commands, the
models of the API, the fields of the page's form, the JSON of stored studies and the reference. It
needs nothing but Python, because `finalist --help` reads it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, cast

if TYPE_CHECKING:
    import numpy as np

    from finalist.arms import Arms
    from finalist.problem import Feature, Goal, Noise, Unset
    from finalist.problem.rules import Rules

#: "each" is one number, or one for each arm.
Kind = Literal["each", "number", "whole", "flag", "choice", "text"]


@dataclass(frozen=True)
class Setting:
    """One setting of a problem.

    Attributes
    ----------
    name : str
        The keyword, the key in JSON, and with hyphens the option.
    help : str
        What it is, in a sentence without its full stop.
    optional : bool
        Whether None is a value.
    above, least, below : float or None
        Bounds of numbers; `least` is allowed, the others are not.
    needs : str or None
        The `Feature` that a strategy must support if the value is not the default.
    of_studies : Any
        The default of real studies and their plans, where that is another one; None for the same.
    """

    name: str
    kind: Kind
    help: str
    default: Any = None
    optional: bool = False
    above: float | None = None
    least: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    needs: "Feature | None" = None
    of_studies: Any = None

    @property
    def usual(self) -> Any:
        """The default of real studies and their plans."""
        return self.default if self.of_studies is None else self.of_studies


SETTINGS: Mapping[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting(
            "sigma",
            "each",
            "Size of the noise: the standard deviation of one measurement",
            optional=True,
            above=0.0,
        ),
        Setting(
            "noise",
            "choice",
            "What is assumed of the noise",
            "gaussian",
            choices=("gaussian", "sub-gaussian", "bernoulli"),
        ),
        Setting(
            "delta", "number", "Accepted probability of a wrong answer", 0.05, above=0.0, below=1.0
        ),
        Setting(
            "objective",
            "choice",
            "Whether the largest or the smallest mean is best",
            "max",
            choices=("max", "min"),
            needs="minimise",
        ),
        Setting(
            "epsilon",
            "number",
            "A candidate within this distance of the best is good enough",
            0.0,
            least=0.0,
            needs="epsilon-best",
        ),
        Setting(
            "top", "whole", "How many of the best candidates to find", 1, least=1, needs="top-m"
        ),
        Setting(
            "cost",
            "each",
            "Cost of a measurement: one number, or one for each candidate",
            1.0,
            above=0.0,
            needs="cost",
        ),
        Setting(
            "batch_intercept",
            "flag",
            "Whether batches may differ by an unknown constant, as plates and days do",
            False,
            needs="batch intercept",
        ),
        Setting(
            "misspecification",
            "number",
            "How far, at most, expected results may be from the model",
            0.0,
            least=0.0,
            needs="misspecification",
        ),
        Setting(
            "check",
            "number",
            "Largest chance that a bend of the means hides a better candidate; 0 for no check",
            0.0,
            least=0.0,
            below=1.0,
            of_studies=0.03,
        ),
        Setting(
            "budget",
            "whole",
            "The most measurements in all; with costs, the highest total cost",
            optional=True,
            least=1,
        ),
        Setting(
            "max_pulls_per_arm",
            "whole",
            "The most measurements of a candidate",
            optional=True,
            least=1,
            needs="limited pulls",
        ),
        Setting("unit", "text", "Unit of the results, shown beside them: kg, %", optional=True),
    )
}


class ProblemWords(TypedDict, total=False):
    """The keywords that make a `Problem` of arms, as type checkers see them."""

    sigma: "float | Sequence[float] | np.ndarray | Unset | None"
    noise: "Noise | str | None"
    delta: float
    objective: Literal["max", "min"]
    epsilon: float
    top: int
    goal: "Goal | None"
    cost: "float | Sequence[float] | np.ndarray"
    batch_intercept: bool
    misspecification: float
    check: float
    budget: int | None
    max_pulls_per_arm: int | None
    unit: str | None
    rules: "Rules"
    candidates: "Arms | None"


_Function = TypeVar("_Function", bound=Callable[..., Any])


def of_study(words: ProblemWords) -> ProblemWords:
    """Return settings with the defaults of real studies for what is left out.

    Examples
    --------
    >>> of_study({"delta": 0.1})
    {'check': 0.03, 'delta': 0.1}
    """
    usual: Any = {name: one.usual for name, one in SETTINGS.items() if one.of_studies is not None}
    return cast(ProblemWords, usual | words)


def spelled_out(function: _Function) -> _Function:
    """Show the settings in the signature of a function with `**words`, for `help` and docs."""
    return _spelled_out(function, {name: one.default for name, one in SETTINGS.items()})


def spelled_out_of_study(function: _Function) -> _Function:
    """Show the settings as `spelled_out` does, with the defaults of real studies (`of_study`)."""
    return _spelled_out(function, {name: one.usual for name, one in SETTINGS.items()})


def _spelled_out(function: _Function, defaults: Mapping[str, Any]) -> _Function:
    own = signature(function)
    words = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=defaults.get(name),
            annotation=annotation,
        )
        for name, annotation in ProblemWords.__annotations__.items()
        if name != "rules"  # for tests, and studies that began with earlier ones
        and name not in own.parameters
    ]
    if words[0].name == "sigma":  # never assumed
        words[0] = words[0].replace(default=Parameter.empty)
    given = [p for p in own.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    function.__signature__ = own.replace(parameters=[*given, *words])  # type: ignore[attr-defined]
    return function
