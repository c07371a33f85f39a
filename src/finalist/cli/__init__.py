"""The command line: a thin layer over the library, made with typer and rich.

Heavy imports wait until a command runs, so `finalist --help` is immediate.
"""

from finalist.cli.app import app, main

__all__ = ["app", "main"]
