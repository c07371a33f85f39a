"""The layers are enforced, and the enforcement itself works."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    script = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [script, "--no-cache", "--config", ROOT / ".importlinter"],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(ROOT / "src" / "finalist", tmp_path / "finalist")
    return tmp_path


def test_the_tree_keeps_the_layers(copy):
    result = lint(copy)
    assert result.returncode == 0, result.stdout


def test_importing_from_a_higher_layer_fails(copy):
    arms = copy / "finalist" / "arms" / "arms.py"
    arms.write_text(arms.read_text() + "\nfrom finalist.design import optimal_design\n")
    result = lint(copy)
    assert result.returncode != 0
    assert "finalist.arms" in result.stdout


def test_a_module_that_no_layer_lists_fails(copy):
    (copy / "finalist" / "stowaway.py").write_text('"""Not in the contract."""\n')
    result = lint(copy)
    assert result.returncode != 0
    assert "stowaway" in result.stdout


def test_modules_that_need_each_other_fail(copy):
    rows = copy / "finalist" / "arms" / "rows.py"
    rows.write_text(rows.read_text() + "\nfrom finalist.arms.span import Span\n")
    result = lint(copy)
    assert result.returncode != 0
    assert "finalist.arms" in result.stdout


@pytest.mark.parametrize("door", ["web/pool.py", "cli/study/life.py", "client/values.py"])
def test_only_studies_import_their_storage(copy, door):
    file = copy / "finalist" / door
    file.write_text(file.read_text() + "\nfrom finalist.study.storage.rows import EventRow\n")
    result = lint(copy)
    assert result.returncode != 0
    assert "Only studies know how they are stored BROKEN" in result.stdout


def test_only_studies_use_their_log():
    source = ROOT / "src" / "finalist"
    files = [
        file for room in ("web", "cli", "client", "lab") for file in (source / room).rglob("*")
    ]
    read = [file for file in files if file.suffix in (".py", ".html")]
    assert len(read) > 100
    assert [file for file in read if re.search(r"\w\._(log|state|tell)\b", file.read_text())] == []
