"""What works with the core alone, and what names its extra when that is missing.

In processes that cannot import the modules of any extra; `make dist` tries clean environments.
"""

import ast
import json
import re
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

import finalist as fl
from finalist.errors import FinalistError, MissingExtraError
from finalist.extras import EXTRAS, need
from finalist.study import Study
from tests.extras import without
from tests.web.servers import in_thread

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DECLARED: dict[str, list[str]] = PROJECT["optional-dependencies"]

CORE = """
import sys
import numpy as np, finalist as fl
arms = fl.Arms.unstructured(["a", "b", "c"])
assert fl.simulate(arms, [1.0, 0.0, 0.0], sigma=0.5, runs=2).correct.all()
fl.optimal_design(fl.Arms.from_csv("arms.csv"), "xy")
fl.plan(arms, sigma=1.0, gap=1.0, draws=2)
with fl.Study.create("core.db", "core", arms, sigma=0.1, seed=1) as study:
    while batch := study.ask():
        study.tell({pull.pull_id: float(pull.arm == "b") for pull in batch})
    print(study.status().winner, fl.connect.__name__)
"""
CONNECTED = """
import finalist as fl
study = fl.connect({url!r}).open("lab")
study.tell({{pull.pull_id: 1.0 for pull in study.ask()}})
status = study.status(forecast=False)
print(status.verdict, status.pulls)
"""
#: Code that needs an extra, and which.
CODE = {
    "import finalist.charts": "charts",
    "import finalist.web": "page",
    "import finalist as fl; fl.Arms.unstructured(2).to_frame()": "tables",
    "import finalist as fl; fl.Arms.from_table('arms.xlsx')": "tables",
    "from finalist import data; data.load('oats')": "tables",
    "from finalist.tables.writer import workbook; workbook(['a'], [])": "tables",
    "import finalist as fl; fl.Arms.from_parquet('arms.parquet')": "parquet",
    "import finalist as fl; fl.Arms.unstructured(2).to_parquet('other.parquet')": "parquet",
    "import finalist as fl; fl.studies('postgresql://user@127.0.0.1:1/lab')": "postgres",
}
#: Commands that need an extra, and which.
COMMANDS = {
    "design arms.csv --chart design.png": "charts",
    "plan arms.csv --sigma 1 --gap 1 --margins --chart plan.png": "charts",
    "status lab --db lab.db --chart evidence.png": "charts",
    "demo --out demo": "charts",
    "demo --paper --out demo": "charts",
    "benchmark --suite standard --store runs.sqlite --out field": "charts",
    "reproduce table --out paper": "charts",
    "ask lab --db lab.db -o batch.xlsx": "tables",
    "new other arms.xlsx --sigma 1 --db lab.db": "tables",
    "new other arms.csv --formula x --sigma 1 --db lab.db": "tables",
    "design arms.parquet": "parquet",
    "report lab --db lab.db": "page",
    "serve --db lab.db --no-open --port 0": "page",
    "list --db postgresql://user@127.0.0.1:1/lab": "postgres",
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a study made without extras, and files that need some."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "arms.csv").write_text("name,x,y\na,1,0\nb,0,1\nc,1,1\n")
    from finalist.tables.writer import workbook

    (folder / "arms.xlsx").write_bytes(workbook(["name", "x"], [["a", 1.0], ["b", 2.0]]))
    fl.Arms.from_csv(folder / "arms.csv").to_parquet(folder / "arms.parquet")
    for words in (
        "new lab arms.csv --sigma 1 --db lab.db",
        "ask lab --db lab.db -o batch.csv",
        "status lab --db lab.db --no-forecast",
        "list --db lab.db",
        "db check --db lab.db",
        "design arms.csv",
    ):
        done = without(words, cwd=folder)
        assert done.returncode in (0, 10), (words, done.stderr)
    return folder


def test_the_core_leads_a_study_to_its_end(lab: Path) -> None:
    done = without("-c", CORE, cwd=lab)
    assert done.stdout.split() == ["b", "connect"], done.stderr


def test_the_core_connects_to_a_server(tmp_path: Path) -> None:
    place = tmp_path / "lab.db"
    Study.create(place, "lab", fl.Arms.unstructured(["a", "b"]), sigma=0.1, seed=1).close()
    with in_thread(place) as url:
        done = without("-c", CONNECTED.format(url=url), cwd=tmp_path)
    assert done.stdout.split() == ["continue", "2"], done.stderr


@pytest.mark.parametrize("extra", ["charts", "page", "tables", "parquet", "postgres"])
def test_code_that_needs_an_extra_names_it(lab: Path, extra: str) -> None:
    tried = [code for code, needed in CODE.items() if needed == extra]
    lines = [
        "import json",
        "said = []",
        *(
            f"try:\n    exec({code!r}, {{}})\nexcept Exception as error:\n"
            "    said.append([type(error).__name__, str(error)])"
            for code in tried
        ),
        "print(json.dumps(said))",
    ]
    done = without("-c", "\n".join(lines), cwd=lab)
    assert done.returncode == 0, done.stderr
    for code, (kind, words) in zip(tried, json.loads(done.stdout), strict=True):
        assert kind == "MissingExtraError", (code, words)
        assert words.endswith(f"pip install 'finalist[{extra}]'"), code


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_needs_an_extra_names_it_in_one_line(lab: Path, command: str) -> None:
    before = sorted(lab.rglob("*"))
    done = without(command, cwd=lab)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"Error: [^\n]*\n", done.stderr), done.stderr
    assert done.stderr.endswith(f"pip install 'finalist[{COMMANDS[command]}]'\n")
    assert sorted(lab.rglob("*")) == before


