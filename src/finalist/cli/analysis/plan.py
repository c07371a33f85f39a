"""`finalist plan`: how many pulls to expect, before the first one."""

from typing import TYPE_CHECKING, Annotated

import typer

from finalist.cli import inputs, output
from finalist.cli.options import (
    ArmsFile,
    BatchInterceptOption,
    CandidatesOption,
    CostColumnOption,
    DeltaOption,
    EpsilonOption,
    Format,
    FormatOption,
    InterceptOption,
    JobsOption,
    MaxPullsOption,
    MeasurableOption,
    MisspecificationOption,
    NoiseName,
    NoiseOption,
    Objective,
    ObjectiveOption,
    OutputOption,
    SeedOption,
    SigmaColumnOption,
    SigmaOption,
    StrategyOption,
    ThetaFileOption,
    ThetaOption,
    TopOption,
)

if TYPE_CHECKING:
    from finalist.planning import Plan

HELP = """Say before any measurement how many pulls to expect.

\b
Example:
  finalist plan arms.csv --sigma 1 --gap 0.5

Strategies are simulated with parameters of random direction, under which the best arm leads the
second best by --gap; or with one parameter, --theta. All of them meet the same parameters, and
stop by themselves: strategies that spend a fixed budget are for 'finalist simulate'. Columns of
ARMS that are no features are named: --sigma-column, --cost-column, --measurable-column; with costs
the plan speaks of cost, not of pulls. --format csv has one row per strategy: name, median, low
(5 %), high (90 %), mean, undecided, wrong. --format json has everything under the keys

\b
  words, gap, sigma, delta, draws, max_pulls, seed, lower_bound, unit,
  rows (list of name, median, low, high, mean, undecided, wrong, pulls)

What is infinite, because draws were stopped undecided, is null, and inf in csv.
"""


def plan(
    arms_file: ArmsFile,
    gap: Annotated[
        float | None, typer.Option(help="How far the best arm leads, in units of the reward.")
    ] = None,
    theta: ThetaOption = None,
    theta_file: ThetaFileOption = None,
    sigma: SigmaOption = None,
    delta: DeltaOption = 0.05,
    strategy: StrategyOption = "gauntlet",
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A strategy to compare with; repeat.",
            show_default="uniform, if it can do what is asked",
        ),
    ] = None,
    epsilon: EpsilonOption = 0.0,
    top: TopOption = 1,
    candidates: CandidatesOption = None,
    measurable_column: MeasurableOption = None,
    sigma_column: SigmaColumnOption = None,
    cost_column: CostColumnOption = None,
    intercept: InterceptOption = False,
    batch_intercept: BatchInterceptOption = False,
    misspecification: MisspecificationOption = 0.0,
    objective: ObjectiveOption = Objective.max,
    noise: NoiseOption = NoiseName.gaussian,
    draws: Annotated[
        int, typer.Option(metavar="N", help="How often each strategy is simulated.")
    ] = 50,
    seed: SeedOption = 0,
    jobs: JobsOption = 1,
    max_pulls: MaxPullsOption = 10**7,
    form: FormatOption = Format.table,
    out: OutputOption = None,
) -> None:
    """Read, simulate, print."""
    output.check_files(out, None)
    import finalist as fl

    table = inputs.read_table(
        arms_file, measurable_column, sigma_column, cost_column, intercept, candidates
    )
    arms = table.arms
    given = theta is not None or theta_file is not None
    result: Plan = fl.plan(
        arms,
        sigma=inputs.noise_size(table.sigma, sigma, noise.value),
        delta=delta,
        gap=gap,
        theta=inputs.read_theta(theta, theta_file, arms) if given else None,
        strategy=strategy,
        noise=noise.value,
        objective=objective.value,
        epsilon=epsilon,
        top=top,
        cost=1.0 if table.cost is None else table.cost,
        batch_intercept=batch_intercept,
        misspecification=misspecification,
        draws=draws,
        seed=seed,
        n_jobs=jobs,
        against=against,
        max_pulls=max_pulls,
    )
    if form is Format.json:
        text = output.to_json(result.to_dict())
    elif form is Format.csv:
        figures = [row.figures() for row in result.rows]
        text = output.to_csv(list(figures[0]), [list(row.values()) for row in figures])
    else:
        text = _table(result)
    output.deliver(text, out)


def _table(result: "Plan") -> str:
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
