"""Calls that are repeated: what an `Idempotency-Key` means, told honestly."""

import pytest

from finalist.errors import ConflictError
from finalist.study import Study
from tests.study.lab import ARMS
from tests.web.servers import api, in_thread, new_study


@pytest.fixture
def client(tmp_path):
    with in_thread(tmp_path / "lab.db") as url, api(url) as client:
        new_study(client)
        client.post("/studies/1/ask", json={"size": 12})
        yield client


def tell(client, key, *rows):
    answer = client.post(
        "/studies/1/tell", json={"results": list(rows)}, headers={"Idempotency-Key": key}
    )
    found = answer.json()
    return answer.status_code, found.get("new"), found.get("repeated")


ONE = {"pull_id": 1, "reward": 0.5}


def test_the_same_call_again_has_the_answer_of_the_first(client):
    assert tell(client, "a", ONE) == (200, 1, False)
    assert tell(client, "a", ONE) == (200, 1, True)
    assert tell(client, "a", {**ONE, "reward": 0.6})[0] == 409
    table = "pull_id,reward\n1,0.5\n"
    headers = {"Idempotency-Key": "a", "Content-Type": "text/csv"}
    again = client.post("/studies/1/tell.csv", content=table, headers=headers).json()
    assert (again["new"], again["repeated"]) == (1, True)


def test_a_key_is_not_repeated_by_another_call_that_has_nothing_new(client):
    assert tell(client, "a", ONE) == (200, 1, False)
    assert tell(client, "b", ONE) == (200, 0, False)  # a new call, of what was known
    assert tell(client, "b", ONE) == (200, 0, True)
    assert tell(client, "b", {**ONE, "pull_id": 2})[0] == 409


def test_another_note_is_another_call(client):
    noted = {**ONE, "notes": {"who": "Ada"}}
    assert tell(client, "a", noted) == (200, 1, False)
    assert tell(client, "a", noted) == (200, 1, True)
    assert tell(client, "a", {**ONE, "notes": {"who": "Bo"}})[0] == 409
    assert tell(client, "a", ONE)[0] == 409
    assert tell(client, "b", {"pull_id": 2, "reward": 0.5}) == (200, 1, False)
    assert tell(client, "b", {"pull_id": 2, "reward": 0.5, "notes": {"x": "y"}})[0] == 409


def test_a_call_of_the_first_version_is_known_by_its_rewards(tmp_path, monkeypatch):
    """It did not write down anything about notes."""
    from finalist.study import measure as measuring

    digests = measuring._digests
    with Study.create(tmp_path / "lab.db", "s", ARMS, sigma=1.0) as study:
        batch = study.ask(12)
        table = tmp_path / "batch.csv"
        table.write_text(f"pull_id,reward,who\n{batch[0].pull_id},0.5,Ada\n")
        with monkeypatch.context() as patch:
            patch.setattr(measuring, "_digests", lambda told: {"digest": digests(told)["digest"]})
            assert study.tell(table, client_id="a") == 1
        assert study.tell(table, client_id="a") == 0
        with pytest.raises(ConflictError, match="other results or notes"):
            study.tell({batch[0].pull_id: 0.5, batch[1].pull_id: 0.5}, client_id="a")
