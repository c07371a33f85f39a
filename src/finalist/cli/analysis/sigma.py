"""`finalist sigma`: the noise of one measurement, from repeated measurements in a file."""

import typer

from finalist.cli import output
from finalist.cli.groups import ReadingOptions, with_options
from finalist.cli.options import (
    CandidateColumnOption,
    OldResultsFile,
    Printed,
    PrintedOption,
    ResultColumnOption,
)
from finalist.files import printable

HELP = """Estimate the noise of a measurement from old results.

\b
Example:
  finalist sigma old.csv
  finalist sigma yields.xlsx --candidate-column Variety --result-column Yield

FILE has a row for each measurement: a column that names the candidate ('candidate', 'arm' or
'name') and one with the result ('result' or 'reward'). Give other names with --candidate-column and
--result-column; they are found if only one column has text and only one has numbers.

Candidates that were measured more than once show sigma: the standard deviation within candidates,
pooled, with an interval that holds with 95 % if the noise is normal and of one size. It is an
estimate: with few repeats, 'finalist new --sigma unknown' is the safe choice.
--format json has the keys sigma, low, high, level, degrees_of_freedom, measurements, candidates,
resolved, remark, words, read_as (list).
"""


@with_options
def sigma(
    file: OldResultsFile,
    *,
    candidate_column: CandidateColumnOption = None,
    result_column: ResultColumnOption = None,
    reading: ReadingOptions,
    form: PrintedOption = Printed.table,
) -> None:
    """Read, estimate, say."""
    from finalist.inference.replicates import sigma_of
    from finalist.study.results.earlier import old_results
    from finalist.tables import read

    cells = read(file, reading.dialect())
    old = old_results(cells, candidate_column, result_column)
    found = sigma_of(old.results.arm, old.results.value)
    if form is Printed.json:
        content = vars(found) | {"words": str(found), "read_as": list(old.said)}
        typer.echo(output.to_json(content), nl=False)
        return
    if old.said:
        typer.echo(f"Read as: {printable('; '.join(old.said))}.", err=True)
    typer.echo(f"Sigma is {found}.")
    if found.remark:
        typer.echo(printable(found.remark))
