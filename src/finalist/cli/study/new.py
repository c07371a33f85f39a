"""`finalist new`: begin a study."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finalist.cli import inputs
from finalist.cli.options import (
    ArmsFile,
    Printed,
    PrintedOption,
    ProblemOptions,
    SettingsOption,
    StrategyOption,
    with_problem,
)
from finalist.cli.study.common import DbOption, DecimalOption, NewName, command, say, shown, where
from finalist.errors import FinalistError, ProblemError
from finalist.files import printable
from finalist.text import counted

if TYPE_CHECKING:
    import numpy as np

    from finalist.problem import Unset

#: How to give an unknown size of the noise here.
_UNKNOWN = "'unknown': the gauntlet then estimates Gaussian noise from the rewards"

HELP = """Begin a study: an experiment kept on disk.

\b
Example:
  finalist new seeds arms.csv --sigma 1 --delta 0.05
  finalist ask seeds --size 96 -o batch.csv   # fill in the column 'reward'
  finalist tell seeds batch.csv
  finalist status seeds

--sigma is the size of the noise of one measurement, or 'unknown'; a sigma that is too small makes
the answer worthless, so there is no default (only --noise bernoulli needs none). --history is a
CSV file with the columns 'arm' and 'reward' of earlier measurements: they guide choices and are
never tested. With --budget, the best remaining arm is recommended when that many pulls are spent;
the strategies od-linbai, gse, peace and g-budget are made for this, require it, and guarantee no
error probability. Name the columns of ARMS that are not features: --sigma-column,
--cost-column, --measurable-column. With --intercept the expected result is a constant plus a part
for each feature; without, it is 0 where all features are. --format json has the keys name, where,
created, arms, measurable and candidates (how many there are of each), history, settings.
"""


@with_problem
def new(
    name: NewName,
    arms_file: ArmsFile,
    *,
    sigma: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Size of the noise, or 'unknown'.", show_default="none"),
    ] = None,
    problem: ProblemOptions,
    minimise: Annotated[
        bool, typer.Option("--minimise", help="The same as --objective min.")
    ] = False,
    strategy: StrategyOption = "gauntlet",
    settings: SettingsOption = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random choices.", show_default="drawn")
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", exists=True, dir_okay=False, help="Earlier measurements, a CSV file."
        ),
    ] = None,
    decimal: DecimalOption = ".",
    db: DbOption = None,
    form: PrintedOption = Printed.table,
) -> None:
    """Read, create, say."""
    arms, words = inputs.load_problem(arms_file, problem, sigma, unknown=_UNKNOWN)
    words["sigma"] = _size(words["sigma"])
    if minimise:
        words["objective"] = "min"
    from finalist.study import Study
    from finalist.study.results import Results, as_history
    from finalist.study.sentences import counted_arms

    earlier = Results([], []) if history is None else as_history(history, decimal=decimal)
    for arm in earlier.arm:
        arms.index(str(arm))  # an unknown one is refused before anything is created
    study = Study.create(
        where(db),
        name,
        arms,
        inputs.configured(strategy, settings or [], arms, None),
        seed=seed,
        **words,
    )
    with study:
        every = study.arms
        if earlier:
            try:
                study.import_history(earlier)
            except FinalistError:
                study.delete()
                raise
        content = {
            "name": study.name,
            "where": shown(db),
            "created": study.created,
            "arms": len(every),
            "measurable": int(every.measurable.sum()),
            "candidates": int(every.candidate.sum()),
            "history": len(earlier),
            "settings": study.settings,
        }
    before = f", {counted(len(earlier), 'earlier measurement')}" if earlier else ""
    told = (
        f"Study {printable(name, 60)!r} is in {shown(db)}: {counted_arms(every)}, "
        f"{strategy}{before}. Next:\n  {command(db, 'ask', name, '-o', 'batch.csv')}"
    )
    if not (every.has_intercept or words["batch_intercept"]):
        told += (
            "\nNote: the features have no constant, so an arm whose features are all 0 has an "
            "expected result of 0.\n      If results have a level of their own, begin with "
            "--intercept."
        )
    say(form, told, **content)


def _size(given: "np.ndarray | str | Unset") -> "np.ndarray | float | Unset | None":
    """Read the size of the noise if it is text: a number, or 'unknown'."""
    if not isinstance(given, str):
        return given
    if given.lower() == "unknown":
        return None
    try:
        return float(given)
    except ValueError:
        raise ProblemError(f"--sigma is {given!r}; write a number, or 'unknown'.") from None
