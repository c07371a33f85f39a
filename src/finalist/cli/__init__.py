"""The command line: a thin skin over the library, with typer and rich.

Nothing heavy is imported until a command runs, so that `finalist --help` is immediate.
"""

from finalist.cli.app import app, main

__all__ = ["app", "main"]
