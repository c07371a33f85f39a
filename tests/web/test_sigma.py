"""Over HTTP too sigma is asked for: the API, its client, and the page."""

import pytest

import finalist as fl
from finalist.errors import ProblemError
from finalist.web.arms_preview import pack
from finalist.web.pages.form import DEFAULTS
from tests.web.labs import Page, person
from tests.web.servers import api, in_thread

ARMS = fl.Arms.unstructured(["a", "b", "c"])
BODY = {"name": "metals", "arms": {"names": ["a", "b", "c"]}}
TABLE = pack(b"name,x\na,1\nb,2\nc,3\n")
NOISES = [{}, {"noise": "gaussian"}, {"noise": "sub-gaussian"}]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("sigma") / "lab.db"


@pytest.fixture(scope="module")
def url(place):
    with in_thread(place) as url:
        yield url


@pytest.fixture
def client(url):
    with api(url) as client:
        yield client
        assert client.get("/studies").json()["studies"] == []  # nothing was created


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("what", [("/studies", {}), ("/plan", {"gap": 0.5})])
def test_the_api_asks(client, what, noise):
    path, words = what
    body = {**BODY, **noise, **words}
    if path == "/plan":
        del body["name"]
    answer = client.post(path, json=body)
    assert answer.status_code == 422
    message = answer.json()["message"]
    assert message.startswith("sigma is not given")
    parts: tuple[str, ...] = ("standard deviation", "null", "from the results", "'bernoulli'")
    if noise.get("noise") == "sub-gaussian":  # null is refused
        parts = ("(b - a) / 2", "not enough")
        assert "null" not in message
    for part in ("as a number", *parts):
        assert part in message, part


@pytest.mark.parametrize("noise", NOISES)
def test_the_client_asks(url, client, noise):
    with pytest.raises(ProblemError, match="sigma is not given") as error:
        fl.connect(url).create("metals", ARMS, **noise)
    plain = ("standard deviation", "None", "from the results", "bernoulli")
    parts = ("(b - a) / 2",) if noise.get("noise") == "sub-gaussian" else plain
    for part in ("as a number", *parts):
        assert part in str(error.value), part


@pytest.mark.parametrize("do", ["create", "plan"])
@pytest.mark.parametrize(
    ("known", "sigma"), [("", ""), ("", "1"), ("maybe", ""), ("known", ""), ("known", " ")]
)
def test_the_page_asks(tmp_path, known, sigma, do):
    with person(tmp_path / "lab.db") as somebody:
        form = {**DEFAULTS, "name": "metals", "arms": TABLE, "gap": "1", "guess": "1", "do": do}
        answer = somebody.post("/new/study", {**form, "known": known, "sigma": sigma})
        assert answer.status_code == 422
        text = Page(answer.text).text
        assert "Write the size of the noise, or choose “unknown”." in text
        assert somebody.get("/api/v1/studies").json()["studies"] == []


def test_a_form_without_the_field_is_no_answer(tmp_path):
    with person(tmp_path / "lab.db") as somebody:
        form = {**DEFAULTS, "name": "metals", "arms": TABLE, "do": "create"}
        del form["known"]
        assert somebody.post("/new/study", form).status_code == 422
        assert somebody.get("/api/v1/studies").json()["studies"] == []
        coins = somebody.post("/new/study", {**form, "noise": "bernoulli"})
        assert coins.status_code == 303
