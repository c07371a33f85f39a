"""`finalist new`: begin a study."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finalist.cli import inputs, output
from finalist.cli.groups import TableOptions, with_options
from finalist.cli.options import (
    ArmsFile,
    CandidateColumnOption,
    MaybeSigmaOption,
    Printed,
    PrintedOption,
    ResultColumnOption,
    SettingsOption,
    StrategyOption,
)
from finalist.cli.study.common import DbOption, NewName, command, say, shown, warnings, where
from finalist.files import printable

if TYPE_CHECKING:
    from finalist.arms.table import ArmsTable
    from finalist.study import Status

#: Roles of columns that describe candidates.
DESCRIBING = ("number", "category", "yes/no")
#: How to give an unknown size of the noise here.
_UNKNOWN = "'unknown': it is then estimated from the results"

HELP = """Begin a study: an experiment kept on disk.

\b
Example:
  finalist new seeds candidates.csv --sigma 1 --delta 0.05
  finalist ask seeds --size 96 -o batch.csv   # fill in the column 'result'
  finalist tell seeds batch.csv
  finalist status seeds

TABLE has a row for each candidate. Encoding, delimiter and decimal sign are detected and shown.
What each column is (name, number, category, yes/no, ...) is guessed and shown; correct a guess with
--column Tone=category. --model bending is for an optimum in between ('finalist plan --models' shows
what each model costs). The model has a constant unless --no-intercept is given.

--sigma is the standard deviation of one measurement, or 'unknown'. If it is too small the answer is
worthless, so there is no default (only --noise bernoulli needs none). --history is a file of old
results, read as by 'finalist sigma'. They show sigma, test the model before the first measurement
and guide what is measured, but they never count as evidence. With them --sigma may be left out: it
is then treated as unknown, because an estimate from old results can be wrong.

With --budget, the study ends after that many measurements at the latest, and recommends the best
candidate that is left if none is certain by then. The default strategy plans for that choice. The
strategies od-linbai, gse, peace, g-budget, sequential-halving and top-two require a budget, use all
of it, and guarantee no probability of error.

--format json has the keys name, where,
created, arms, measurable and candidates (how many there are of each), history, old_results,
warnings, settings, model, columns (list of name, role, why), read_as, remarks.
"""


@with_options
def new(
    name: NewName,
    arms_file: ArmsFile,
    *,
    sigma: MaybeSigmaOption = None,
    problem: TableOptions,
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
            metavar="FILE", exists=True, dir_okay=False, help="Old results: .csv, .xlsx or text."
        ),
    ] = None,
    candidate_column: CandidateColumnOption = None,
    result_column: ResultColumnOption = None,
    known_only: Annotated[
        bool,
        typer.Option("--known-only", help="Leave out old results of candidates not in TABLE."),
    ] = False,
    db: DbOption = None,
    form: PrintedOption = Printed.table,
) -> None:
    """Read, create, say."""
    from finalist.study import Study
    from finalist.study.history import of_known, tells_sigma
    from finalist.study.results.earlier import old_results
    from finalist.study.sentences import counted_arms
    from finalist.tables import Dialect, read

    old, otherwise = None, None
    if history is not None:
        cells = read(history, Dialect(decimal=problem.reading.decimal))
        old = old_results(cells, candidate_column, result_column)
        if sigma is None and tells_sigma(problem.words["noise"], old.results):
            otherwise = "unknown"
    missing = {"unknown": _UNKNOWN, "otherwise": otherwise}
    table, words = inputs.load_problem(arms_file, problem, sigma, **missing)
    arms = table.arms
    words["sigma"] = inputs.size_or_unknown(words["sigma"])
    if minimise:
        words["objective"] = "min"
    said = [] if old is None else [*old.said]
    earlier = None if old is None else old.results
    if earlier is not None and known_only:
        earlier, left_out = of_known(arms, earlier)
        said += [left_out] if left_out else []
    study = Study.create(
        where(db),
        name,
        arms,
        inputs.configured(strategy, settings or [], arms, None),
        seed=seed,
        history=earlier,
        **words,
    )
    with study:
        every = study.arms
        early = earlier is not None or words["budget"] is not None  # may be too small
        found = study.status(forecast=False) if early else None
        content = {
            "name": study.name,
            "where": shown(db),
            "created": study.created,
            "arms": len(every),
            "measurable": int(every.measurable.sum()),
            "candidates": int(every.candidate.sum()),
            "history": 0 if earlier is None else len(earlier),
            "old_results": None if found is None else found.old_results,
            "warnings": [] if found is None else list(found.warnings),
            "settings": study.settings,
            "model": every.recipe.name,
            "columns": [{"name": c.name, "role": c.role, "why": c.why} for c in table.columns],
            "read_as": table.read_as,
            "remarks": list(table.remarks),
        }
    sheet = ["batch.xlsx" if arms_file.suffix.lower() in (".xlsx", ".ods") else "batch.csv"]
    if table.read_as and "decimal comma" in table.read_as:  # as their spreadsheet reads it
        sheet += ["--decimal", ","]
    told = _found(table) + (
        f"Study {printable(name, 60)!r} is in {shown(db)}: {counted_arms(every)}, strategy "
        f"{strategy}.\n"
        + "".join(f"{printable(words)}\n" for words in _from_the_start(found, said, db))
        + f"Next:\n  {command(db, 'ask', name, '-o', *sheet)}"
    )
    if not (every.has_intercept or words["batch_intercept"]):
        told += (
            "\nNote: there is no constant, so a candidate whose numbers are all 0 has an expected "
            "result of 0.\n      If that is not so, leave --no-intercept out."
        )
    say(form, told, **content)


def _from_the_start(found: "Status | None", said: list[str], db: str | None) -> Iterator[str]:
    """Yield what old results say, how they were read, and what is warned of from the start."""
    if found is None:
        return
    if found.old_results:
        yield f"{found.old_results}" + (f" (Read as: {'; '.join(said)}.)" if said else "")
    yield from warnings(found, db)


def _found(table: "ArmsTable") -> str:
    """Say how the table was read, and what its columns are for."""
    if not table.columns:
        return ""
    read_as = [f"Read as: {table.read_as}."] if table.read_as else []
    remarks = [f"{words[0].upper()}{words[1:]}." for words in table.remarks]
    made = table.arms.recipe.words() or table.arms.recipe.name
    if not any(column.role in DESCRIBING for column in table.columns):
        made = "separate: each candidate on its own"
    columns = table.columns[: output.MAX_ROWS]
    rows = [(printable(c.name, output.NAME_WIDTH), c.role, printable(c.why)) for c in columns]
    left = len(table.columns) - len(columns)
    said = " ".join(map(printable, read_as + remarks))
    return output.to_text(
        *([said] if said else []),
        "Columns:",
        output.facts_table(rows),
        *([f"... and {left:,} more"] if left else []),
        printable(f"Model: {made}."),
        "",
    )
