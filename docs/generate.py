"""Pages of the documentation that are made from the program: settings, commands, HTTP API.

Called by `conf.py` whenever the documentation is built; what it writes is not kept.
"""

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "_generated"
#: As many characters as fit in a line of the page.
WIDTH = 88


def write(folder: Path = FOLDER) -> None:
    """Write all generated pages."""
    folder.mkdir(exist_ok=True)
    pages = {"commands": commands_page, "http-api": http_page, "settings": settings_page}
    for name, make in pages.items():
        page, text = folder / f"{name}.md", make()
        if not page.exists() or page.read_text() != text:  # Sphinx reads what has changed
            page.write_text(text)


def commands() -> dict[str, Any]:
    """Return every command by what has to be typed: "finalist db check"."""
    import typer

    from finalist.cli import app

    found: dict[str, Any] = {}

    def walk(command: Any, name: str) -> None:
        for word, below in getattr(command, "commands", {}).items():
            walk(below, f"{name} {word}")
        if not hasattr(command, "commands"):
            found[name] = command

    walk(typer.main.get_command(app), "finalist")
    return found


def commands_page() -> str:
    """Return the reference of all commands: what `--help` says."""
    from typer.testing import CliRunner

    from finalist.cli import app
    from finalist.cli.codes import EPILOG

    runner = CliRunner(env={"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH)})
    parts = [
        "# Commands",
        "",
        "What `finalist COMMAND --help` says.",
        "",
        " ".join(EPILOG.split()),
        "",
    ]
    for name in commands():
        words = runner.invoke(app, [*name.split()[1:], "--help"], terminal_width=WIDTH).output
        parts += [f"## {name}", "", "```text", words.strip(), "```", ""]
    return "\n".join(parts)


def http_page() -> str:
    """Return the reference of the HTTP API, from its description for programs."""
    import tempfile

    from finalist.web import create_app
    from finalist.web.api.reference import ERROR_WORDS, calls_of

    base = "http://127.0.0.1:8765"
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(f"{folder}/none.db")
        description = app.openapi()
        app.state.studies.close()
    parts = ["# HTTP API", "", description["info"]["description"].strip(), ""]
    parts += ["| code | when |", "|---|---|"]
    parts += [f"| {code} | {words} |" for code, words in ERROR_WORDS] + [""]
    for title, calls in calls_of(description, base):
        parts += [f"## {title}", ""]
        for call in calls:
            parts += [f"### {call['method']} {call['path']}", "", call["words"].strip(), ""]
            if call["parameters"]:
                parts += ["| parameter | in | |", "|---|---|---|"]
                parts += [
                    f"| `{p['name']}` | {p['where']} | {p['words']} |" for p in call["parameters"]
                ]
                parts += [""]
            parts += ["```text", call["command"], "```", ""]
            if call["example"] is not None:
                parts += ["```json", call["example"], "```", ""]
    return "\n".join(parts)


def settings_page() -> str:
    """Return the reference of the settings of a problem, and which strategies support them."""
    import numpy as np

    from finalist.arms import Arms
    from finalist.settings import SETTINGS
    from finalist.strategies import about, all_strategies, named

    two = Arms.unstructured(2)
    able = {word: about(named(word, two, np.ones(2))).supports for word in all_strategies()}
    parts = [
        "# Settings of a problem",
        "",
        "Keywords of `fl.Study.create`, `fl.plan`, `fl.simulate`, `fl.complexity` and",
        "`Server.create`; options of the commands `new`, `plan` and `simulate`, with hyphens; keys",
        "of the HTTP API. A `Problem` that is given instead has them all. Sigma has no default: it",
        "has to be given, and `None` says that it is unknown.",
        "",
        "| setting | what it is | default | supported by |",
        "|---|---|---|---|",
    ]
    for name, one in SETTINGS.items():
        choices = f": {', '.join(f'`{word}`' for word in one.choices)}" if one.choices else ""
        default = "" if name == "sigma" else f"`{one.default}`"
        some = [f"`{word}`" for word, supports in able.items() if one.needs in (supports or ())]
        support = "all" if one.needs is None or len(some) == len(able) else ", ".join(some)
        parts.append(f"| `{name}` | {one.help}{choices} | {default} | {support} |")
    return "\n".join([*parts, ""])
