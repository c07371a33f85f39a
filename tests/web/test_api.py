"""The API on a real server: the life of a study, errors in words, two clients at once."""

import json
import threading

import pytest

from finalist.study import Study
from tests.study.lab import ARMS, THETA, Lab
from tests.web.servers import api, in_thread, new_study


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("api") / "lab.db"


@pytest.fixture(scope="module")
def client(place):
    with in_thread(place) as url, api(url) as client:
        yield client


def test_errors_do_not_say_where_the_database_is(tmp_path):
    place = tmp_path / "lab.db"
    with in_thread(place) as url, api(url) as client:
        number = new_study(client)
        with Study.open(place, "colours") as study:  # in another process, say
            study.delete()
        answers = [client.get("/studies/999"), client.post(f"/studies/{number}/ask", json={})]
        place.rename(tmp_path / "elsewhere.db")
        answers.append(client.get(f"/studies/{number}"))
        (tmp_path / "elsewhere.db").rename(place)
    assert [answer.status_code for answer in answers] == [404, 404, 503]
    for answer in answers:
        assert "lab.db" in answer.json()["message"]
        assert str(tmp_path) not in answer.text


def rewards(batch, value=0.5):
    return {"results": [{"pull_id": p["pull_id"], "reward": value} for p in batch["pulls"]]}


ARMS_BODY = {
    "names": list(ARMS.names),
    "features": ARMS.features.tolist(),
    "feature_names": list(ARMS.feature_names),
}


def test_a_study_from_the_first_pull_to_the_winner(client, place):
    lab = Lab()
    number = new_study(client, "whole life", arms=ARMS_BODY, sigma=0.6, check=0)
    for _ in range(200):
        batch = client.post(f"/studies/{number}/ask", json={"size": 40}).json()
        if not batch["pulls"]:
            break
        pulls = [(p["pull_id"], lab.means[p["arm"]]) for p in batch["pulls"]]
        told = [{"pull_id": n, "reward": mean + 0.6 * lab.noise(n)} for n, mean in pulls]
        answer = client.post(f"/studies/{number}/tell", json={"results": told}).json()
        assert answer["new"] == len(told)
    assert batch["state"] == "decided"
    status = client.get(f"/studies/{number}/status").json()
    assert (status["verdict"], status["winner"]) == ("winner", "a")
    assert status["forecast"] is None
    with Study.open(place, "whole life") as study:
        mine = json.loads(json.dumps(study.status().to_dict()))
        assert {k: v for k, v in status.items() if k != "last"} == mine
        assert client.get(f"/studies/{number}/history").json()["events"] == study.history()
        assert status["last"] == len(study.history())
    evidence = client.get(f"/studies/{number}/evidence").json()
    assert len(evidence["pulls"]) == len(evidence["evidence"]) == status["batches"]
    line = client.get("/studies", params={"name": "whole life"}).json()["studies"][0]
    assert (line["verdict"], line["winner"], line["number"]) == ("winner", "a", number)
    later = client.get(f"/studies/{number}/history", params={"after": 2}).json()["events"]
    assert later[0]["number"] == 3


def test_lists_and_what_a_study_was_created_with(client):
    number = new_study(client, "listed", metadata={"who": "me"}, delta=0.1, budget=50)
    names = [line["name"] for line in client.get("/studies").json()["studies"]]
    assert "listed" in names
    assert names == sorted(names)
    about = client.get(f"/studies/{number}").json()
    assert about["name"] == "listed"
    assert about["settings"]["metadata"] == {"who": "me"}
    assert (about["settings"]["delta"], about["settings"]["budget"]) == (0.1, 50)
    assert client.get("/studies", params={"name": "nobody"}).json() == {"studies": []}
    arms = client.get(f"/studies/{number}/arms").json()
    assert [arm["names"] for arm in arms["arms"]] == [["a"], ["b"], ["c"]]


