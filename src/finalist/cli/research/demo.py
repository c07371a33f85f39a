"""`finalist demo`: a whole study on real measurements, from `new` to the verdict."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finalist.cli import output
from finalist.cli.options import FolderOption
from finalist.cli.research.demo_paper import demo_paper
from finalist.cli.study.common import command
from finalist.cli.study.status import arms_table, evidence_picture, report
from finalist.extras import EXTRAS, need
from finalist.files import printable, write_file

if TYPE_CHECKING:
    from rich.console import Group

    from finalist.data import Replicates
    from finalist.study import Status, Study

HELP = """Run a whole study on real measurements, in seconds.

\b
Example:
  finalist demo --out demo

Twelve ways to grow oats, each measured on six plots (Yates, 1935). Which yields most, give or take
a difference that does not matter? Each result is one of the plots that were measured, drawn with
replacement; the study asks for 24 at a time and ends after about 100. Shows the race, the final
table and a chart of the evidence (evidence.png, .svg), and ends with the command that opens the
study on the page. It is kept in the folder (demo.db). Takes a few seconds.

--paper shows the example of Soare 2014, Sect. 6, instead: three designs, what they cost, the
paper's five strategies, and charts.
"""
NAME, SIZE = "oats", 24
#: A typical seed: of 0 to 19 it needs the median number of measurements, not the fewest.
SEED = 1
#: A difference that would not pay for another season, in quarter pounds on a plot.
MARGIN = 15.0
_HEADER = f"{'Batch':>5}  {'Measurements':>12}  {'Left':>8}  In front"

_STORY = """\
Which of 12 ways to grow oats yields most: three varieties, four amounts of nitrogen?

{title}:
{source}.
Yields are in {unit}.
Each was measured on six plots, and plots differ: the same treatment gave 86 on one, 174 on
another. To sow all of them again and again would take years. This study asks for {size} plots at a
time and stops as soon as the answer is certain enough. Each result is one of the plots that were
measured, drawn with replacement. Nothing about the results is made up.

  candidates  12, by variety and nitrogen; yield may bend with nitrogen (--model bending)
  margin      {margin:g}: a candidate that is so near the best is good enough (--epsilon {margin:g})
  noise       unknown: it is estimated from the results, as normal and of one size (--sigma unknown)
  delta       0.05: the accepted probability of a wrong answer

  {command}

The guarantee rests on the model and on the noise; finalist tests both, and says so when the results
contradict.
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

The study of this demo, on the page:

  {serve}
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
    table, file, sheet = data.load(NAME), out / "demo.db", out / "candidates.csv"
    words = {"title": table.title, "source": table.source, "unit": table.unit}
    typer.echo(_STORY.format(**words, size=SIZE, margin=MARGIN, command=_begun_by(file, sheet)))
    _write_candidates(table, sheet)
    with _begin(file, table, sheet) as study:
        _measure(study, table)
        found = study.status(forecast=False)
        typer.echo()
        typer.echo(output.to_text(*report(found)))
        files = [out / f"evidence.{suffix}" for suffix in ("png", "svg")]
        _draw(study, table, files)
    output.list_files([file, sheet, *files])
    typer.echo()
    typer.echo(_OWN.format(serve=command(str(file), "serve")), nl=False)


def _begun_by(file: Path, sheet: Path) -> str:
    """Return the command that begins this study."""
    words = ("--model", "bending", "--epsilon", f"{MARGIN:g}", "--sigma", "unknown")
    return command(str(file), "new", NAME, str(sheet), *words)


def _write_candidates(table: "Replicates", sheet: Path) -> None:
    """Write the candidates as a person would: a name, and the columns that describe it."""
    rows = []
    for name in table.arms.names:
        variety, _, nitrogen = name.rpartition(", ")
        rows.append([name, variety, nitrogen.removesuffix(" cwt")])
    write_file(sheet, output.to_csv(["name", "variety", "nitrogen"], rows).encode())


def _begin(file: Path, table: "Replicates", sheet: Path) -> "Study":
    """Create the study in a new file; the file of an earlier demo is replaced."""
    from finalist.arms import Arms
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
        Arms.from_table(sheet, model="bending"),
        sigma=None,
        epsilon=MARGIN,
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
        follow(study.status(forecast=False))  # what was kept back may have decided


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
    return f"{status.batches:>5}  {status.pulls:>12,}  {left:>8}  {leader}"


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
            ("Results are plots measured by Yates (1935), drawn with replacement.",),
        )
        for path in files:
            save(picture, path)
