"""What the library says, for people at a shell: options instead of Python."""

import re

#: What is written for Python, and what a shell takes instead.
_SAID: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (
            r"'finalist fork NAME NEW --until (\d+)', or study\.fork\(new, until=\d+\)",
            r"'finalist fork NAME NEW --until \1'",
        ),
        (r"`(amend|ask|fork|status|tell|undo|void)`", r"'finalist \1'"),
        (r"a larger one, or sigma=None", "a larger --sigma, or --sigma unknown"),
        (r"\bsigma=None\b", "--sigma unknown"),
        (r"\bsigma=, ", "--sigma, "),
        (r"\(batch_intercept\)", "(--batch-intercept)"),
        (r"\(misspecification\)", "(--misspecification)"),
    )
)


def for_shell(text: str) -> str:
    """Return what a warning or an error says, with what can be typed.

    Examples
    --------
    >>> for_shell("Use sigma=None if the noise is unknown.")
    'Use --sigma unknown if the noise is unknown.'
    >>> for_shell("allows for such shifts (batch_intercept).")
    'allows for such shifts (--batch-intercept).'
    """
    for pattern, words in _SAID:
        text = pattern.sub(words, text)
    return text