def test_arms_as_a_table_and_as_json_are_the_same(client):
    table = "name,x,y\nfirst,1,0\nsecond,0,1\nthird,0.5,0.5\n"
    arms = {
        "names": ["first", "second", "third"],
        "feature_names": ["x", "y"],
        "features": [[1, 0], [0, 1.0], [0.5, 0.5]],
    }
    one = new_study(client, "as a table", arms=None, arms_csv=table)
    other = new_study(client, "as json", arms=arms)
    same = [client.get(f"/studies/{number}/arms").json() for number in (one, other)]
    assert [found.pop("given")["table"] is None for found in same] == [False, True]
    assert same[0] == same[1]


def test_single_pulls(client):
    number = new_study(client, "pulls")
    batch = client.post(f"/studies/{number}/ask", json={"size": 6}).json()
    first, second, third = (p["pull_id"] for p in batch["pulls"][:3])
    path = f"/studies/{number}/pulls"
    instead = client.post(f"{path}/{first}/void", json={"reason": "it fell"}).json()
    assert instead["pull_id"] == 7
    assert instead["arm"] == batch["pulls"][0]["arm"]
    assert client.post(f"{path}/{first}/void", json={"reason": "it fell"}).status_code == 409
    client.post(f"{path}/{second}/missing", json={"reason": "no seed"}).raise_for_status()
    one = {"results": [{"pull_id": third, "reward": 1.0}]}
    client.post(f"/studies/{number}/tell", json=one).raise_for_status()
    body = {"reward": 2.0, "reason": "misread"}
    client.post(f"{path}/{third}/amend", json=body).raise_for_status()
    states = {p["pull_id"]: p for p in client.get(path).json()["pulls"]}
    assert states[first]["state"] == "void"
    assert states[second]["state"] == "missing"
    assert states[third]["reward"] == 2.0
    assert client.post(f"{path}/999/void", json={"reason": "it fell"}).status_code == 404
    assert client.post(f"{path}/{first}/void", json={"reason": ""}).status_code == 422


def test_looking_at_open_pulls_issues_none(client):
    number = new_study(client, "looking")
    assert client.get(f"/studies/{number}/open").json()["pulls"] == []
    assert client.get(f"/studies/{number}").json()["last"] == 1
    batch = client.post(f"/studies/{number}/ask", json={"size": 6}).json()
    seen = client.get(f"/studies/{number}/open").json()
    assert seen["pulls"] == batch["pulls"]
    assert seen["left"] == 6


