"""The application: its commands, `--version`, and how errors are reported."""

import gc
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from finalist import __version__
from finalist.cli import codes, serve, warmup
from finalist.cli.analysis import complexity, design, plan, region, sigma, simulate
from finalist.cli.research import benchmark, demo, reproduce
from finalist.cli.study import database, export, life, measure, new, status
from finalist.cli.wording import for_shell
from finalist.errors import FinalistError, UnclearTableError
from finalist.files import printable
from finalist.loading import OBJECTS

_HELP = """Find the best of your candidates with few costly, noisy measurements.

A table of candidates (Excel, LibreOffice, CSV, Parquet) has a header and one row per candidate:
its name, and columns that describe it. Start with: finalist demo
"""
_COMMANDS: tuple[tuple[str, str, Callable[..., None]], ...] = (
    ("new", new.HELP, new.new),
    ("ask", measure.ASK_HELP, measure.ask),
    ("tell", measure.TELL_HELP, measure.tell),
    ("status", status.HELP, status.status),
    ("void", measure.VOID_HELP, measure.void),
    ("missing", measure.MISSING_HELP, measure.missing),
    ("amend", measure.AMEND_HELP, measure.amend),
    ("undo", measure.UNDO_HELP, measure.undo),
    ("note", life.NOTE_HELP, life.note),
    ("stop", life.STOP_HELP, life.stop),
    ("resume", life.RESUME_HELP, life.resume),
    ("budget", life.BUDGET_HELP, life.budget),
    ("fork", life.FORK_HELP, life.fork),
    ("delete", life.DELETE_HELP, life.delete),
    ("list", life.LIST_HELP, life.list_studies),
    ("export", export.EXPORT_HELP, export.export),
    ("report", export.REPORT_HELP, export.report),
    ("serve", serve.HELP, serve.serve),
    ("region", region.HELP, region.region),
    ("design", design.HELP, design.design),
    ("complexity", complexity.HELP, complexity.complexity),
    ("plan", plan.HELP, plan.plan),
    ("sigma", sigma.HELP, sigma.sigma),
    ("simulate", simulate.HELP, simulate.simulate),
    ("reproduce", reproduce.HELP, reproduce.reproduce),
    ("benchmark", benchmark.HELP, benchmark.benchmark),
    ("demo", demo.HELP, demo.demo),
    ("warmup", warmup.HELP, warmup.warmup),
)
#: A negative reward looks like an option.
_SETTINGS = {"amend": {"ignore_unknown_options": True}}


class Commands(TyperGroup):
    """The commands; errors that finalist raises on purpose are shown as one line."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; on wrong input, exit with code 2 and without a traceback."""
        try:
            return super().invoke(ctx)
        except FinalistError as error:
            _fail(error.options if isinstance(error, UnclearTableError) else str(error))
        except OSError as error:
            if error.filename is None or isinstance(error, BrokenPipeError):
                raise
            _fail(f"{error.filename}: {error.strerror}.")


def _fail(message: str) -> None:
    typer.echo(f"Error: {printable(for_shell(message))}", err=True)
    raise typer.Exit(codes.WRONG)


app = typer.Typer(
    name="finalist",
    cls=Commands,
    help=_HELP,
    epilog=codes.EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _help, _run in _COMMANDS:
    app.command(_name, help=_help, epilog=codes.EPILOG, context_settings=_SETTINGS.get(_name))(_run)
app.add_typer(database.database)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"finalist {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    gc.set_threshold(OBJECTS)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Terminals without Unicode get an escape sequence for a letter they cannot show.
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    finally:
        gc.freeze()  # whatever is left ends with the process: Python need not look for cycles
