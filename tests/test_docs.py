"""README and documentation say what is true: their code runs, their commands exist, and so on.

The blocks of a page run one after another in an empty folder, as if someone typed them in. Before
`finalist tell` the empty rewards of its file are filled in: that is the person in the laboratory.
A `csv` block after "as `name.csv`:" is saved under that name.
Addresses of a server on this machine are those of a real one. Blocks called `text` are formulas and
what programs print; they hold no commands. Simulations are cut to a few runs: what is tested is
that a page runs.
"""

import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import ExitStack
from importlib import import_module
from itertools import count
from pathlib import Path

import openpyxl
import pytest
from docs import generate
from typer.testing import CliRunner

import finalist as fl
from finalist.cli import app
from finalist.lab import paper
from finalist.strategies import registry
from tests.web.servers import in_thread
from tests.words import found as strange_words

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
SERVER = "http://127.0.0.1:8765"
#: Blocks that may be on a page: those that run, and those that are only read.
RUN, READ = {"python", "shell", "csv"}, {"text", "json"}
#: Commands that are known without being run, because they would set up or last too long.
LONG = ("finalist serve", "finalist demo", "finalist benchmark", "finalist reproduce all")

#: They keep the words of the papers; the glossary has both.
RESEARCH = {
    *("gauntlet", "strategies", "designs", "complexity", "v-optimality", "validity", "paper"),
    *("benchmark", "reproduction", "cluster", "extending", "architecture", "reference"),
    *("reliability", "glossary"),
}
GUIDES = [page for page in PAGES if page.stem not in RESEARCH]

