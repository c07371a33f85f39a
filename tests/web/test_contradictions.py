"""When a check says that an assumption fails, every surface says so and calls nothing certain."""

import json
import re

import numpy as np
import pytest

import finalist as fl
from finalist.cli import codes
from finalist.study import Study
from finalist.study.checks import found
from tests.cli.common import run
from tests.web.labs import person

#: Words that promise something.
PROMISES = re.compile(
    r"at most|wrong with probability|certain now: the|winner found|<dt>wrong", re.I
)
CROSS = fl.Arms([[-1, -1], [-1, 1], [1, -1], [1, 1], [0, 0]], list("abcde")).with_intercept()
FREE = fl.Arms.unstructured(list("abcde"))


def noisy(pull, batch, rng):
    return {"a": 6.0}.get(pull.arm, 0.0) + 5.0 * rng.standard_normal()


def bent(pull, batch, rng):
    return {"a": 1.0, "d": 1.0}.get(pull.arm, 0.0) + 0.1 * rng.standard_normal()


def shifted(pull, batch, rng):
    return {"a": 0.07}.get(pull.arm, 0.0) + 40.0 * (batch % 2) + 0.1 * rng.standard_normal()


#: The laboratory, the arms, sigma, and what has to be said of it.
BROKEN = {
    "noise": (noisy, FREE, 1.0, "the results scatter by"),
    "model": (bent, CROSS, 0.1, "the means "),
    "shifts": (shifted, FREE, None, "batches are shifted against each other"),
}


def lived(where, name, measure, arms, sigma, most=12):
    """Measure in batches of 30, until the study has ended or for a while; return whether it has."""
    with Study.create(where, name, arms, sigma=sigma, seed=1) as study:
        rng = np.random.default_rng(1)
        for number in range(most):
            batch = study.ask(size=30)
            if not batch:
                break
            study.tell({pull.pull_id: measure(pull, number, rng) for pull in batch})
        return study.status(forecast=False)


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("ended", [True, False])
def test_a_failed_check_leaves_nothing_certain_anywhere(tmp_path, name, ended):
    measure, arms, sigma, reason = BROKEN[name]
    where = tmp_path / "lab.db"
    status = lived(
        where, "one", measure, arms, sigma, most=40 if ended else 1 if name == "model" else 4
    )
    if not ended and status.verdict != "continue":
        pytest.skip("it ends at once")
    if ended and status.verdict == "continue":
        with Study.open(where, "one") as study:
            study.stop("enough")
            status = study.status()
    assert reason in status.sentence
    assert status.sentence.startswith("Nothing is certain, because ")
    assert (status.certain, status.risk, status.certainty) == (False, None, None)
    assert status.error_estimate is None
    assert status.verdict in (("uncertain", "undecided") if ended else ("continue",))
    assert all(arm.low is None and arm.high is None for arm in status.arms)
    assert all(arm.p_value is None for arm in status.arms)
    assert status.doubts
    assert not PROMISES.search(str(status))
    if status.winner is not None:
        assert f"{status.winner} is the best estimate" in status.sentence
    # the command line
    shown = run("status", "one", "--db", where)
    assert shown.exit_code == (codes.DONE if ended else codes.CONTINUE)
    assert reason in " ".join(shown.output.split())
    assert not PROMISES.search(shown.output)
    content = json.loads(run("status", "one", "--db", where, "--format", "json").stdout)
    assert content["certain"] is False
    assert content["risk"] is None
    (row,) = json.loads(run("list", "--db", where, "--format", "json").stdout)["studies"]
    assert (row["certain"], row["risk"]) == (False, None)
    report = tmp_path / "report.html"
    run("report", "one", "--db", where, "--output", report)
    # the server
    with person(where) as somebody:
        (line,) = somebody.get("/api/v1/studies").json()["studies"]
        assert (line["certain"], line["risk"]) == (False, None)
        response = somebody.get(f"/api/v1/studies/{line['number']}/status")
        assert response.status_code == 200, response.text
        answer = response.json()
        assert (answer["certain"], answer["risk"]) == (False, None)
        pages = [somebody.get(f"/studies/{line['number']}").text, somebody.get("/").text]
        pages.append(report.read_text())
    for page in pages:
        shown_ = re.sub(r"<(style|script).*?</\1>", "", page, flags=re.S)
        assert [shown_[m.start() - 200 : m.end() + 60] for m in PROMISES.finditer(shown_)] == []
    assert reason[1:] in pages[0]  # in the sentence, or in the warning below it
    assert reason[1:] in pages[2]


def test_where_all_is_well_things_are_certain(tmp_path):
    rng = np.random.default_rng(0)
    status = lived(
        tmp_path / "lab.db", "one", lambda p, _b, _r: 6.0 * (p.arm == "a") + rng.normal(), FREE, 1.0
    )
    assert (status.verdict, status.certain, status.risk) == ("winner", True, 0.05)
    assert status.sentence.startswith("a is the best, after")


def test_a_check_that_costs_only_pulls_takes_nothing_away(tmp_path):
    rng = np.random.default_rng(0)
    status = lived(
        tmp_path / "lab.db", "one", lambda p, _b, _r: 60 * (p.arm == "a") + rng.normal(), FREE, 9.0
    )
    assert (status.verdict, status.certain) == ("winner", True)
    assert "a smaller sigma would need fewer measurements" in " ".join(status.warnings)


def test_what_has_failed_once_has_failed_for_good(tmp_path):
    """Later batches hide a batch that was wrong: the decisions it led to stay in doubt."""
    where = tmp_path / "lab.db"
    with Study.create(where, "one", FREE, sigma=1.0, seed=1) as study:
        rng, seen = np.random.default_rng(1), []
        for number in range(12):
            batch = study.ask(size=30 if number < 2 else 200)
            size = 1.7 if number < 2 else 0.95
            study.tell({pull.pull_id: size * rng.standard_normal() for pull in batch})
            status = study.status(forecast=False)
            seen.append(status.certain)
            if status.verdict != "continue":
                break
        now = found(study._log.now().problem, study._log.now().pooled.estimate(), [], 0)
    assert False in seen
    assert not any(check.fails for check in now)  # nothing is to be seen any more
    assert seen[seen.index(False) :] == [False] * len(seen[seen.index(False) :])
    with Study.open(where, "one") as study:
        again = study.status(forecast=False)
    assert (again.certain, again.doubts, again.warnings) == (False, status.doubts, status.warnings)


def test_p_values_end_when_arms_change(tmp_path):
    with Study.create(tmp_path / "lab.db", "one", FREE, sigma=1.0, seed=1) as study:
        rng = np.random.default_rng(1)
        for _ in range(2):
            study.tell({pull.pull_id: rng.standard_normal() for pull in study.ask(size=30)})
        assert all(arm.p_value is not None for arm in study.status().arms)
        study.withdraw("e")
        assert all(arm.p_value is None for arm in study.status().arms)
        assert all(arm.evidence is not None for arm in study.status().arms)
