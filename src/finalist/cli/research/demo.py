"""`finalist demo`: a whole study on real measurements, from `new` to the verdict."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finalist.cli import output
from finalist.cli.options import FolderOption
from finalist.cli.research.demo_paper import demo_paper
from finalist.cli.study.status import arms_table, evidence_picture, report
from finalist.extras import EXTRAS, need
from finalist.files import printable

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from finalist.data import Replicates
    from finalist.study import Status, Study

HELP = """Run a whole study on real measurements, from the first pull to the verdict.

\b
Example:
  finalist demo --out demo

Twelve ways to grow oats, each measured on six plots (Yates, 1935). Which yields most?
The study is kept in the folder (demo.db) and asks for batches of 24 plots; each reward is one of
the plots that were measured, drawn with replacement. Shows the race, the final table, a chart of
the evidence (evidence.png, .svg), and the pulls that uniform allocation needs. Half a minute.

--paper shows the example of Soare 2014, Sect. 6, instead: three designs, what they cost, the
paper's five strategies, and charts.
"""
NAME, SIZE, RUNS = "oats", 24, 20
#: A typical seed: of 0 to 19 it needs the median number of pulls, not the fewest.
SEED = 15
#: Covers the noise of every arm: see `_STORY` and the test of it.
SIGMA = 31.0
_HEADER = f"{'Batch':>5}  {'Pulls':>6}  {'Left':>8}  Leader"

_STORY = """\
Which of 12 ways to grow oats yields most: three varieties, four amounts of nitrogen?

{title}:
{source}.
Yields are in {unit}.
Each was measured on six plots, and plots differ: the same treatment gave 86 on one, 174 on
another. A study is run on it as if the trial went on: each reward is one of the plots that were
measured, drawn with replacement. Nothing about the rewards is made up.
Real means are not quite linear in the features: they are off by up to {off:.1f} here. The guarantee
assumes that they are linear; finalist tests for it and warns when the rewards contradict.

  arms      12, described by variety, nitrogen and its square (5 numbers, linear model)
  noise     sub-Gaussian with sigma 31, which covers the plots of every arm (the worst: 30.8)
  delta     0.05: the winner may be wrong with probability 5 %
  strategy  gauntlet, {size} plots at a time, kept in {file}
"""
_RACE = """\
Beside uniform allocation, which measures all 12 in turn until its own test (the paper's, for
pulls fixed in advance, with the same sigma, delta and model) names a winner. {runs} runs each,
simulated on the same plots, in batches of their own choice; the study above is one more:
"""
_OWN = """\
Your own candidates, in a spreadsheet (a name, and columns that describe them):

  finalist new mine candidates.csv --sigma unknown
  finalist ask mine --size 24 -o batch.csv      # measure, fill in the column 'result'
  finalist tell mine batch.csv                  # exit code 10: go on; 0: done
  finalist status mine --chart evidence.png

In Python:

  import finalist as fl

  arms = fl.Arms.from_table("candidates.csv")
  study = fl.Study.create("finalist.db", "mine", arms, sigma=None)
  while batch := study.ask(size=24):
      study.tell({{pull.pull_id: measure(pull.arm) for pull in batch}})
  print(study.status())

