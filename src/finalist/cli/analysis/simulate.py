"""`finalist simulate`: what a strategy would do if the parameter were known."""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from finalist.cli import codes, inputs, output
from finalist.cli.groups import AnswerOptions, ProblemOptions, with_options
from finalist.cli.options import (
    ArmsFile,
    Format,
    JobsOption,
    MaxPullsOption,
    SeedOption,
    SettingsOption,
    SigmaOption,
    StrategyOption,
    ThetaFileOption,
    ThetaOption,
)
from finalist.files import printable
from finalist.text import counted

if TYPE_CHECKING:
    import numpy as np

    from finalist.charts.theme import AnyChart
    from finalist.simulation import Simulation

HELP = """Try a strategy many times on simulated results.

\b
Example:
  finalist simulate candidates.csv --theta 2,0,-0.5 --sigma 0.3 --runs 200

Run i depends only on --seed and i, not on the number of runs or processes. With --budget a run
ends after at most that many measurements, and the winner is the candidate recommended then: without
a guarantee, except in runs that are 'certain', which decided before. '(no proof)' marks a strategy
whose delta is not proven; it is never certain. The strategies od-linbai, gse, peace, g-budget,
sequential-halving and top-two are for a fixed budget and never certain. The regret is how much
worse the winner is than the best candidate. With --top, the winner is the first of those found.
Name the columns of TABLE that are not features: --sigma-column, --cost-column, --measurable-column.
--format csv has one row per run: run, winner, decided, correct, pulls, batches, seconds, regret
(not with --top), with costs cost, with a budget certain, and a column 'pulls: NAME' for each
candidate. --format json has everything under the keys

\b
  name, strategy, delta, seed, requested, summary (runs, undecided,
  errors, error_rate, error_interval, mean, standard_error, interval,
  median, quantiles, min, max, mean_batches, mean_seconds, budget,
  certain, mean_cost, mean_regret, regret_error, max_regret),
  arms (list of name, mean_reward, mean_pulls), runs (list of run,
  winner, decided, correct, pulls, batches, seconds, regret, with costs
  cost, with a budget certain, pulls_per_arm)

Undefined values are null. Ctrl-C prints the finished runs and exits with code 130.
"""


@with_options
def simulate(
    arms_file: ArmsFile,
    *,
    theta: ThetaOption = None,
    theta_file: ThetaFileOption = None,
    strategy: StrategyOption = "gauntlet",
    settings: SettingsOption = None,
    sigma: SigmaOption = None,
    problem: ProblemOptions,
    shift: Annotated[
        float,
        typer.Option(help="Standard deviation of the constant drawn for each batch."),
    ] = 0.0,
    rewards: Annotated[
        Literal["gaussian", "bounded", "bernoulli"] | None,
        typer.Option(
            help="What is drawn: normal noise, noise of +sigma or -sigma, results 0 and 1. "
            "By default what --noise says."
        ),
    ] = None,
    runs: Annotated[int, typer.Option(metavar="N", help="How many runs.")] = 100,
    seed: SeedOption = 0,
    jobs: JobsOption = 1,
    max_pulls: MaxPullsOption = 10**9,
    size: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Measurements of a batch: plates of 96.", show_default="its own"
        ),
    ] = None,
    answer: AnswerOptions,
) -> None:
    """Read, simulate, print."""
    answer.check()
    import numpy as np

    import finalist as fl
    from finalist.strategies import shown_name

    table, words = inputs.load_problem(arms_file, problem, sigma)
    arms = table.arms
    parameter = np.array(inputs.read_theta(theta, theta_file, arms))
    means = arms.means(parameter)
    chosen = inputs.configured(strategy, settings or [], arms, parameter)
    result: Simulation = fl.simulate(
        arms,
        parameter,
        chosen,
        shift=shift,
        rewards=rewards,
        runs=runs,
        seed=seed,
        n_jobs=jobs,
        max_pulls=max_pulls,
        size=size,
        **words,
    )
    result = replace(result, name=shown_name(chosen))
    if answer.form is Format.json:
        text = output.to_json(_as_dict(result, means))
    elif answer.form is Format.csv:
        text = _csv(result)
    else:
        text = _table(result, means, answer.everything)
    output.deliver(text, answer.out)
    if answer.chart is not None:
        with output.working("Drawing..."):
            output.draw(_picture(result), answer.chart)
    if len(result) < result.requested:
        raise typer.Exit(codes.INTERRUPTED)


