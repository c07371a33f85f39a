"""`finalist warmup`: everything is compiled now, and nobody waits for it later."""

import typer

from finalist.cli import output
from finalist.cli.options import Printed, PrintedOption
from finalist.text import counted

HELP = """Compile now what a first study or simulation would compile.

\b
Example:
  finalist warmup && finalist serve

Loops that run often are compiled once on each machine: for seconds in a first study, for about ten
seconds in a first simulation or forecast. This compiles all of them, for about a minute, and later
commands find them; images of containers run it when they are built. --format json has the keys
compiled (list), folder (null if nothing can be kept).
"""


def warmup(form: PrintedOption = Printed.table) -> None:
    """Compile, say."""
    from finalist.compiled.folders import to_write
    from finalist.lab.warmup import warm_up

    with output.working("Compiling..."):
        compiled = warm_up()
    folder = to_write()
    if form is Printed.json:
        record = {"compiled": compiled, "folder": None if folder is None else str(folder)}
        typer.echo(output.to_json(record), nl=False)
        return
    done = counted(len(compiled), "function") if compiled else "Nothing"
    where = "" if folder is None else f"; what is compiled is kept in {folder}"
    typer.echo(f"{done} compiled{where}.")