This study again: finalist status {name} --db {file}
"""


def demo(
    out: FolderOption = Path("demo"),
    paper: Annotated[
        bool, typer.Option("--paper", help="The example of the paper instead of a study.")
    ] = False,
) -> None:
    """Run a study, explain, draw."""
    need("Charts", *EXTRAS["charts"])
    if paper:
        demo_paper(out)
        return
    from finalist import data

    out.mkdir(parents=True, exist_ok=True)
    table, file = data.load(NAME), out / "demo.db"
    words = {"title": table.title, "source": table.source, "unit": table.unit}
    typer.echo(_STORY.format(**words, off=_off(table), size=SIZE, file=file))
    with _begin(file, table) as study:
        _measure(study, table)
        found = study.status(forecast=False)
        typer.echo()
        typer.echo(output.to_text(*report(found)))
        files = [out / f"evidence.{suffix}" for suffix in ("png", "svg")]
        _draw(study, table, files)
    with output.working("Simulating uniform allocation beside it..."):
        text = output.to_text(_RACE.format(runs=RUNS), *_comparison(table))
    typer.echo(text)
    table.arms.to_csv(out / "candidates.csv")
    output.list_files([file, out / "candidates.csv", *files])
    typer.echo()
    typer.echo(_OWN.format(name=NAME, file=file), nl=False)


def _off(table: "Replicates") -> float:
    """Return how far a measured mean is from the linear model, at most."""
    from finalist.inference.least_squares import estimate

    fit = estimate(table.arms, table.statistics()).means()
    return max(
        abs(float(values.mean() - mean)) for values, mean in zip(table.rewards, fit, strict=True)
    )


def _begin(file: Path, table: "Replicates") -> "Study":
    """Create the study in a new file; the file of an earlier demo is replaced."""
    from finalist.errors import StudyError
    from finalist.study import Study, studies

    if file.exists():
        found = studies(file)  # refuses a file that is not finalist's
        if found not in ([], [NAME]):
            raise StudyError(
                f"{file} has studies that no demo made: {', '.join(found)}. Give another --out."
            )
        for end in ("", "-wal", "-shm"):
            file.with_name(file.name + end).unlink(missing_ok=True)
        typer.echo(f"(The {file} of an earlier demo is replaced.)\n")
    return Study.create(
        file,
        NAME,
        table.arms,
        sigma=SIGMA,
        noise="sub-gaussian",
        objective=table.objective,
        seed=SEED,
        metadata={"source": table.source},
    )


def _measure(study: "Study", table: "Replicates") -> None:
    """Ask and tell until there is a winner, and show the study after each batch."""
    import numpy as np

    rng, arms = np.random.default_rng(SEED), table.arms
    with following(len(arms)) as follow:
        while batch := study.ask(SIZE):
            drawn = {
                pull.pull_id: float(table.draw(arms.index(pull.arm), 1, rng)[0]) for pull in batch
            }
            study.tell(drawn)
            follow(study.status(forecast=False))
        follow(study.status(forecast=False))  # what was kept back of the pilot may have decided


@contextmanager
def following(arms: int) -> "Iterator[Callable[[Status], None]]":
    """Yield a function that shows a status: live on a terminal, else a line when arms drop out.

    Parameters
    ----------
    arms : int
        Number of arms at the start.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console(markup=False, highlight=False, emoji=False)
    typer.echo(_HEADER)
    left = arms + 1

    def line(status: "Status") -> None:
        nonlocal left
        if len(status.survivors) < left:
            left = len(status.survivors)
            console.print(_line(status, arms), soft_wrap=True)

    if not console.is_terminal:
        yield line
        return
    # Nothing else is printed meanwhile, and stdout must keep its encoding for `status.bar`.
    with Live(
        console=console,
        transient=True,
        refresh_per_second=10,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as live:

        def follow(status: "Status") -> None:
            line(status)
            live.update(_view(status, arms))

        yield follow


def _line(status: "Status", arms: int) -> str:
    left, leader = f"{len(status.survivors)} of {arms}", printable(status.leader or "", 40)
    return f"{status.batches:>5}  {status.pulls:>6,}  {left:>8}  {leader}"


def _view(status: "Status", arms: int) -> "Group":
    """Return the current line and the table of arms."""
    from rich.console import Group

    return Group("", _line(status, arms), *arms_table(status))


def _draw(study: "Study", table: "Replicates", files: list[Path]) -> None:
    from finalist.charts import save

    with output.working("Drawing..."):
        picture = evidence_picture(
            study,
            f"{len(table.arms)} ways to grow oats: evidence against each",
            ("Rewards are plots measured by Yates (1935), drawn with replacement.",),
        )
        for path in files:
            save(picture, path)


def _comparison(table: "Replicates") -> "Iterator[Table | str]":
    """Yield the pulls of the gauntlet and of uniform allocation, side by side."""
    import numpy as np

    import finalist as fl
    from finalist.inference.least_squares import estimate

    means = estimate(table.arms, table.statistics()).means()
    theta = np.linalg.lstsq(table.arms.features, means, rcond=None)[0]
    rows, medians = [], []
    for strategy in ("gauntlet", "uniform"):
        runs = fl.simulate(
            table.arms,
            theta,
            strategy,
            sigma=SIGMA,
            noise="sub-gaussian",
            objective=table.objective,
            rewards=table.draw,
            runs=RUNS,
            seed=SEED,
        )
        low, median, high = (
            output.number(round(q)) for q in np.quantile(runs.samples, (0.05, 0.5, 0.95))
        )
        medians.append(float(np.median(runs.samples)))
        right = f"{int(runs.correct.sum())} of {RUNS}"
        rows.append([strategy, median, low, high, right])
    header = ["Strategy", "Pulls, median", "5 % within", "95 % within", "Right winner"]
    yield from output.arms_table(header, rows, everything=True)
    yield (
        f"Uniform allocation needs {medians[1] / medians[0]:.1f} times the pulls. Part of this is "
        "where one measures, part is\nthe sharper test.\n"
    )
