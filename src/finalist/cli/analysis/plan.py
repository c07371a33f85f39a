"""`finalist plan`: how many pulls to expect, before the first one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finalist.cli import inputs, output
from finalist.cli.analysis.prices import margins as compare_margins
from finalist.cli.analysis.prices import prices
from finalist.cli.groups import TableOptions, with_options
from finalist.cli.options import (
    ArmsFile,
    ChartOption,
    Format,
    FormatOption,
    JobsOption,
    MaxPullsOption,
    OutputOption,
    SeedOption,
    SigmaOption,
    StrategyOption,
    ThetaFileOption,
    ThetaOption,
)
from finalist.errors import ProblemError

if TYPE_CHECKING:
    from finalist.planning import Plan

HELP = """Say before any measurement how many pulls to expect, or what a budget will bring.

\b
Example:
  finalist plan arms.csv --sigma 1 --gap 0.5
  finalist plan arms.csv --sigma 1 --gap 0.5 --budget 60 --within 0.5
  finalist plan arms.csv --sigma 1 --gap 0.5 --margins --chart margins.png

Strategies are simulated with random parameters under which the best arm leads the second best by
--gap, or with one parameter, --theta. All of them meet the same parameters and stop on their own.
With --budget they end there at the latest, and what counts is how good the arm is that they name
then: how often the right one, and how often one --within so much of the best. The table is read as
by 'finalist new': columns have roles (--column Tone=category), and a model makes the features
(--model). --theta has a number for each feature and may leave out the level. With costs, the plan
counts cost instead of pulls. --format csv has one row per strategy: name, median, low (5 %), high
(90 %), mean, undecided, wrong. --format json has everything under the keys

\b
  words, gap, sigma, delta, draws, max_pulls, seed, lower_bound, unit,
  rows (list of name, median, low, high, mean, undecided, wrong, pulls)

With --budget also budget and within, and in rows right and near, the draws in which the right arm
is named and one within so much of the best; undecided are those that are not certain by then.

--models compares straight, bending, surface and separate for the same table: for each the truth is
drawn from that model, with the same lead. --format csv has one row per model: model, features,
median, low, high, mean, undecided, wrong, same_as; --format json has words, impossible (models that
the question cannot have, and why), gap, delta, draws, max_pulls, seed, unit, rows.

--margins compares studies without a margin and with several: a quarter of --gap, half, all and
twice of it, and --epsilon if that is given. Each is simulated with this lead, and with all
candidates four times closer together; --chart draws it. --format csv has one row per margin and
lead: margin (0 for none), lead, median, low, high, mean, undecided, wrong; --format json has the
same in rows, with words, impossible, gap, delta, draws, max_pulls, seed, unit, and chosen (the
margin that words speaks of).

Values that are infinite because draws were stopped undecided are null, and inf in csv.
"""


@with_options
def plan(
    arms_file: ArmsFile,
    *,
    gap: Annotated[
        float | None, typer.Option(help="How far the best arm leads, in units of the reward.")
    ] = None,
    theta: ThetaOption = None,
    theta_file: ThetaFileOption = None,
    sigma: SigmaOption = None,
    problem: TableOptions,
    strategy: StrategyOption = "gauntlet",
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A strategy to compare with; repeat.",
            show_default="uniform, if it supports the problem",
        ),
    ] = None,
    draws: Annotated[
        int, typer.Option(metavar="N", help="How often each strategy is simulated.")
    ] = 50,
    models: Annotated[
        bool, typer.Option("--models", help="Compare the models of the table instead.")
    ] = False,
    margins: Annotated[
        bool, typer.Option("--margins", help="Compare margins (--epsilon) instead.")
    ] = False,
    seed: SeedOption = 0,
    jobs: JobsOption = 1,
    max_pulls: MaxPullsOption = 10**7,
    within: Annotated[
        float | None,
        typer.Option(help="With a budget: count what is so close to the best.", show_default="gap"),
    ] = None,
    form: FormatOption = Format.table,
    out: OutputOption = None,
    chart: ChartOption = None,
) -> None:
    """Read, simulate, print."""
    _check(models, margins, chart, within)
    output.check_files(out, chart)
    import finalist as fl

    table, words = inputs.load_problem(arms_file, problem, sigma)
    arms = table.arms
    given = theta is not None or theta_file is not None
    if models or margins:
        words |= {"strategy": strategy, "draws": draws, "seed": seed, "n_jobs": jobs}
        words |= {"max_pulls": max_pulls, "other": given or bool(against)}
        if models:
            prices(arms, form, out, gap=gap, **words)
        else:
            compare_margins(arms, form, out, chart, gap=gap, **words)
        return
    result: Plan = fl.plan(
        arms,
        gap=gap,
        theta=inputs.read_slopes(theta, theta_file, arms) if given else None,
        strategy=strategy,
        draws=draws,
        seed=seed,
        n_jobs=jobs,
        against=against,
        max_pulls=max_pulls,
        within=within,
        **words,
    )
    if form is Format.json:
        text = output.to_json(result.to_dict())
    elif form is Format.csv:
        figures = [row.figures() for row in result.rows]
        text = output.to_csv(list(figures[0]), [list(row.values()) for row in figures])
    else:
        text = _table(result)
    output.deliver(text, out)


def _check(models: bool, margins: bool, chart: Path | None, within: float | None) -> None:
    """Refuse options that do not go together."""
    if within is not None and (models or margins):
        raise ProblemError("--within is for a plan with --budget, not for models or margins.")
    if models and margins:
        raise ProblemError("--models and --margins are both given; compare one at a time.")
    if chart is not None and not margins:
        raise ProblemError("--chart draws what margins save; give --margins too.")


def _table(result: "Plan") -> str:
    if result.budget is not None:
        return _at_the_end(result)
    header = ["Strategy", "Median", "5 % within", "90 % within", "Mean", "Undecided", "Wrong"]
    rows = [
        [
            row.name,
            *map(result.shown, (row.median, row.low, row.high, row.mean)),
            f"{row.undecided} of {result.draws}",
            f"{row.wrong} of {result.draws}",
        ]
        for row in result.rows
    ]
    table = output.arms_table(header, rows, everything=True)
    return output.to_text(result.words(), *result.remarks(), *table)


def _at_the_end(result: "Plan") -> str:
    near = [] if result.within is None else [f"Within {result.within:g} of the best"]
    rows = [
        [
            row.name,
            f"{row.right} of {result.draws}",
            *([f"{row.near} of {result.draws}"] if near else []),
            f"{result.draws - row.undecided} of {result.draws}",
        ]
        for row in result.named
    ]
    table = output.arms_table(["Strategy", "Right", *near, "Certain"], rows, everything=True)
    return output.to_text(result.words(), *result.remarks(), *table)