def _as_dict(result: "Simulation", means: "np.ndarray") -> dict[str, Any]:
    summary = asdict(result.summary())
    for word in ("name", "arms", "delta", "requested"):
        del summary[word]
    pulls = summary.pop("mean_pulls_per_arm")
    frame = result.to_frame()
    words = ["run", "winner", "decided", "correct", "pulls", "batches", "seconds"]
    words += ["regret"] if result.regret is not None else []
    words += ["cost"] if result.costs is not None else []
    runs = frame[[*words, *(["certain"] if result.budget is not None else [])]]
    each = zip(runs.to_dict("records"), result.pulls_per_arm.tolist(), strict=True)
    return {
        "name": result.name,
        "strategy": result.strategy,
        "delta": result.delta,
        "seed": result.seed,
        "requested": result.requested,
        "summary": summary,
        "arms": [
            {"name": name, "mean_reward": mean, "mean_pulls": n}
            for name, mean, n in zip(result.arms, means.tolist(), pulls, strict=True)
        ],
        "runs": [{**run, "pulls_per_arm": n} for run, n in each],
    }


def _csv(result: "Simulation") -> str:
    """Return one row per run; no spreadsheet takes the name of a winner for a formula."""
    from finalist.tables.escaping import escape

    frame = result.to_frame()
    frame["winner"] = [None if name is None else escape(name) for name in frame["winner"]]
    return str(frame.to_csv(index=False, lineterminator="\r\n"))


def _table(result: "Simulation", means: "np.ndarray", everything: bool) -> str:
    summary = result.summary()
    pulls = summary.mean_pulls_per_arm
    order = sorted(range(len(pulls)), key=lambda i: -pulls[i])
    whole = sum(pulls) or 1.0
    rows = [
        [
            result.arms[i],
            output.number(means[i]),
            output.number(pulls[i]),
            f"{pulls[i] / whole:.1%}",
            f"{int((result.winner == i).sum()):,}",
        ]
        for i in order
    ]
    header = ["Name", "Expected result", "Measurements, mean", "Share", "Won"]
    table = output.arms_table(header, rows, everything)
    return output.to_text(output.facts_table(summary.facts()), *table)


def _picture(result: "Simulation") -> "AnyChart":
    """Draw how good what is named after a budget is; else the runs that have decided, over time."""
    from finalist.charts.simulations import decisions_chart, regrets_chart

    early = result.decided & (result.samples < result.budget) if result.budget else result.decided
    ended = result.samples[result.certain | early]
    summary = result.summary()
    count = f"{printable(result.name)}, {len(result):,} runs, {summary.undecided:,} undecided"
    asked = "allowed" if result.certain.any() else "asked for"
    wrong = f"{summary.errors:,} with a wrong winner, {100 * result.delta:g} % {asked}"
    if result.budget is not None:
        money = result.costs is not None
        most = f"a cost of {result.budget:,}" if money else counted(result.budget, "measurement")
        count = f"{printable(result.name)}, {len(result):,} runs of {most} at most"
        wrong = f"{summary.errors:,} recommended a wrong candidate"
    if summary.mean_regret is not None:
        wrong += f", {summary.mean_regret:.3g} worse than the best on average"
    if result.budget is None or result.regret is None or not result.decided.any():
        title = "Measurements until the decision"
        return decisions_chart(ended, len(result), title, [count, wrong])
    sure = f"{int(result.certain.sum()):,} were certain before the end"
    named = {printable(result.name): result.regret[result.decided]}
    return regrets_chart(named, "What is named after the budget", [count, wrong, sure])
