"""README and documentation say what is true: their Python runs, their commands exist."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from finalist.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


def test_shell_blocks_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = [
        line
        for block in blocks(ROOT / "README.md", "shell")
        for line in block.splitlines()
        if line.startswith("finalist")
    ]
    assert len(commands) >= 3
    for command in commands:
        result = CliRunner().invoke(app, shlex.split(command, comments=True)[1:])
        assert result.exit_code == 0, (command, result.output)


def test_every_command_is_in_the_readme():
    text = (ROOT / "README.md").read_text()
    names = [command.name for command in app.registered_commands]
    assert names
    for name in names:
        assert f"finalist {name}" in text


def test_every_make_target_of_the_readme_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        named = re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), flags=re.MULTILINE)
        assert set(named) <= targets


def test_pictures_of_the_readme_are_there():
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).stat().st_size > 1000