def test_a_refused_sheet_leaves_no_batch(lab: Path) -> None:
    assert without("new fresh arms.csv --sigma 1 --db fresh.db", cwd=lab).returncode == 0
    assert without("ask fresh --db fresh.db -o b.xlsx", cwd=lab).returncode == 2
    done = without("status fresh --db fresh.db --no-forecast --format json", cwd=lab)
    assert json.loads(done.stdout)["open_pulls"] == 0


def test_what_is_there_is_not_asked_for() -> None:
    for modules in EXTRAS.values():
        need("Tests", *modules)


def test_the_error_is_an_import_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingExtraError, match="Charts need vl_convert, which") as e:
        need("Charts", "altair", "vl_convert")
    assert isinstance(e.value, ImportError)
    assert isinstance(e.value, FinalistError)


# ---- the description of the package ------------------------------------------------------------


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _parts(line: str) -> list[tuple[str, str]]:
    """Return the distribution that a requirement names, without an extra and with each."""
    name, inside = re.match(r"([\w.-]+)(?:\[([^\]]*)\])?", line).groups()  # type: ignore[union-attr]
    extras = [one.strip() for one in (inside or "").split(",") if one.strip()]
    return [(_normal(name), extra) for extra in ("", *extras)]


def _lines(name: str, extra: str) -> list[str]:
    """Return what a distribution requires, or what one of its extras does."""
    if name == "finalist":
        return DECLARED[extra] if extra else PROJECT["dependencies"]
    try:
        lines = requires(name) or []
    except ImportError:  # for another system
        return []
    marks = [re.search(r"extra == ['\"]([^'\"]+)", line) for line in lines]
    return [
        line for line, mark in zip(lines, marks, strict=True) if (mark[1] if mark else "") == extra
    ]


def brought_by(extra: str) -> set[str]:
    """Return the distributions that `pip install 'finalist[extra]'` brings."""
    found, left = set(), [("finalist", ""), ("finalist", extra)]
    while left:
        part = left.pop()
        if part not in found:
            found.add(part)
            left += [other for line in _lines(*part) for other in _parts(line)]
    return {name for name, _ in found}


def imported_by(folder: str) -> set[str]:
    """Return the first parts of the names of all modules that files of a folder import."""
    found = set()
    for file in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names)


OURS = {"finalist", "tests", "benchmarks", "docs", "examples", "toy", "generate"}


@pytest.mark.parametrize(
    ("extra", "folder"), [("all", "src"), ("dev", "tests"), ("dev", "benchmarks")]
)
def test_an_extra_brings_all_that_is_imported(extra: str, folder: str) -> None:
    homes, brought = packages_distributions(), brought_by(extra)
    for module in imported_by(folder) - OURS:
        assert {_normal(home) for home in homes[module]} & brought, f"{module} in {folder}"


def test_modules_of_extras_are_those_that_the_package_declares() -> None:
    homes = packages_distributions()
    assert set(_parts(*DECLARED["all"])) == {("finalist", extra) for extra in ("", *EXTRAS)}
    for extra, modules in EXTRAS.items():
        declared = {name for line in DECLARED[extra] for name, _ in _parts(line)}
        assert declared - {"finalist"} == {_normal(homes[module][0]) for module in modules}


def test_classifiers_name_versions_of_python_that_may_be_used() -> None:
    named = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c]
    assert f"3.{sys.version_info.minor}" in named
    assert PROJECT["requires-python"] == f">={named[0]}"
