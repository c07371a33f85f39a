"""Words for researchers, which do not belong where everybody reads.

Pages, command output and its help, reports, sheets and guides speak of candidates, measurements,
results and batches. Names of options, strategies and JSON keys are exempt, in code as in backticks;
so are identifiers with an underscore or a dot, as `arm_id` and `Arms.read`.
"""

import re
from html.parser import HTMLParser

#: What is not said, in all its forms, and what is said instead.
INSTEAD = {
    r"arms?": "candidate",
    r"armed|armless": "candidate",
    r"pull(?:s|ed|ing)?": "measurement",
    r"rewards?|rewarded|rewarding": "result",
    r"pilots?": "first batch",
    r"gauntlets?": "test",
    r"rank(?:s|ed|ing|ings)?": "order, place",
    r"log[- ]?det(?:erminant)?s?": "(nothing)",
    r"bandits?": "(nothing)",
}
_FORBIDDEN = re.compile(r"(?<![\w.-])(?:" + "|".join(INSTEAD) + r")(?![\w-]|\.\w)", re.IGNORECASE)
#: Code in prose, options of commands, keys of JSON, places.
_EXEMPT = re.compile(
    r"```.*?```|``[^`]+``|`[^`]+`|(?<![\w-])--?[a-z][\w-]*|\"[a-z_]+\":|\b\w*_\w*\b|https?://\S+",
    re.DOTALL,
)
#: Attributes that people read or hear.
_SPOKEN = ("title", "alt", "aria-label", "placeholder", "data-tip", "data-long", "data-say")
_SILENT = ("script", "style", "code", "pre", "textarea", "template")


def found(text: str) -> list[str]:
    """Return the words in a text that do not belong there, as they stand and in order.

    >>> found("The arm a was pulled 3 times; see `arm_id` and --arms.")
    ['arm', 'pulled']
    >>> found("A charming, alarming farm of candidates: a frank, bullish warm army.")
    []
    >>> found("Rewards are ranked by the pilot. The log-det bound of the gauntlet.")
    ['Rewards', 'ranked', 'pilot', 'log-det', 'gauntlet']
    """
    return _FORBIDDEN.findall(_EXEMPT.sub(" ", text))


class _Reader(HTMLParser):
    """Collects what a page says: its text, without code, and attributes that are read out."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self._silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent.append(tag)
        self.said += [value for name, value in attrs if name in _SPOKEN and value]

    def handle_endtag(self, tag: str) -> None:
        if self._silent and self._silent[-1] == tag:
            self._silent.pop()

    def handle_data(self, data: str) -> None:
        if not self._silent and data.strip():
            self.said.append(data)


def said(page: str) -> str:
    """Return what a page of HTML (or a picture in SVG) says to its reader, code left out.

    >>> said('<p title="Hello">You <code>arm</code> see</p><script>pull</script>')
    'Hello\\nYou \\n see'
    """
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return "\n".join(reader.said)
