"""The application: its commands, `--version`, and what becomes of an error."""

import sys
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from finalist import __version__
from finalist.cli import complexity, demo, design, reproduce, simulate
from finalist.errors import FinalistError
from finalist.files import printable

_HELP = """Find the best of K candidates with few costly, noisy measurements.

A file of arms is a CSV (or .parquet) file with a header: one row per candidate, the column
'name' names it, every other column is a number that describes it. Start with: finalist demo
"""
_EPILOG = """Exit codes: 0 done; 2 wrong input, explained in one line on stderr that starts with
'Error:' (wrong files with line and column); 1 anything unexpected."""


class Commands(TyperGroup):
    """The commands, with errors that finalist raises on purpose shown as one line."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; wrong input ends it with exit code 2 and no traceback."""
        try:
            return super().invoke(ctx)
        except FinalistError as error:
            _fail(str(error))
        except OSError as error:
            if error.filename is None or isinstance(error, BrokenPipeError):
                raise
            _fail(f"{error.filename}: {error.strerror}.")


def _fail(message: str) -> None:
    typer.echo(f"Error: {printable(message)}", err=True)
    raise typer.Exit(2)


app = typer.Typer(
    name="finalist",
    cls=Commands,
    help=_HELP,
    epilog=_EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("design", help=design.HELP, epilog=_EPILOG)(design.design)
app.command("complexity", help=complexity.HELP, epilog=_EPILOG)(complexity.complexity)
app.command("reproduce", help=reproduce.HELP, epilog=_EPILOG)(reproduce.reproduce)
app.command("simulate", help=simulate.HELP, epilog=_EPILOG)(simulate.simulate)
app.command("demo", help=demo.HELP, epilog=_EPILOG)(demo.demo)


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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal without Unicode gets an escape where it cannot show a letter.
            stream.reconfigure(errors="backslashreplace")
    app()
