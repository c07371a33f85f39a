"""Studies for tests of the pages, and a client that fills in forms as a browser does."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import finalist as fl
from finalist.study import Study
from tests.web.servers import browser_of, in_thread

#: Names that break what does not escape them.
EVIL = (
    "<script>alert(1)</script>",
    "\"double\" 'single' `back`",
    "line\nbreak\ttab",
    "\u202eoverride \u05e2\u05d1\u05e8\u05d9\u05ea",
    "x" * 500,
    "=cmd()|'/c calc'!A1",
    "&amp; {{ 7*7 }} {% raw %} ${1}",
    "</textarea></title></style><img src=x onerror=alert(2)>",
    "white",
    "javascript:alert(3)",
)
EVIL_STUDY = '"><script>alert("study")</script> \u202e & co'


def evil_study(place: Path) -> None:
    """Make a study in which everything that can be hostile is."""
    arms = fl.Arms.unstructured(list(EVIL))
    with Study.create(place, EVIL_STUDY, arms, sigma=1.0, seed=1) as study:
        rng = np.random.default_rng(1)
        for _ in range(2):
            batch = study.ask(size=50, worker=EVIL[0])
            study.tell({p.pull_id: float(rng.standard_normal()) for p in batch})
        batch = study.ask(size=20, worker=EVIL[7])
        study.tell({batch[0].pull_id: 1.0})
        study.void(batch[1].pull_id, EVIL[7])
        study.note(EVIL[0])
        study.note(EVIL[7])


def plane_study(place: Path, name: str = "plane", **words: Any) -> None:
    """Make a study with two features that is at work."""
    arms = fl.Arms(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.7]]), ["oak", "ash", "elm"])
    with Study.create(place, name, arms, **{"sigma": 0.5, "seed": 3, **words}) as study:
        rng = np.random.default_rng(2)
        theta = np.array([0.3, 0.35])
        for _ in range(2):
            batch = study.ask(size=12)
            study.tell(
                {
                    p.pull_id: float(arms.features[arms.index(p.arm)] @ theta + rng.normal() / 2)
                    for p in batch
                }
            )


class Person:
    """Somebody with a browser, which keeps cookies and says where forms come from."""

    def __init__(self, client: httpx.Client, place: Path) -> None:
        self.client, self.place = client, place

    def get(self, path: str, **words: Any) -> Any:
        """Open a page."""
        return self.client.get(path, **words)

    def post(self, path: str, data: dict[str, Any] | None = None, **words: Any) -> Any:
        """Send a form."""
        words.setdefault("follow_redirects", False)
        return self.client.post(path, data=data, **words)


@contextmanager
def person(place: Path, **settings: Any) -> Iterator[Person]:
    """Give somebody with a browser and a server on a database."""
    with (
        in_thread(place, **settings) as url,
        browser_of(url, timeout=180) as client,
    ):
        yield Person(client, place)


class Page(HTMLParser):
    """A page, as far as the rules of these tests need it."""

    VOID = frozenset({"base", "br", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a tag."""
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a tag of SVG that ends at once."""
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """End a tag: the last that was opened, or the page is broken."""
        assert self._open, f"</{tag}> ends nothing"
        last = self._open.pop()
        assert last == tag, f"</{tag}> ends <{last}>"

    def handle_data(self, data: str) -> None:
        """Take text."""
        if data.strip():
            self.texts.append((tuple(self._open), data))

    def all(self, tag: str) -> list[dict[str, Any]]:
        """Return the attributes of all tags of a kind."""
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def text(self) -> str:
        """What can be read."""
        return " ".join(text for _, text in self.texts)


def text_of(answer: httpx.Response) -> str:
    """Return what can be read, with one space between words and none before punctuation."""
    return re.sub(r" ([,:;.])", r"\1", re.sub(r"\s+", " ", Page(answer.text).text))


def packed_in(text: str) -> str:
    """Return the arms that a page carries on."""
    found = re.search(r'name="arms" value="([^"]+)"', text)
    assert found is not None
    return found[1]
