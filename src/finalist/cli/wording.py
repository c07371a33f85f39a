"""What the library says, for people at a shell: options and commands instead of Python."""

import re
import shlex

#: What is written for Python, and what a shell takes instead; {name} is the study.
_SAID: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (
            r"study\.fork\(NAME, model='(\w+)'\), or finalist fork --model \w+",
            r"finalist fork {name} NEW-NAME --model \1",
        ),
        (
            r"'finalist fork NAME NEW --until (\d+)', or study\.fork\(new, until=\d+\)",
            r"'finalist fork NAME NEW-NAME --until \1'",
        ),
        (r"a larger one, or sigma=None", "a larger --sigma, or --sigma unknown"),
        (r"\bsigma=None\b", "--sigma unknown"),
        (r"\bsigma=, ", "--sigma, "),
        (r"\(batch_intercept\)", "(--batch-intercept)"),
        (r"\(misspecification\)", "(--misspecification)"),
    )
)


def for_shell(text: str, name: str = "NAME") -> str:
    """Return what a warning or an error says, with what can be typed.

    Parameters
    ----------
    name : str
        The study of which it speaks.

    Examples
    --------
    >>> for_shell("Use sigma=None if the noise is unknown.")
    'Use --sigma unknown if the noise is unknown.'
    >>> go_on = "study.fork(NAME, model='bending'), or finalist fork --model bending."
    >>> for_shell(go_on, "my oven")
    "finalist fork 'my oven' NEW-NAME --model bending."
    >>> for_shell("allows for such shifts (batch_intercept).")
    'allows for such shifts (--batch-intercept).'
    """
    quoted = shlex.quote(name).replace("\\", r"\\")
    for pattern, words in _SAID:
        text = pattern.sub(words.replace("{name}", quoted), text)
    return text
