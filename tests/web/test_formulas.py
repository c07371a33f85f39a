"""A formula is Python, evaluated for whoever calls `Arms.from_formula`; elsewhere it is text.

A formula that would write a file is put wherever text can come in: names of columns and arms,
settings, remarks; in files, through the page and through the API. The file is never there.
"""

import ast
import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import finalist as fl
from finalist.data import _TABLES
from finalist.errors import FinalistError
from finalist.web.arms_preview import pack
from finalist.web.pages.form import DEFAULTS
from tests.cli.common import run
from tests.web.labs import person
from tests.web.servers import api, in_thread

SRC = Path(__file__).parents[2] / "src" / "finalist"


class Trap:
    """A formula that writes a file when it is evaluated, and the ways to write it down."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "evaluated"
        self.formula = f"I(__import__('pathlib').Path({str(self.file)!r}).write_text('x') + dose)"
        self.names = [self.formula, f"C({self.formula})", f"{{{self.formula}}}", "plain"]
        self.columns = ["dose", self.formula, f"~ {self.formula}"]
        self.features = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.4, 0.7, 1.0], [0.2, 0.1, 0]])
        self.metadata = {"formula": self.formula, "arms": {"from_formula": self.formula}}

    def arms(self) -> fl.Arms:
        return fl.Arms(self.frame())

    def frame(self) -> pd.DataFrame:
        frame = pd.DataFrame(self.features, columns=self.columns)
        frame.insert(0, "name", self.names)
        return frame

    def csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(["name", *self.columns])
        writer.writerows(
            [name, *row] for name, row in zip(self.names, self.features.tolist(), strict=True)
        )
        return text.getvalue()

    def study(self, name: str = "trap") -> fl.Study:
        study = fl.Study.create(
            self.folder / "lab.db", name, self.arms(), sigma=1.0, seed=1, metadata=self.metadata
        )
        batch = study.ask(12, worker=self.formula)
        study.tell({pull.pull_id: 0.5 for pull in batch})
        study.note(self.formula)
        return study


@pytest.fixture
def trap(tmp_path):
    trap = Trap(tmp_path)
    yield trap
    assert not trap.file.exists(), "a formula was evaluated"


def test_the_trap_works(tmp_path):
    trap = Trap(tmp_path)
    fl.Arms.from_formula(trap.formula, pd.DataFrame({"dose": [1.0, 2.0]}))
    assert trap.file.exists()


def test_formulas_in_files_of_arms_are_names(trap):
    (trap.folder / "arms.csv").write_text(trap.csv())
    trap.frame().to_parquet(trap.folder / "arms.parquet")
    for arms in (
        trap.arms(),
        fl.Arms.from_csv(trap.folder / "arms.csv"),
        fl.Arms.from_parquet(trap.folder / "arms.parquet"),
    ):
        assert arms.names == tuple(trap.names)
        assert arms.feature_names == tuple(trap.columns)


def test_formulas_in_cells_are_refused_as_text(trap):
    cell = '"' + trap.formula.replace('"', '""') + '"'
    path = trap.folder / "arms.csv"
    path.write_text(f"name,dose\na,1\nb,{cell}\n")
    with pytest.raises(FinalistError, match="line 3, column 'dose'"):
        fl.Arms.from_csv(path)


def test_formulas_kept_with_a_study_are_text(trap):
    with trap.study() as study:
        study.withdraw(trap.names[1])
        more = pd.DataFrame([[0.3, 0.3, 0.3]], columns=trap.columns)
        study.add(fl.Arms(more, [f"new {trap.formula}"]))
        study.fork("fork", until=1).close()
    for name in ("trap", "fork"):
        with fl.Study.open(trap.folder / "lab.db", name) as study:
            assert study.metadata == trap.metadata
            assert study.arms.feature_names == tuple(trap.columns)
            study.ask(8)
            study.status()
            study.to_frame()
            study.history()


def test_formulas_given_to_commands_are_text(trap):
    (trap.folder / "arms.csv").write_text(trap.csv())
    (trap.folder / "history.csv").write_text("arm,reward\nplain,1\nplain,0.5\n")
    db = ("--db", trap.folder / "lab.db")
    batch = trap.folder / "batch.csv"
    for words in (
        ("design", trap.folder / "arms.csv"),
        ("new", "trap", trap.folder / "arms.csv", "--sigma", "1", *db),
        ("ask", "trap", "--size", "12", "--features", "-o", batch, *db),
        ("note", "trap", trap.formula, *db),
        ("status", "trap", *db),
        ("report", "trap", "-o", trap.folder / "report.html", *db),
        ("export", "trap", "--format", "json", "-o", trap.folder / "trap.json", *db),
        ("db", "check", *db),
    ):
        done = run(*words)
        assert done.exit_code in (0, 10), (words, done.output)
    rows = list(csv.DictReader(batch.read_text().splitlines()))
    for row in rows:
        row["reward"] = "0.5"
    with batch.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    assert run("tell", "trap", batch, *db).exit_code in (0, 10)
    exported = json.loads((trap.folder / "trap.json").read_text())
    assert trap.formula in json.dumps(exported, ensure_ascii=False)
    # What was exported is no file of arms; nothing is made of it.
    assert run("new", "again", trap.folder / "trap.json", "--sigma", "1", *db).exit_code == 2


def test_two_commands_take_a_formula_from_whoever_types_it():
    from docs import generate

    taking = set()
    for name, command in generate.commands().items():
        options = {option for p in command.params for option in [*p.opts, *p.secondary_opts]}
        taking |= {name for option in options if "formula" in option}
    assert taking == {"finalist new", "finalist plan"}


def test_a_formula_on_the_command_line_makes_the_features(tmp_path):
    file, db = tmp_path / "arms.csv", ("--db", tmp_path / "lab.db")
    file.write_text("Sort;Kind;Dose;SD\na;u;1,5;1\nb;v;2;1\nc;u;4;2\n")
    words = ("--formula", "Dose + I(Dose**2) + C(Kind)", "--column", "SD=noise")
    made = run("new", "one", file, *words, *db)
    assert made.exit_code == 0, made.output
    assert "Model: formula: Dose + I(Dose**2) + C(Kind)" in made.stdout
    with fl.Study.open(tmp_path / "lab.db", "one") as study:
        assert study.arms.feature_names == ("Intercept", "Dose", "I(Dose ** 2)", "C(Kind)[T.v]")
        assert study.arms.features[:, 2].tolist() == [2.25, 4.0, 16.0]
        assert study.arms.names == ("a", "b", "c")
        assert study.arms.table["Kind"] == ("u", "v", "u")
        assert study.settings["noise"]["sigma"] == [1.0, 1.0, 2.0]
        assert study.arms.with_model("bending").rank == 3
    for wrong, part in (("Dosis", "cannot be used"), ("SD ~ Dose", "right-hand side")):
        refused = run("new", "two", file, "--sigma", 1, "--formula", wrong, *db)
        assert refused.exit_code == 2
        assert part in refused.stderr
    both = run("new", "two", file, "--sigma", 1, "--formula", "Dose", "--candidates", file, *db)
    assert "--formula and --candidates" in both.stderr


def test_formulas_sent_to_the_api_are_text(trap):
    arms = {
        "names": trap.names,
        "feature_names": trap.columns,
        "features": trap.features.tolist(),
    }
    with in_thread(trap.folder / "lab.db") as url, api(url) as client:
        question = {"sigma": 1.0, "seed": 1, "metadata": trap.metadata}
        for given in ({"name": "json", "arms": arms}, {"name": "csv", "arms_csv": trap.csv()}):
            answer = client.post("/studies", json={**question, **given})
            assert answer.status_code == 201, answer.text
            number = answer.json()["number"]
            batch = client.post(f"/studies/{number}/ask", json={"size": 12, "worker": trap.formula})
            results = [{"pull_id": p["pull_id"], "reward": 0.5} for p in batch.json()["pulls"]]
            told = client.post(f"/studies/{number}/tell", json={"results": results})
            noted = client.post(f"/studies/{number}/note", json={"text": trap.formula})
            assert (told.status_code, noted.status_code) == (200, 200), (told.text, noted.text)
            for path in ("", "/status", "/arms", "/evidence", "/history", "/export.json"):
                assert client.get(f"/studies/{number}{path}").status_code == 200, path
            assert client.get(f"/studies/{number}").json()["settings"]["metadata"] == trap.metadata
        preview = client.post("/arms/preview", content=trap.csv().encode(), headers=CSV)
        assert preview.status_code == 200, preview.text
        plan = client.post("/plan", json={"arms": arms, "sigma": 1.0, "gap": 0.5, "draws": 2})
        assert plan.status_code == 200, plan.text
        for more in ({"formula": trap.formula}, {"arms": {**arms, "formula": trap.formula}}):
            refused = client.post("/studies", json={**question, "name": "x", "arms": arms, **more})
            assert refused.status_code == 422, "nobody asks for formulas"
        assert fetched(url, trap)


CSV = {"Content-Type": "text/csv"}


def fetched(url: str, trap: Trap) -> bool:
    """Look at the study from another machine."""
    study = fl.connect(url).open("json")
    study.status()
    return study.arms.feature_names == tuple(trap.columns)


def test_formulas_typed_into_the_page_are_text(trap):
    with person(trap.folder / "lab.db") as somebody:
        table = trap.csv()
        seen = somebody.post("/new", files={"file": (f"{trap.formula}.csv", table.encode())})
        assert seen.status_code == 200
        draft = {**DEFAULTS, "arms": pack(table.encode()), "known": "known", "sigma": "1"}
        made = somebody.post("/new/study", {**draft, "name": trap.formula, "do": "create"})
        assert made.status_code == 303, made.text
        for field in DEFAULTS:  # every one in turn; most are refused
            wrong = {**draft, "name": f"a study of {field}", field: trap.formula, "do": "create"}
            assert somebody.post("/new/study", wrong).status_code in (303, 409, 422), field
        number = made.headers["location"].partition("?")[0]
        assert somebody.post(f"{number}/ask", {"size": "12"}).status_code == 303
        assert somebody.post(f"{number}/note", {"text": trap.formula}).status_code == 303
        for path in ("", "/history", "/report.html", "/add", "/pulls/1"):
            assert somebody.get(number + path).status_code == 200, path
        assert "__import__" in somebody.get(number).text


# --- who may evaluate ----------------------------------------------------------------------------


def uses(names: set[str], plain: bool = False) -> set[str]:
    """Return the files of the package that import or use names; plain: not as x.name."""
    found = set()
    for path in SRC.rglob("*.py"):
        used: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Name):
                used.add(node.id)
            elif isinstance(node, ast.Attribute) and not plain:
                used.add(node.attr)
            elif isinstance(node, ast.Import):
                used |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                used |= {(node.module or "").partition(".")[0], *(a.name for a in node.names)}
        if used & names:
            found.add(path.relative_to(SRC).as_posix())
    return found


def test_formulas_are_evaluated_only_for_callers_in_python():
    assert uses({"formulaic"}) == {"arms/inputs.py"}
    assert uses({"read_formula"}) == {"arms/sources.py", "arms/reading.py"}
    assert uses({"by_formula"}) == {"arms/table.py"}
    given = {
        p.relative_to(SRC).as_posix() for p in SRC.rglob("*.py") if " formula=" in p.read_text()
    }
    assert given == {"cli/inputs.py", "data/__init__.py"}, "typed, or written in the code"
    assert uses({"from_formula"}) == {"data/__init__.py"}
    source = (SRC / "data" / "__init__.py").read_text()
    for table in _TABLES.values():
        assert repr(table.formula).replace("'", '"') in source, "it is written in the code"


def test_nothing_else_evaluates_text_or_loads_objects():
    assert uses({"eval", "exec", "compile"}, plain=True) == set()
    assert uses({"eval", "exec"}) == set()
    assert uses({"pickle", "cloudpickle", "marshal", "shelve", "joblib"}) == {
        "compiled/cache.py",  # folders that are as trusted as the code
        "simulation/engine.py",  # processes of its own
        "testing/elsewhere.py",  # a process of its own
        "web/workers/process.py",  # likewise: nobody else has the other end of its pipes
        "web/workers/pool.py",
    }


def test_the_docstring_says_so():
    text = " ".join((fl.Arms.from_formula.__doc__ or "").split())
    assert "evaluates Python" in text
    assert "never give it text from somebody else" in text
