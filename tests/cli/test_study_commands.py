"""Studies on the command line: a whole experiment with a spreadsheet, and what can go wrong."""

import csv
import json
import os
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import typer
from typer.testing import Result

import finalist as fl
from finalist.cli import codes
from finalist.cli.app import app
from finalist.cli.study import common
from finalist.study import Study, default_place
from tests.cli.common import MAGIC, check_refused, run, write

ARMS = "name,a,b,c\ntin,1,0,0\nzinc,0,1,0\n=lead,0,0,1\n"
MEANS = {"tin": 2.0, "zinc": 0.0, "=lead": -1.0}
SIGMA = 0.5


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of arms, where FINALIST_DB names a database."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINALIST_DB", str(tmp_path / "lab.db"))
    write(tmp_path / "arms.csv", ARMS)
    return tmp_path


@pytest.fixture
def begun(lab: Path) -> Path:
    """The folder, with a study that has its first batch in batch.csv."""
    assert run("new", "metals", "arms.csv", "--sigma", SIGMA, "--seed", 1).exit_code == 0
    assert run("ask", "metals", "--size", 12, "-o", "batch.csv").exit_code == 0
    return lab


def content(result: Result) -> dict[str, Any]:
    return cast(dict[str, Any], json.loads(result.stdout))


def status() -> dict[str, Any]:
    return content(run("status", "metals", "--no-forecast", "--format", "json"))


def fill(path: Path, decimal: str = ".", seed: int = 0) -> Path:
    """Fill in rewards as a spreadsheet saves them: a byte-order mark, CRLF, a column of its own."""
    delimiter = "," if decimal == "." else ";"
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file, delimiter=delimiter)
    rng = np.random.default_rng([seed, int(rows[0][0])])
    for row in rows:
        name = row[header.index("candidate")].removeprefix("'")
        reward = MEANS[name] + SIGMA * rng.standard_normal()
        row[header.index("result")] = f"{reward:.6f}".replace(".", decimal)
        row.append("Łódź")
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\r\n")
        writer.writerows([[*header, "operator"], *rows])
    return path