COMMANDS = generate.commands()
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Return of every block the line before it, its language and its text."""
    pattern = r"^([^\n]*)\n\n?```([^\n]*)\n(.*?)^```"
    return re.findall(pattern, page.read_text(), flags=re.MULTILINE | re.DOTALL)


def lines(block: str) -> list[str]:
    """Return the commands of a block; one that ends with a backslash goes on in the next line."""
    joined = block.replace("\\\n", " ")
    return [line for line in joined.splitlines() if shlex.split(line, comments=True)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.usefixtures("few_runs", "few_draws")
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINALIST_DB", str(tmp_path / "finalist.db"))
    monkeypatch.setattr(registry, "STRATEGIES", dict(registry.STRATEGIES))  # a page adds one
    if page.name == "page.md":  # it speaks of a study that is there
        fl.Study.create("finalist.db", "seeds", fl.Arms.unstructured(3), sigma=1.0).close()
    names: dict[str, object] = {"__name__": "__main__"}
    with ExitStack() as stack:
        serving = SERVER in page.read_text()
        url = stack.enter_context(in_thread(tmp_path / "finalist.db")) if serving else SERVER
        for before, language, text in blocks(page):
            given = text.replace(SERVER, url)
            if language == "python":
                exec(compile(given, str(page), "exec"), names)
            elif language == "csv":
                name = re.search(r"as `([a-z-]+\.csv)`:$", before)
                assert name, f"{page.name}: a csv block without the name of its file"
                Path(name[1]).write_text(given)
            elif language == "shell":
                for line in lines(given):
                    type_in(line, tmp_path)


def type_in(line: str, folder: Path) -> None:
    """Do what a line says, or check that it can be done."""
    words = shlex.split(line, comments=True)
    if words[0] == "finalist":
        known = command_of(words)
        if line.startswith(LONG):
            known.make_context("finalist", words[1 + known_words(words) :])  # wrong options raise
            if words[1:3] == ["demo", "--paper"]:  # what comes next needs its arms
                (folder / "demo").mkdir()
                paper.instance()[0].to_csv(folder / "demo" / "candidates.csv")
            return
        if words[1] == "tell":
            fill_in(folder / words[3])
        result = CliRunner().invoke(app, words[1:])
        said = re.search(r"# exit code (\d+)", line)
        allowed = {0, 10} if said is None else {int(said[1])}
        assert result.exit_code in allowed, (line, result.output, result.exception)
    elif words[0] == "curl":
        if shutil.which("curl") is None:
            pytest.skip("curl is not installed")
        done = subprocess.run([*words, "-sS", "-m", "3"], capture_output=True, text=True)
        going_on = 28  # curl's code for the end of its patience
        assert done.returncode == (going_on if "-N" in words else 0), (line, done.stderr)
        assert not done.stdout.startswith('{"error":'), (line, done.stdout)
    elif words[0] == "export":
        name, _, value = words[1].partition("=")
        assert name in environment_variables(), line
        assert value
    elif words[0] == "make":
        assert words[1] in TARGETS, line
    elif words[:2] == ["pip", "install"]:
        assert re.fullmatch(r"(finalist|\.)(\[[a-z,]+\])?|dist/.*", words[-1]), line
        extras = re.findall(r"\[([a-z,]+)\]", words[-1])
        declared = (ROOT / "pyproject.toml").read_text()
        for extra in ",".join(extras).split(",") if extras else []:
            assert f"\n{extra} = [" in declared, line
    elif words[:2] == ["python", "-m"]:
        assert (ROOT / (words[2].replace(".", "/") + ".py")).exists() or words[2] == "build", line
    elif words[0] == "python":
        assert (ROOT / words[1]).exists(), line
    else:
        raise AssertionError(f"nobody knows how to type in: {line}")


def known_words(words: list[str]) -> int:
    """Return how many words after `finalist` name the command."""
    return 2 if words[1] == "db" else 1


def command_of(words: list[str]):
    """Return the command that a line calls."""
    name = " ".join(words[: 1 + known_words(words)])
    assert name in COMMANDS, f"{name} is no command"
    return COMMANDS[name]


def fill_in(path: Path) -> None:
    """Write results where a file of pulls has none."""
    results = (round(1 + 0.1 * ((7 * k) % 11), 2) for k in count())
    if path.suffix == ".xlsx":
        book = openpyxl.load_workbook(path)
        header, *cells = book.worksheets[0].iter_rows()
        place = [cell.value for cell in header].index("result")
        for row, result in zip(cells, results, strict=False):
            row[place].value = row[place].value or result
        book.save(path)
        return
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row, result in zip(rows, results, strict=False):
        row["result"] = row["result"] or str(result)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_blocks_are_of_a_kind_that_is_tested(page):
    for _, language, text in blocks(page):
        if language.startswith("{"):
            continue  # of Sphinx
        assert language in RUN | READ, (page.name, language)
        if language == "text":
            command = re.search(r"^\$? ?(finalist|curl|make|pip|import) ", text, re.MULTILINE)
            assert command is None, (page.name, text)


def test_commands_in_sentences_exist_with_their_options():
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for code in re.findall(r"`(finalist [a-z][^`]*)`", text):
            words = [word for word in code.split() if word != "..."]
            if words[1] == "db" and len(words) == 2:
                continue
            known = command_of(words)
            options = {option for p in known.params for option in [*p.opts, *p.secondary_opts]}
            for word in words[2:]:
                if word.startswith("-"):
                    assert word in options | {"--help"}, (page.name, code, word)


def test_every_command_is_shown_in_a_page():
    text = "\n".join(page.read_text() for page in PAGES)
    for name in COMMANDS:
        assert name in text, f"{name} is in no page"


def test_every_make_target_that_is_named_exists():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        named = re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), flags=re.MULTILINE)
        assert set(named) <= TARGETS, page.name


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_and_pictures_are_there(page):
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not re.match(r"[a-z]+:", link):
            target = page.parent / link
            assert target.exists(), (page.name, link)


def test_every_picture_is_shown_somewhere():
    texts = [page.read_text() for page in (*PAGES, *(ROOT / "benchmarks/results").glob("*.md"))]
    shown = {name for text in texts for name in re.findall(r"images/([\w.-]+)\)", text)}
    assert shown == {picture.name for picture in (DOCS / "images").iterdir()}


def drawn_by(picture: str) -> str:
    """Return the command that makes a picture."""
    begins = {
        "page-walk": "docs.walk",
        "page-": "make screenshots",
        "before-after": "docs.before_after",
        "field-": "make bench-field",
        "large": "benchmarks.large",
        "budget": "make bench-curve",
    }
    return next(
        (c for begin, c in begins.items() if picture.startswith(begin)), "make docs-figures"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_picture_has_the_command_that_makes_it(page):
    text = page.read_text()
    for picture in re.findall(r"\]\((?:docs/)?images/([\w.-]+)\)", text):
        assert drawn_by(picture) in text, (page.name, picture)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_guides_use_the_words_of_the_page(page):
    text = page.read_text().replace('"Best-Arm Identification in Linear\nBandits"', "")
    assert strange_words(text) == []


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_lines_of_code_fit_their_column(page):
    shown = [text for _, language, text in blocks(page) if not language.startswith("{")]
    code = [line for text in shown for line in text.splitlines()]
    assert [line for line in code if len(line) > generate.WIDTH] == []


def test_the_first_page_leaves_its_menu_to_the_sidebar():
    menus = re.findall(r"```{toctree}\n(.*?)```", (DOCS / "index.md").read_text(), flags=re.DOTALL)
    assert menus
    assert all(":hidden:" in menu for menu in menus)


def test_the_glossary_has_every_word_that_people_do_not_read():
    text = (DOCS / "glossary.md").read_text()
    for word in ("arm", "pull", "reward", "pilot", "rank", "regret", "epsilon"):
        assert re.search(rf"\b{word}\b", text), word
    for page in ("README.md", "docs/start.md", "docs/reference.md"):
        assert "glossary.md" in (ROOT / page).read_text()


def test_every_page_is_in_the_table_of_contents():
    listed = re.findall(r"^([a-z0-9_/-]+)$", (DOCS / "index.md").read_text(), flags=re.MULTILINE)
    pages = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    generated = {f"_generated/{name}" for name in ("commands", "http-api", "settings")}
    assert sorted(listed) == sorted(pages | generated)


def environment_variables() -> set[str]:
    """Return the variables that the program reads."""
    files = (ROOT / "src").rglob("*.py")
    return {name for file in files for name in re.findall(r"FINALIST_[A-Z]+", file.read_text())}


def test_every_variable_of_the_environment_is_documented():
    documented = set(re.findall(r"`(FINALIST_[A-Z]+)`", (DOCS / "files.md").read_text()))
    assert documented == environment_variables()


def test_every_kind_of_event_is_documented():
    from finalist.study.storage.schema import KINDS

    table = (DOCS / "files.md").read_text().partition("## Events")[2]
    assert set(re.findall(r"^\| `([a-z]+)` \|", table, flags=re.MULTILINE)) == set(KINDS)


def test_every_exit_code_is_documented():
    from finalist.cli import codes

    used = {code for name, code in vars(codes).items() if name.isupper() and name != "EPILOG"}
    table = (DOCS / "files.md").read_text().partition("## Exit codes")[2].partition("##")[0]
    assert {int(n) for n in re.findall(r"^\| (\d+) \|", table, flags=re.MULTILINE)} == used | {1}


def test_everything_public_is_in_the_reference():
    text = (DOCS / "reference.md").read_text()
    listed = set(re.findall(r"auto(?:class|function):: finalist\.(\w+)$", text, re.MULTILINE))
    assert set(fl.__all__) - {"__version__"} <= listed


@pytest.mark.parametrize("program", sorted(path.stem for path in DOCS.glob("*.py")))
def test_programs_that_draw_and_write_the_documentation_can_be_loaded(program):
    import_module(f"docs.{program}")


def test_the_documentation_builds_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run([*command, DOCS, tmp_path / "html"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "html" / "_generated" / "commands.html").exists()


def test_the_generated_pages_have_every_command_and_call(tmp_path):
    generate.write(tmp_path)
    commands, calls = ((tmp_path / name).read_text() for name in ("commands.md", "http-api.md"))
    assert all(f"## {name}\n" in commands for name in COMMANDS)
    assert "Error" not in commands.partition("## ")[2].partition("Usage")[0]
    assert "### POST /api/v1/studies/{number}/tell" in calls
    assert os.listdir(tmp_path)
