"""`finalist plan`: how many measurements to expect, before the first one."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

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
    MaybeSigmaOption,
    OutputOption,
    SeedOption,
    StrategyOption,
    ThetaFileOption,
    ThetaOption,
)
from finalist.errors import ProblemError

if TYPE_CHECKING:
    from finalist.planning import Plan

HELP = """Say in advance how many measurements a study will need.

\b
Example:
  finalist plan candidates.csv --sigma 1 --gap 0.5 --chart leads.png
  finalist plan candidates.csv --sigma unknown --guess 1 --gap 0.5 --size 12
  finalist plan candidates.csv --sigma 1 --gap 0.5 --budget 60 --within 0.5
  finalist plan candidates.csv --sigma 1 --gap 0.5 --margins --chart margins.png

Whole studies are simulated, with everything that yours will have: batches of --size, an unknown
sigma with a --guess of it, the model of the table and its check, a margin (--epsilon), costs. In
all of them the best candidate leads the second best by --gap; where the others are is drawn at
random. With --theta the truth is given instead: a number for each feature, the constant may be left
out. For comparison, the plan shows the same test with equal shares, and a fixed number of
measurements with one test at the end. It also simulates half and twice the --gap (unless --no-leads
is given), and --chart draws measurements against the lead.

With --budget the simulated studies end there at the latest, and the plan says how often they name
the right candidate, how often one that is --within that much of the best, and how much worse it is
on average; --chart draws how often it is at most so much worse. With costs, the plan
counts cost instead of measurements. The table is read as by 'finalist new': columns have roles
(--column Tone=category), and a model makes the features (--model).

--format csv has one row per strategy: name, median, low (5 %), high (90 %), mean, undecided, wrong.
--format json has everything under the keys

\b
  words, gap, sigma, delta, draws, max_pulls, seed, lower_bound, unit,
  size, known (whether sigma is), fixed (measurements of the fixed number),
  by_lead (list of lead, fixed, rows),
  rows (list of name, median, low, high, mean, undecided, wrong, pulls)

With --budget also budget and within, and in rows right and near: the draws that name the right
candidate, and those that name one within that much of the best; and regret, how much worse it is on
average (without --top). Undecided are those that are not certain by then.

--models compares straight, bending, surface and separate for the same table: for each the truth is
drawn from that model, with the same lead. --format csv has one row per model: model, features,
median, low, high, mean, undecided, wrong, same_as; --format json has words, impossible (models that
the question cannot have, and why), gap, delta, draws, max_pulls, seed, unit, rows.

--margins compares studies without a margin and with several: a quarter of --gap, half of it, all of
it and twice as much, and --epsilon if that is given. Each is simulated with this lead, and with all
candidates four times closer together; --chart draws it. --format csv has one row per margin and
lead: margin (0 for none), lead, median, low, high, mean, undecided, wrong; --format json has the
same in rows, with words, impossible, gap, delta, draws, max_pulls, seed, unit, and chosen (the
margin that words speaks of).