def test_a_batch_as_a_table_there_and_back(client):
    number = new_study(client, "table")
    client.post(f"/studies/{number}/ask", json={"size": 6}).raise_for_status()
    answer = client.get(f"/studies/{number}/open.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    header, *rows = answer.text.split()
    assert header == "pull_id,candidate,result,note"
    filled = "\n".join([header, *(row[:-1] + "0.5,hot" for row in rows)])
    sent = {"Content-Type": "text/csv", "Idempotency-Key": "table-1"}
    path = f"/studies/{number}/tell.csv"
    assert client.post(path, content=filled, headers=sent).json()["new"] == 6
    assert client.post(path, content=filled, headers=sent).json()["new"] == 6
    exported = client.get(f"/studies/{number}/export.csv").text
    assert exported.count("hot") == 6
    bad = client.post(path, content="pull_id,reward\n1,x\n", headers={"Content-Type": "text/csv"})
    assert bad.status_code == 422
    assert "line 2, column 'reward'" in bad.json()["message"]
    assert "/" not in bad.json()["message"]  # no name of a temporary file
    comma = client.get(f"/studies/{number}/open.csv", params={"decimal": ","}).text
    assert comma.startswith("pull_id;candidate")
    everything = client.get(f"/studies/{number}/export.json").json()
    assert set(everything) == {"name", "created", "settings", "arms", "events", "pulls"}


def test_notes_and_arms_of_results(client):
    number = new_study(client, "notes")
    batch = client.post(f"/studies/{number}/ask", json={"size": 6}).json()
    first, second = batch["pulls"][:2]
    row = {"pull_id": first["pull_id"], "reward": 1.5, "arm": first["arm"], "notes": {"lamp": "2"}}
    client.post(f"/studies/{number}/tell", json={"results": [row]}).raise_for_status()
    pulls = client.get(f"/studies/{number}/pulls").json()["pulls"]
    assert json.loads(pulls[0]["note"]) == {"lamp": "2"}
    other = next(name for name in "abc" if name != second["arm"])
    wrong = {"pull_id": second["pull_id"], "reward": 1.5, "arm": other}
    answer = client.post(f"/studies/{number}/tell", json={"results": [wrong]})
    assert answer.status_code == 422
    assert "mixed up" in answer.json()["message"]


def test_the_rest_of_a_life(client):
    number = new_study(client, "rest")
    rows = [{"arm": "a", "reward": 1.0}, {"arm": "b", "reward": 0.0}]
    assert client.post(f"/studies/{number}/import", json={"measurements": rows}).json() == {
        "count": 2
    }
    client.post(f"/studies/{number}/note", json={"text": "a new lamp"}).raise_for_status()
    words = client.post(f"/studies/{number}/stop", json={"reason": "holidays"}).json()["words"]
    assert "Stopped (holidays)" in words
    assert client.post(f"/studies/{number}/ask", json={}).json()["state"] == "stopped"
    client.post(f"/studies/{number}/resume").raise_for_status()
    assert client.post(f"/studies/{number}/resume").status_code == 409
    assert "0.025" in client.post(f"/studies/{number}/withdraw", json={"names": ["c"]}).text
    assert client.post(f"/studies/{number}/withdraw", json={"names": ["x"]}).status_code == 404
    batch = client.post(f"/studies/{number}/ask", json={"size": 8}).json()
    client.post(f"/studies/{number}/tell", json=rewards(batch)).raise_for_status()
    made = client.post(f"/studies/{number}/fork", json={"name": "again", "until": 1})
    assert made.status_code == 201
    other = made.json()["number"]
    assert client.get(f"/studies/{other}/open").json()["left"] == len(batch["pulls"])
    taken = client.post(f"/studies/{number}/fork", json={"name": "again", "until": 1})
    assert (taken.status_code, taken.json()["error"]) == (409, "NameTakenError")
    bent = {"name": "bent", "model": "separate"}
    assert client.post(f"/studies/{number}/fork", json=bent).status_code == 201
    enough = client.post(f"/studies/{number}/fork", json={"name": "enough", "epsilon": 0.5}).json()
    assert enough["settings"]["epsilon"] == 0.5
    said = client.get(f"/studies/{enough['number']}/status").json()
    assert said["epsilon"] == 0.5
    assert said["assumptions"][-1].endswith("in all")
    wrongs: tuple[dict[str, object], ...]
    wrongs = ({"model": "cubic"}, {"model": "bending", "until": 1}, {}, {"epsilon": -1})
    for wrong in (*wrongs, {"epsilon": 0.5, "until": 1}, {"epsilon": 0}):
        body = {"name": "more", **wrong}
        assert client.post(f"/studies/{number}/fork", json=body).status_code == 422, wrong
    assert client.delete(f"/studies/{other}", params={"name": "rest"}).status_code == 409
    client.delete(f"/studies/{other}", params={"name": "again"}).raise_for_status()
    assert client.get(f"/studies/{other}/status").status_code == 404
    assert client.post(f"/studies/{other}/ask", json={}).status_code == 404


def test_arms_are_added(client):
    arms = {"names": ["p", "q"], "feature_names": ["x", "y"], "features": [[1, 0], [0, 1]]}
    number = new_study(client, "grows", arms=arms)
    more = {"names": ["r"], "feature_names": ["x", "y"], "features": [[1, 1]]}
    assert "tested" in client.post(f"/studies/{number}/add", json=more).json()["words"]
    names = [arm["names"][0] for arm in client.get(f"/studies/{number}/arms").json()["arms"]]
    assert names == ["p", "q", "r"]


def test_a_study_made_again_under_its_name_is_another_one(client):
    first = new_study(client, "again and again")
    client.post(f"/studies/{first}/ask", json={"size": 6}).raise_for_status()
    client.delete(f"/studies/{first}", params={"name": "again and again"}).raise_for_status()
    second = new_study(client, "again and again")
    assert second != first
    assert client.get(f"/studies/{second}/open").json()["pulls"] == []
    assert client.get(f"/studies/{first}").status_code == 404


def test_what_other_processes_do_is_seen(client, place):
    number = new_study(client, "shared")
    client.get(f"/studies/{number}/status", params={"forecast": False}).raise_for_status()
    with Study.open(place, "shared") as study:
        batch = study.ask(6)
        assert client.get(f"/studies/{number}/open").json()["left"] == 6
        study.tell({pull.pull_id: 0.5 for pull in batch})
    status = client.get(f"/studies/{number}/status", params={"forecast": False}).json()
    assert status["pulls"] == 6
    with Study.open(place, "shared") as study:
        study.delete()
    assert client.get(f"/studies/{number}/status").status_code == 404


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"sigma": -1.0}, "sigma"),
        ({"delta": 1.5}, "delta"),
        ({"objective": "best"}, "objective"),
        ({"colour": 1}, "colour"),
        ({"strategy": "magic"}, "magic"),
        ({"settings": {"speed": 1}}, "speed"),
        ({"arms": {"names": ["a", "a"]}}, "taken"),
        ({"arms": {"features": [[1, 2], [3]]}}, "same number"),
        ({"arms": {"features": []}}, "at least one arm"),
        ({"arms": None}, "arms"),
        ({"name": " x"}, "space"),
        ({"name": "x\0y"}, "null"),
        ({"budget": 0}, "budget"),
        ({"budget": 2**60}, "budget"),
        ({"metadata": {"x": "y" * 70_000}}, "metadata"),
        ({"strategy": "xy-oracle"}, "true parameter"),
    ],
)
def test_wrong_words_are_refused_in_words(client, body, word):
    good = {"name": f"wrong {word}", "arms": {"names": ["a", "b"]}, "sigma": 1.0}
    answer = client.post("/studies", json={**good, **body})
    assert answer.status_code == 422, answer.text
    assert word in answer.json()["message"]
    assert client.get("/studies", params={"name": f"wrong {word}"}).json()["studies"] == []


