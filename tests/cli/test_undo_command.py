"""`finalist undo`: the last save is taken back, also beside a server on the same file."""

import json

from finalist.cli import codes
from finalist.study import Study
from tests.cli.common import check_refused, run, write
from tests.web.servers import browser_of, in_thread

ARMS = "name,a\n=lead,1\nzinc and tin,2\ntin,4\n"


def begin(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FINALIST_DB", str(folder / "lab.db"))
    write(folder / "arms.csv", ARMS)
    assert run("new", "metals", "arms.csv", "--sigma", 1, "--seed", 1).exit_code == 0
    assert run("ask", "metals", "--size", 6).exit_code == 0
    return Study.open(folder / "lab.db", "metals")


def test_it_prints_what_it_takes_back_and_the_same_is_asked_again(tmp_path, monkeypatch):
    with begin(tmp_path, monkeypatch) as study:
        study.tell({1: 0.25})
        study.tell({2: 5.0, 3: 0.5})
        answer = run("undo", "metals")
        assert answer.exit_code == codes.DONE
        assert "2 results taken back; the measurements are open again." in answer.stdout
        assert [line.split()[-2:] for line in answer.stdout.rstrip().splitlines()[-2:]] == [
            ["2", "5"],
            ["3", "0.5"],
        ]
        answer = run("undo", "metals", "--format", "json")
        names = {pull.pull_id: pull.arm for pull in study.ask()}
        assert json.loads(answer.stdout) == {
            "name": "metals",
            "taken_back": [{"pull_id": 1, "arm": names[1], "reward": 0.25}],
        }
        check_refused(run("undo", "metals"), "there is nothing to undo: no results are in yet")


def test_errors_say_commands(tmp_path, monkeypatch):
    with begin(tmp_path, monkeypatch) as study:
        study.tell({1: 0.25})
        study.amend(1, 0.5, "a slip")
        check_refused(run("undo", "metals"), "Correct it again with 'finalist amend'.")
        study.tell({pull.pull_id: 0.5 for pull in study.ask()})
        answer = run("undo", "metals")
        check_refused(answer, "a decision has used them")
        assert "'finalist fork NAME NEW --until 1'." in answer.stderr
        assert "study." not in answer.stderr


def test_a_server_and_a_command_work_on_one_file(tmp_path, monkeypatch):
    with (
        begin(tmp_path, monkeypatch) as study,
        in_thread(tmp_path / "lab.db") as url,
        browser_of(url) as browser,
    ):
        browser.post("/studies/1/tell", data={"reward-1": "0.5"})
        assert "Undo the last save" in browser.get("/studies/1").text
        assert run("undo", "metals").exit_code == codes.DONE
        page = browser.get("/studies/1").text
        assert "Undo the last save" not in page
        assert 'id="reward-1"' in page
        study.tell({1: 0.75})
        assert "Saved last: measurement 1." in browser.get("/studies/1").text