Values that are infinite, because draws were stopped undecided, are null in JSON and inf in CSV.
"""


@with_options
def plan(
    arms_file: ArmsFile,
    *,
    gap: Annotated[
        float | None,
        typer.Option(help="The smallest lead of the best that matters, in units of the results."),
    ] = None,
    theta: ThetaOption = None,
    theta_file: ThetaFileOption = None,
    sigma: MaybeSigmaOption = None,
    guess: Annotated[
        float | None,
        typer.Option(metavar="SIZE", help="A guess of the noise to simulate, if it is unknown."),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(metavar="N", help="Measurements of a batch.", show_default="its own choice"),
    ] = None,
    problem: TableOptions,
    strategy: StrategyOption = "gauntlet",
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A strategy to compare with. May be repeated.",
            show_default="the same test with equal shares",
        ),
    ] = None,
    draws: Annotated[
        int, typer.Option(metavar="N", help="How often each strategy is simulated.")
    ] = 50,
    models: Annotated[
        bool, typer.Option("--models", help="Compare the models of the table instead.")
    ] = False,
    leads: Annotated[
        bool, typer.Option(help="Also simulate half the lead and twice the lead.")
    ] = True,
    margins: Annotated[
        bool, typer.Option("--margins", help="Compare margins (--epsilon) instead.")
    ] = False,
    seed: SeedOption = 0,
    jobs: JobsOption = 1,
    max_pulls: MaxPullsOption = 10**7,
    within: Annotated[
        float | None,
        typer.Option(
            help="With a budget: also count choices that close to the best.", show_default="gap"
        ),
    ] = None,
    form: FormatOption = Format.table,
    out: OutputOption = None,
    chart: ChartOption = None,
) -> None:
    """Read, simulate, print."""
    _check(models, margins, within)
    output.check_files(out, chart)
    import finalist as fl

    missing = {"unknown": "'unknown', with a guess for the plan: --guess 1"}
    otherwise = None if guess is None else "unknown"
    table, words = inputs.load_problem(arms_file, problem, sigma, **missing, otherwise=otherwise)
    arms = table.arms
    words |= {"sigma": inputs.size_or_unknown(words["sigma"]), "size": size, "guess": guess}
    given = theta is not None or theta_file is not None
    by_lead = leads and gap is not None and not given and words["budget"] is None
    ends = words["budget"] is not None and not margins and words["top"] == 1
    if chart is not None and (models or not (by_lead or margins or ends)):
        raise ProblemError(
            "--chart draws measurements against the lead (--gap, without --no-leads), what "
            "--margins save, or how good what is named with a --budget is (without --top); it does "
            "not go with --models."
        )
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
        leads=by_lead,
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
    if chart is not None:
        from finalist.charts.plans import leads_chart
        from finalist.charts.simulations import ends_chart

        with output.working("Drawing..."):
            output.draw(ends_chart(result) if ends else leads_chart(result), chart)


def _check(models: bool, margins: bool, within: float | None) -> None:
    """Refuse options that do not go together."""
    if within is not None and (models or margins):
        raise ProblemError("--within is for a plan with --budget, not for models or margins.")
    if models and margins:
        raise ProblemError("--models and --margins are both given; compare one at a time.")


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
    if len(result.by_lead) > 1:
        return output.to_text(result.words(), *result.remarks(), *_leads(result))
    table = output.arms_table(header, rows, everything=True)
    return output.to_text(result.words(), *result.remarks(), *table)


def _leads(result: "Plan") -> Iterable[Any]:
    """Return a table with a row for each lead."""
    header = ["Lead"]
    for row in result.rows:
        header += ["Median" if row.name == "gauntlet" else row.name.capitalize(), "90 % within"]
    fixed = any(one.fixed is not None for one in result.by_lead)
    header += ["Fixed number"] if fixed else []
    rows = [
        [
            f"{one.lead:g}",
            *(result.shown(value) for row in one.rows for value in (row.median, row.high)),
            *(["" if one.fixed is None else result.shown(one.fixed)] if fixed else []),
        ]
        for one in result.by_lead
    ]
    return output.arms_table(header, rows, everything=True)


def _at_the_end(result: "Plan") -> str:
    near = [] if result.within is None else [f"Within {result.within:g} of the best"]
    worse = [] if result.named[0].regret is None else ["Worse by, mean"]
    rows = [
        [
            row.name,
            f"{row.right} of {result.draws}",
            *([f"{row.near} of {result.draws}"] if near else []),
            *([] if row.regret is None else [output.number(row.regret)]),
            f"{result.draws - row.undecided} of {result.draws}",
        ]
        for row in result.named
    ]
    table = output.arms_table(
        ["Strategy", "Right", *near, *worse, "Certain"], rows, everything=True
    )
    return output.to_text(result.words(), *result.remarks(), *table)