def test_the_size_of_the_noise_has_no_default(client):
    body = {"name": "noise", "arms": {"names": ["a", "b"]}}
    answer = client.post("/studies", json=body)
    assert answer.status_code == 422
    assert "sigma is not given" in answer.json()["message"]
    made = client.post("/studies", json={**body, "sigma": None}).json()
    assert made["settings"]["noise"] == {"model": "gaussian", "sigma": None}
    coins = client.post("/studies", json={**body, "name": "coins", "noise": "bernoulli"}).json()
    assert coins["settings"]["noise"]["model"] == "bernoulli"
    number = coins["number"]
    client.post(f"/studies/{number}/ask", json={"size": 8}).raise_for_status()
    half = {"results": [{"pull_id": 1, "reward": 0.5}]}
    assert "Bernoulli" in client.post(f"/studies/{number}/tell", json=half).json()["message"]


def test_a_plan_and_a_preview(client):
    body = {"arms": ARMS_BODY, "sigma": 0.5, "gap": 1.0, "draws": 5}
    plan = client.post("/plan", json=body).json()
    assert [row["name"] for row in plan["rows"]] == ["gauntlet", "equal shares"]
    assert plan["words"].startswith("Expect about")
    more = {"sigma": None, "guess": 0.5, "size": 6, "leads": [0.5]}
    plan = client.post("/plan", json={**body, **more}).json()
    assert [row["lead"] for row in plan["by_lead"]] == [0.5, 1.0]
    assert (plan["known"], plan["size"]) == (False, 6)
    assert plan["fixed"] == plan["by_lead"][1]["fixed"] < plan["by_lead"][0]["fixed"]
    refused = client.post("/plan", json={**body, "sigma": None})
    assert refused.status_code == 422
    assert "guess" in refused.json()["message"]
    table = b"name,x\np,1\nq,oops\nr,\n"
    seen = client.post("/arms/preview", content=table, headers={"Content-Type": "text/csv"}).json()
    assert (seen["name_column"], seen["feature_columns"]) == ("name", ["x"])
    assert [[cell["bad"] for cell in row["cells"]] for row in seen["rows"]] == [
        [False, False],
        [False, True],
        [False, True],
    ]
    assert "line 3" in seen["problem"]