def replace_cell(path: Path, line: int, column: str, text: str) -> None:
    """Change a cell; line 1 is the header."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    rows[line - 1][rows[0].index(column)] = text
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


# ---- a whole life -------------------------------------------------------------------------


@pytest.mark.parametrize("decimal", [".", ","])
def test_a_whole_experiment_needs_nothing_but_a_spreadsheet(lab: Path, decimal: str) -> None:
    assert run("new", "metals", "arms.csv", "--sigma", SIGMA, "--seed", 1).exit_code == 0
    batch, told = lab / "batch.csv", []
    for _ in range(50):
        batch.unlink(missing_ok=True)
        asked = run("ask", "metals", "--size", 2, "--decimal", decimal, "-o", batch)
        assert asked.exit_code == codes.DONE
        if not batch.exists():
            break
        told.append(run("tell", "metals", fill(batch, decimal), "--decimal", decimal).exit_code)
    assert told[:-1] == [codes.CONTINUE] * (len(told) - 1)
    assert len(told) > 1
    found = run("status", "metals", "--format", "json")
    assert found.exit_code == codes.DONE
    assert (content(found)["verdict"], content(found)["winner"]) == ("winner", "tin")
    assert content(found)["pulls"] == 2 * len(told)

    asked = run("ask", "metals", "-o", batch)
    assert asked.exit_code == codes.DONE
    assert "tin is the best" in asked.stderr
    assert not batch.exists()
    exported = run("export", "metals").stdout
    assert exported.count("Łódź") == 2 * len(told)
    assert "'=lead" in exported


def test_ask_hands_out_the_same_batch_until_it_is_told(begun: Path) -> None:
    first = (begun / "batch.csv").read_text()
    run("ask", "metals", "--size", 12, "-o", "again.csv")
    assert (begun / "again.csv").read_text() == first
    assert first.splitlines()[0] == "pull_id,candidate,a,b,c,result,note"
    table = run("ask", "metals", "--size", 5, "--features").stdout
    assert "5 measurements to make of 12 that are left" in table
    assert "\x1b" not in table


@pytest.mark.parametrize("option", ["--no-columns", "--no-features"])
def test_ask_leaves_out_the_candidates_columns_if_asked(begun: Path, option: str) -> None:
    run("ask", "metals", "--features", "-o", "wide.csv")
    assert (begun / "wide.csv").read_text() == (begun / "batch.csv").read_text()
    run("ask", "metals", option, "-o", "narrow.csv")
    assert (begun / "narrow.csv").read_text().splitlines()[0] == "pull_id,candidate,result,note"
    printed = run("ask", "metals", "--format", "csv").stdout
    assert printed.splitlines() == (begun / "batch.csv").read_text().splitlines()
    pulls = content(run("ask", "metals", "--features", "--format", "json"))["pulls"]
    features = {pull["arm"]: pull["features"] for pull in pulls}
    assert features["tin"] == {"a": 1.0, "b": 0.0, "c": 0.0, "intercept": 1.0}


def test_the_hint_of_ask_can_be_copied(begun: Path) -> None:
    asked = run("ask", "metals", "--decimal", ",", "-o", "my batch.csv", "--db", "lab.db")
    hint = asked.stderr.strip().splitlines()[-1].strip()
    assert hint == "finalist tell metals 'my batch.csv' --decimal , --db lab.db"


def test_parts_of_a_batch_can_be_told_and_told_again(begun: Path) -> None:
    path = fill(begun / "batch.csv")
    lines = path.read_text(encoding="utf-8-sig").splitlines(keepends=True)
    part = write(begun / "part.csv", "".join(lines[:6]))
    first = run("tell", "metals", part)
    assert first.exit_code == codes.CONTINUE
    assert "Stored 5 new results" in first.stdout
    assert "7 measurements of this batch are without a result" in first.stdout
    assert content(run("tell", "metals", part, "--format", "json"))["new"] == 0
    assert content(run("tell", "metals", path, "--format", "json"))["new"] == 7


def test_a_client_id_is_used_for_one_call(begun: Path) -> None:
    path = fill(begun / "batch.csv")
    assert run("tell", "metals", path, "--client-id", "monday").exit_code == codes.CONTINUE
    again = run("tell", "metals", path, "--client-id", "monday", "--format", "json")
    assert content(again)["new"] == 0
    replace_cell(path, 2, "result", "0.5")
    check_refused(run("tell", "metals", path, "--client-id", "monday"), "'monday'")


def test_a_worker_waits_when_others_have_all_pulls(lab: Path) -> None:
    run("new", "metals", "arms.csv", "--sigma", SIGMA)
    first = content(run("ask", "metals", "--worker", "ann", "--size", 100, "--format", "json"))
    assert {pull["worker"] for pull in first["pulls"]} == {"ann"}
    waiting = run("ask", "metals", "--worker", "bob")
    assert waiting.exit_code == codes.CONTINUE
    assert "another worker" in waiting.stdout
    waiting = run("ask", "metals", "--worker", "bob", "--format", "json")
    assert (waiting.exit_code, content(waiting)["state"]) == (codes.CONTINUE, "waiting")


def test_a_study_without_budget_ends_undecided_with_code_0(lab: Path) -> None:
    run("new", "metals", "arms.csv", "--sigma", 50, "--budget", 12, "--seed", 1)
    run("ask", "metals", "--size", 12, "-o", "batch.csv")
    told = run("tell", "metals", fill(lab / "batch.csv"), "--format", "json")
    assert told.exit_code == codes.DONE
    assert content(told)["status"]["verdict"] == "undecided"
    asked = run("ask", "metals")
    assert (asked.exit_code, "budget" in asked.stdout) == (codes.DONE, True)
    assert run("status", "metals").exit_code == codes.DONE


# ---- new ----------------------------------------------------------------------------------


def test_the_settings_of_a_study_are_those_given(lab: Path) -> None:
    words = "--sigma unknown --delta 0.1 --epsilon 0.2 --minimise --budget 500 --seed 7"
    made = run(
        "new", "metals", "arms.csv", *words.split(), "--set", "growth=0.2", "--format", "json"
    )
    found = content(made)
    settings = found["settings"]
    assert settings["noise"] == {"model": "gaussian", "sigma": None}
    assert settings["strategy"] == {"name": "gauntlet", "settings": {"growth": 0.2}}
    assert (settings["delta"], settings["epsilon"], settings["objective"]) == (0.1, 0.2, "min")
    assert (settings["budget"], settings["seed"], found["arms"]) == (500, 7, 3)


def test_what_a_strategy_has_to_be_told_is_a_setting(lab: Path) -> None:
    words = ("--sigma", "1", "--strategy", "lingape")
    refused = run("new", "metals", "arms.csv", *words)
    assert refused.exit_code == 2
    assert "--set theta_norm=" in refused.stderr
    made = run("new", "metals", "arms.csv", *words, "--set", "theta_norm=3", "--format", "json")
    assert content(made)["settings"]["strategy"]["settings"]["theta_norm"] == 3


def test_sigma_has_no_default_except_for_rewards_0_and_1(lab: Path) -> None:
    check_refused(run("new", "metals", "arms.csv"), "--sigma", "'unknown'", "--noise bernoulli")
    check_refused(run("new", "metals", "arms.csv", "--sigma", "1,5"), "'1,5'")
    assert not (lab / "lab.db").exists()
    assert run("new", "coins", "arms.csv", "--noise", "bernoulli").exit_code == 0


def test_earlier_measurements_are_brought_in(lab: Path) -> None:
    path = write(lab / "old.csv", "\ufeffdate;Arm;Reward\r\n1;tin;1,5\r\n2;'=lead;-2\r\n")
    words = ("--sigma", 1, "--history", path, "--decimal", ",", "--format", "json")
    assert content(run("new", "metals", "arms.csv", *words))["history"] == 2
    kinds = [
        event["kind"] for event in content(run("export", "metals", "--format", "json"))["events"]
    ]
    assert kinds == ["created", "history"]
    assert "2 earlier measurements" in " ".join(run("status", "metals").stdout.split())


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("arm,reward\ntin,1\ntin,oops\n", ("line 3", "column 'reward'", "'oops'")),
        ("arm,reward\ntin,1\ntin,inf\n", ("line 3", "column 'reward'", "'inf'")),
        ("arm,reward\ntin,1\n,2\n", ("line 3", "column 'arm'")),
        ("arm,day,value\ntin,1,1\n", ("line 1", "'result' or 'reward'", "--result-column")),
        ("arm,reward\nton,1\n", ("1 candidate", "'ton'", "--known-only")),
        ("arm,reward\n", ("no measurements",)),
    ],
)
def test_wrong_earlier_measurements_begin_no_study(
    lab: Path, text: str, parts: tuple[str, ...]
) -> None:
    path = write(lab / "old.csv", text)
    check_refused(run("new", "metals", "arms.csv", "--sigma", 1, "--history", path), *parts)
    assert not (lab / "lab.db").exists()


def test_a_strategy_without_use_for_history_begins_no_study(lab: Path) -> None:
    path = write(lab / "old.csv", "arm,reward\ntin,1\n")
    words = ("--sigma", 1, "--history", path, "--strategy", "uniform")
    check_refused(run("new", "metals", "arms.csv", *words), "earlier measurements")
    assert not (lab / "lab.db").exists()


# ---- bad cells ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "column", "text", "parts"),
    [
        (4, "result", "oops", ("line 4, column 'result'", "'oops'")),
        (13, "result", "nan", ("line 13, column 'result'",)),
        (2, "result", "1e400", ("line 2, column 'result'",)),
        (5, "result", "0,5", ("line 5, column 'result'", "decimal")),
        (6, "pull_id", "six", ("line 6, column 'pull_id'",)),
        (6, "pull_id", "999", ("999",)),
        (3, "candidate", "gold", ("'gold'", "mixed up")),
    ],
)
def test_a_bad_cell_is_named_and_nothing_is_stored(
    begun: Path, line: int, column: str, text: str, parts: tuple[str, ...]
) -> None:
    path = fill(begun / "batch.csv")
    replace_cell(path, line, column, text)
    check_refused(run("tell", "metals", path), *parts)
    assert (status()["pulls"], status()["open_pulls"]) == (0, 12)


def test_every_bad_cell_is_named(begun: Path) -> None:
    path = fill(begun / "batch.csv")
    replace_cell(path, 3, "result", "x")
    replace_cell(path, 7, "result", "y")
    check_refused(run("tell", "metals", path), "line 3, column 'result'", "line 7, column 'result'")


def test_an_empty_sheet_is_refused(begun: Path) -> None:
    check_refused(run("tell", "metals", begun / "batch.csv"), "no result is filled in")


# ---- mending ------------------------------------------------------------------------------


def test_a_void_pull_is_replaced(begun: Path) -> None:
    done = run("void", "metals", 3, "--reason", "dropped", "--format", "json")
    arms = {
        pull["pull_id"]: pull["arm"]
        for pull in content(run("ask", "metals", "--format", "json"))["pulls"]
    }
    new = content(done)["replacement"]
    assert new["pull_id"] == 13
    assert arms[13] == new["arm"]
    assert 3 not in arms
    check_refused(run("void", "metals", 3, "--reason", "again"), "void already")


def test_a_reason_is_needed(begun: Path) -> None:
    for command in (("void", "metals", 3), ("missing", "metals", 3), ("stop", "metals")):
        check_refused(run(*command), "--reason")


def test_a_missing_pull_completes_a_batch(begun: Path) -> None:
    path = fill(begun / "batch.csv")
    replace_cell(path, 5, "result", "")
    run("tell", "metals", path)
    assert (status()["batches"], status()["open_pulls"]) == (0, 1)
    assert "goes on without" in run("missing", "metals", 4, "--reason", "lost").stdout
    assert (status()["batches"], status()["pulls"]) == (1, 11)


def test_a_reward_can_be_amended_until_it_is_used(begun: Path) -> None:
    path = fill(begun / "batch.csv")
    replace_cell(path, 2, "result", "")
    run("tell", "metals", path)
    assert run("amend", "metals", 5, "-0.25", "--reason", "typing error").exit_code == 0
    pulls = content(run("export", "metals", "--format", "json"))["pulls"]
    assert pulls[4]["reward"] == -0.25
    assert pulls[0]["reward"] is None
    run("missing", "metals", 1, "--reason", "lost")
    check_refused(run("amend", "metals", 5, "1", "--reason", "late"), "batch 1 is decided on")


def test_a_fork_tells_a_batch_again(begun: Path) -> None:
    run("tell", "metals", fill(begun / "batch.csv"))
    assert run("fork", "metals", "metals-2", "--until", 1).exit_code == 0
    asked = content(run("ask", "metals-2", "--format", "json"))
    assert [pull["pull_id"] for pull in asked["pulls"]] == list(range(1, 13))
    check_refused(run("fork", "metals", "metals-3", "--until", 9), "no batch 9")


def test_a_fork_with_another_model_says_what_the_deltas_add_up_to(begun: Path) -> None:
    run("tell", "metals", fill(begun / "batch.csv"))
    said = run("fork", "metals", "bent", "--model", "bending")
    assert said.exit_code == 0
    words = " ".join(said.stdout.split())
    assert "model bending and fresh evidence" in words
    assert "0.05 + 0.05 = 0.1 in all" in words
    found = content(run("fork", "metals", "apart", "--model", "separate", "--format", "json"))
    keys = ("name", "fork_of", "until", "model", "epsilon", "history")
    assert [found[key] for key in keys] == ["apart", "metals", None, "separate", None, 12]
    enough = run("fork", "metals", "enough", "--epsilon", 0.5)
    words = " ".join(enough.stdout.split())
    assert "Study 'enough' begins: this study has a margin of 0.5 and fresh evidence" in words
    assert "0.05 + 0.05 = 0.1 in all" in words
    found = content(run("status", "enough", "--format", "json"))
    assert (found["epsilon"], found["pulls"]) == (0.5, 0)
    assert content(run("status", "bent", "--format", "json"))["pulls"] == 0
    check_refused(run("fork", "metals", "other", "--model", "cubic"), "no model 'cubic'")
    check_refused(run("fork", "metals", "other", "--epsilon", "-1"), "epsilon is -1")
    check_refused(run("fork", "metals", "other"), "neither is given")
    both = ("--model", "bending", "--until", 1)
    check_refused(run("fork", "metals", "other", *both), "both are given")


def test_a_model_that_does_not_fit_is_answered_with_the_command_for_another(tmp_path: Path) -> None:
    db = tmp_path / "lab.db"
    x = np.linspace(-1.0, 1.0, 9)
    arms = fl.Arms(x[:, None], [f"{n} g" for n in range(9)]).with_intercept()
    with fl.Study.create(db, "my oven", arms, sigma=0.1, seed=1) as study:
        for size in (12, 12, 12):
            batch = study.ask(size=size)
            study.tell({pull.pull_id: -(x[arms.index(pull.arm)] ** 2) for pull in batch})
            if study.status(forecast=False).doubts:
                break
        last = study.ask(size=4)
    whole = shlex.join(["finalist", "fork", "my oven", "my oven 2", "--model", "bending"])
    sheet = write(
        tmp_path / "batch.csv",
        "pull_id,result\n" + "".join(f"{pull.pull_id},0.0\n" for pull in last),
    )
    told = run("tell", "my oven", sheet, "--db", db).stdout
    assert f"{whole} --db {db}." in told
    assert "Next: do what the warning says, or go on as it is: finalist ask 'my oven'" in told
    said = " ".join(run("status", "my oven", "--no-forecast", "--db", db).stdout.split())
    assert f"Go on with a model that has it: {whole} --db {db}." in said
    assert "NAME" not in told + said


def test_a_study_stops_and_goes_on(begun: Path) -> None:
    stopped = run("stop", "metals", "--reason", "holidays")
    assert stopped.exit_code == 0
    assert "holidays" in stopped.stdout
    assert run("status", "metals").exit_code == codes.DONE
    asked = run("ask", "metals")
    assert (asked.exit_code, "was stopped" in asked.stdout) == (codes.DONE, True)
    assert run("resume", "metals").exit_code == 0
    assert run("status", "metals").exit_code == codes.CONTINUE


def test_a_study_is_deleted_only_if_that_is_meant(begun: Path) -> None:
    check_refused(run("delete", "metals"), "--yes")
    assert run("delete", "metals", "--yes").exit_code == 0
    check_refused(run("status", "metals"), "no study 'metals'")


# ---- looking ------------------------------------------------------------------------------


def test_status_shows_evidence_estimates_and_what_it_rests_on(begun: Path) -> None:
    run("tell", "metals", fill(begun / "batch.csv"))
    assert "No candidate is ruled out yet: any of the 3" in run("status", "metals").stdout
    asked = run("ask", "metals", "--size", 12)  # the pilot is enough
    assert "tin is the best, after 12 measurements" in asked.stdout
    text = run("status", "metals").stdout
    assert text.startswith("tin is the best, after 12 measurements")
    for word in ("Evidence", "Behind", " to ", "This rests on", "12 results in 2 batches"):
        assert word in text
    assert "12 measurements were not needed" in text
    rows = [line.split()[0] for line in text.splitlines() if line.startswith(" ")]
    assert rows[2] == "tin"  # after the header and its line: the best estimate
    with (begun / "arms-now.csv").open("w") as file:
        file.write(run("status", "metals", "--format", "csv").stdout)
    with (begun / "arms-now.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["name"] for line in lines] == ["tin", "zinc", "'=lead"]
    assert sum(int(line["pulls"]) for line in lines) == 12


def test_the_smallest_mean_comes_first_when_it_is_best(lab: Path) -> None:
    run("new", "metals", "arms.csv", "--sigma", SIGMA, "--minimise", "--seed", 1)
    run("ask", "metals", "--size", 12, "-o", "batch.csv")
    run("tell", "metals", fill(lab / "batch.csv"))
    rows = [
        line.split()[0] for line in run("status", "metals").stdout.splitlines() if line[:1] == " "
    ]
    assert rows[2] == "=lead"


def test_status_draws_the_evidence(begun: Path) -> None:
    check_refused(run("status", "metals", "--chart", "evidence.png"), "no evidence to draw")
    run("tell", "metals", fill(begun / "batch.csv"))
    assert run("status", "metals", "--chart", "evidence.svg").exit_code == codes.CONTINUE
    assert (begun / "evidence.svg").read_bytes().startswith(MAGIC["svg"])


def test_a_strategy_without_evidence_has_a_table_without_bars(lab: Path) -> None:
    run("new", "metals", "arms.csv", "--sigma", SIGMA, "--strategy", "uniform")
    run("ask", "metals", "--size", 12, "-o", "batch.csv")
    run("tell", "metals", fill(lab / "batch.csv"))
    text = run("status", "metals").stdout
    assert "Evidence" not in text
    check_refused(run("status", "metals", "--chart", "evidence.png"), "no evidence to draw")


def test_names_cannot_send_commands_to_the_terminal(lab: Path) -> None:
    write(lab / "arms.csv", "name,a,b\n\x1b[2Jx,1,0\ny\x07,0,1\n")
    name = "\x1b]0;study"
    results = [run("new", name, "arms.csv", "--sigma", 1)]
    results += [run("ask", name, "--worker", "\x1b[1m")]
    results += [run("stop", name, "--reason", "\x1b[5m"), run("ask", name), run("status", name)]
    results += [run("resume", name), run("list"), run("delete", name)]
    results += [run("ask", name[:-1]), run("export", "\x1b")]
    assert [r.exit_code for r in results] == [0, 0, 0, 0, 0, 0, 0, 2, 2, 2]
    assert "\\x1b[5m" in results[4].stdout.splitlines()[0]  # the sentence of the status
    assert "\\x1b[2Jx" in results[4].stdout  # the table
    for result in results:
        assert "\x1b" not in result.output
        assert "\x07" not in result.output


def test_a_list_has_all_studies_and_their_verdicts(begun: Path) -> None:
    run("new", "coins", "arms.csv", "--noise", "bernoulli")
    rows = content(run("list", "--format", "json"))["studies"]
    assert [(row["name"], row["verdict"]) for row in rows] == [
        ("coins", "continue"),
        ("metals", "continue"),
    ]
    assert "gauntlet" in run("list").stdout
    assert run("list", "--format", "csv").stdout.startswith("name,created,strategy")


def test_no_cell_of_a_list_is_run_by_a_spreadsheet(begun: Path) -> None:
    with Study.open(default_place(), "metals") as study:
        while batch := study.ask(12):
            study.tell({pull.pull_id: 9.0 * (pull.arm == "=lead") for pull in batch})
    header, row = csv.reader(run("list", "--format", "csv").stdout.splitlines())
    assert row[header.index("winner")] == "'=lead"


def test_one_of_something_is_not_several(begun: Path) -> None:
    pulls = [row.split(",")[0] for row in (begun / "batch.csv").read_text().splitlines()[1:]]
    write(begun / "one.csv", f"pull_id,reward\n{pulls[0]},1.0\n")
    told = run("tell", "metals", "one.csv").stdout
    assert "Stored 1 new result." in told
    assert "11 measurements of this batch are without a result." in told
    assert (
        "1 result in 0 complete batches; 11 measurements are "
        "without" in run("status", "metals").stdout
    )
    assert "Batch 1: 1 measurement to make of 11" in run("ask", "metals", "--size", 1).stdout
    write(begun / "rest.csv", "pull_id,reward\n" + "".join(f"{p},1\n" for p in pulls[1:-1]))
    told = run("tell", "metals", "rest.csv").stdout
    assert "1 measurement of this batch is without a result." in told
    write(begun / "before.csv", "arm,reward\ntin,1\n")
    made = run("new", "coins", "arms.csv", "--sigma", 1, "--history", "before.csv", "--budget", 1)
    assert "Old results: 1 measurement of 1 candidate;" in made.stdout
    assert "1 measurement of the budget is left." in run("status", "coins").stdout


def test_an_unknown_study_suggests_close_names(begun: Path) -> None:
    for words in (("ask",), ("status",), ("tell", "arms.csv"), ("export",)):
        check_refused(run(words[0], "metal", *words[1:]), "Did you mean 'metals'?")


# ---- the database -------------------------------------------------------------------------


def test_the_database_is_where_finalist_db_says_or_db(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("new", "metals", "arms.csv", "--sigma", 1)
    assert (lab / "lab.db").exists()
    run("new", "metals", "arms.csv", "--sigma", 1, "--db", "other.db")
    assert (lab / "other.db").exists()
    monkeypatch.delenv("FINALIST_DB")
    assert common.place() == default_place()
    check_refused(run("status", "metals"), "finalist.db")
    monkeypatch.setenv("FINALIST_DB", "other.db")
    assert common.place() == default_place()
    assert run("status", "metals").exit_code == codes.CONTINUE


def test_a_database_is_checked_copied_and_upgraded(begun: Path) -> None:
    assert "in order" in run("db", "check").stdout
    assert run("db", "backup", "copy.db").exit_code == 0
    check_refused(run("db", "backup", "copy.db"), "not replaced")
    assert run("status", "metals", "--db", "copy.db").exit_code == codes.CONTINUE
    assert "nothing to do" in run("db", "upgrade").stdout
    check_refused(run("db", "check", "--db", "nowhere.db"), "no file nowhere.db")


def test_a_backup_is_put_back_and_the_old_file_kept(begun: Path) -> None:
    assert run("db", "backup", "copy.db").exit_code == 0
    assert run("note", "metals", "after the backup").exit_code == 0
    said = run("db", "restore", "copy.db")
    assert said.exit_code == 0
    assert "lab.db is a copy of copy.db" in said.stdout
    assert "after the backup" not in run("export", "metals", "--format", "json").stdout
    (old,) = begun.glob("lab.db.replaced-*")
    assert old.name in said.stdout
    kept = run("export", "metals", "--format", "json", "--db", str(old))
    assert "after the backup" in kept.stdout
    check_refused(run("db", "restore", "nowhere.db"), "no file nowhere.db")
    check_refused(run("db", "restore", "lab.db"), "is the backup itself")


def test_damage_is_found_and_hides_no_other_study(begun: Path) -> None:
    run("new", "coins", "arms.csv", "--noise", "bernoulli")
    with sqlite3.connect(begun / "lab.db") as connection:
        connection.execute("UPDATE arms SET names = '[]' WHERE study = 1")
    connection.close()
    found = run("db", "check", "--format", "json")
    assert found.exit_code == codes.WRONG
    assert "'metals'" in content(found)["problems"][0]
    assert found.stderr.startswith("Error: ")
    rows = content(run("list", "--format", "json"))["studies"]
    assert [row["error"] is None for row in rows] == [True, False]
    assert "cannot be read" in run("list").stdout


# ---- programs and shells ------------------------------------------------------------------


def test_every_command_prints_json(begun: Path) -> None:
    fill(begun / "batch.csv")
    replace_cell(begun / "batch.csv", 2, "result", "")
    write(begun / "old.csv", "arm,reward\ntin,1\ntin,2.5\n")
    commands: dict[str, tuple[object, ...]] = {
        "new": ("other", "arms.csv", "--sigma", 1),
        "ask": ("metals",),
        "tell": ("metals", "batch.csv"),
        "amend": ("metals", 2, 0.5, "--reason", "typing error"),
        "void": ("metals", 1, "--reason", "dropped"),
        "missing": ("metals", 13, "--reason", "lost"),
        "status": ("metals",),
        "note": ("metals", "a new lamp"),
        "stop": ("metals", "--reason", "holidays"),
        "resume": ("metals",),
        "budget": ("metals", "--none"),
        "fork": ("metals", "metals-2", "--until", 1),
        "delete": ("metals-2", "--yes"),
        "list": (),
        "export": ("metals",),
        "sigma": ("old.csv",),
        "db upgrade": (),
        "db backup": ("copy.db",),
        "db restore": ("copy.db",),
        "db check": (),
    }
    for command, words in commands.items():
        result = run(*command.split(), *words, "--format", "json")
        expected = codes.CONTINUE if command in ("tell", "status") else codes.DONE
        assert result.exit_code == expected, (command, result.output)
        assert isinstance(content(result), dict)
    others = {"benchmark", "complexity", "demo", "design", "plan", "report", "reproduce"}
    others |= {"region", "serve", "simulate", "warmup"}
    others |= {"undo"}  # its JSON is in test_undo_command
    assert {c.name for c in app.registered_commands} - others == {
        c for c in commands if " " not in c
    }


@pytest.mark.parametrize("command", ["upgrade", "backup", "restore", "check"])
def test_every_command_of_the_database_has_an_example(command: str) -> None:
    text = run("db", command, "--help").stdout
    assert f"Example:\n    finalist db {command} " in text
    assert "Exit codes: 0 done; 10 the study goes on" in text


def offered(incomplete: str, **params: object) -> list[str]:
    context = cast(typer.Context, SimpleNamespace(params=params))
    return common.study_names(context, incomplete)


@pytest.fixture
def named(lab: Path) -> Path:
    run("new", "metals", "arms.csv", "--sigma", 1)
    run("new", "mint", "arms.csv", "--sigma", 1)
    for name in ("m$(reboot)", "m;ls", "m x", "m\x1b"):
        run("new", name, "arms.csv", "--sigma", 1)
    return lab


def test_the_shell_is_offered_names_it_does_not_take_apart(named: Path) -> None:
    assert offered("m") == ["metals", "mint"]
    assert offered("me", db=None) == ["metals"]
    assert offered("x") == []


def test_completion_reads_what_is_being_written_and_changes_nothing(named: Path) -> None:
    with Study.open("lab.db", "mint"):  # keeps what is new beside the file
        run("new", "more", "arms.csv", "--sigma", 1)
        assert offered("mo") == ["more"]
    before = {path.name: path.read_bytes() for path in named.iterdir()}
    assert offered("mo") == ["more"]
    assert {path.name: path.read_bytes() for path in named.iterdir()} == before


@pytest.mark.parametrize(
    "db", ["nowhere.db", ".", "arms.csv", "postgresql://x@y/z", "a\0b", "empty"]
)
def test_completion_never_fails(named: Path, db: str) -> None:
    (named / "empty").touch()
    assert offered("", db=db) == []
    assert not (named / "nowhere.db").exists()


def test_a_shell_completes_the_name_of_a_study(named: Path) -> None:
    environment = {
        **os.environ,
        "_FINALIST_COMPLETE": "complete_bash",
        "COMP_WORDS": "finalist status --db lab.db me",
        "COMP_CWORD": "4",
    }
    script = Path(sys.executable).with_name("finalist")
    done = subprocess.run(
        [script], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["metals"]
    assert done.stderr == ""