def test_two_clients_never_measure_the_same(client):
    number = new_study(client, "two clients", arms=ARMS_BODY, sigma=0.6)
    lab, failures = Lab(theta=THETA), []
    seen: dict[int, str] = {}

    def work(worker):
        try:
            with api(str(client.base_url).removesuffix("/api/v1/")) as mine:
                for _ in range(300):
                    asked = mine.post(
                        f"/studies/{number}/ask", json={"size": 4, "worker": worker}
                    ).json()
                    if asked["state"] not in ("open", "waiting"):
                        return
                    for pull in asked["pulls"]:
                        assert seen.setdefault(pull["pull_id"], worker) == worker
                        reward = lab.means[pull["arm"]] + 0.6 * lab.noise(pull["pull_id"])
                        told = {"results": [{"pull_id": pull["pull_id"], "reward": reward}]}
                        answer = mine.post(f"/studies/{number}/tell", json=told)
                        assert answer.json()["new"] == 1, answer.text
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"worker {i}",)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures
    assert set(seen.values()) == {"worker 0", "worker 1"}
    status = client.get(f"/studies/{number}/status").json()
    assert status["verdict"] == "winner"
    assert status["pulls"] == len(seen)  # also what the other one measured after the decision


def test_of_many_who_create_one_name_one_does(client):
    answers = []

    def create():
        body = {"name": "wanted", "arms": {"names": ["a", "b"]}, "sigma": 1.0}
        answers.append(client.post("/studies", json=body).status_code)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(answers) == [201] + [409] * 7


def test_the_description_for_people_has_every_call(client):
    page = client.get("/docs").text
    description = client.get("/openapi.json").json()
    assert "https://" not in page  # nothing from elsewhere
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            assert f"{method.upper()} {path}</code>" in page
            assert operation["description"].split(".")[0][:40] in page.replace("&#39;", "'")
    assert "fl.connect" in page


def test_examples_of_the_description_are_good(client):
    number = new_study(client, "examples")
    client.post(f"/studies/{number}/ask", json={"size": 6}).raise_for_status()
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    bodies = {
        "AskBody": f"/studies/{number}/ask",
        "TellBody": f"/studies/{number}/tell",
        "AmendBody": f"/studies/{number}/pulls/1/amend",
        "ReasonBody": f"/studies/{number}/pulls/3/void",
        "NoteBody": f"/studies/{number}/note",
        "ForkBody": f"/studies/{number}/fork",
        "NewStudy": "/studies",
        "PlanBody": "/plan",
        "MarginsBody": "/plan/margins",
    }
    for name, path in bodies.items():
        for example in schemas[name]["examples"]:
            answer = client.post(path, json=example)
            assert answer.status_code in (200, 201), (name, answer.text)
    again = {"results": [{"pull_id": 5, "reward": 0.5}]}
    client.post(f"/studies/{number}/tell", json=again).raise_for_status()
    (example,) = schemas["UndoBody"]["examples"]
    assert client.post(f"/studies/{number}/undo", json=example).json()["results"][0]["pull_id"] == 5
