"""What the library says, for people at a page: without Python and without options of commands."""

import re

_MODELS = r"(straight|bending|surface|separate)"
#: What is written for programs and commands, and what a page says instead.
_SAID: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (
            rf"study\.fork\(NAME, model='{_MODELS}'\), or finalist fork --model \w+",
            r"“Start anew with the model”, \1, further down",
        ),
        (
            r"start anew from before batch (\d+): 'finalist fork NAME NEW --until \d+', or "
            r"study\.fork\(new, until=\d+\)",
            r"start the study anew from before batch \1, under “Change the study”",
        ),
        (r"begin it as a fork with that margin", "start anew with that margin"),
        (r"with `amend`", "with “change” beside the result"),
        (r"Use sigma=None if the noise is unknown", "Choose “unknown” if you do not know it"),
        (r"\bsigma=None\b", "sigma “unknown”"),
        (r"Use void\(\d+\) if", "Write failed if"),
        (r"; use Arms\(features\)", ""),
        (r" or say which: [a-z-]+=NAME", " or choose it below"),
        (r" ?\((?:batch_intercept|misspecification)\)", ""),
        (r" \(--[^()]*\)", ""),
    )
)


def plain(text: str) -> str:
    """Return what an error or a warning says, for a page.

    Examples
    --------
    >>> plain("Create a study with a larger sigma, or sigma=None; or the model is wrong.")
    'Create a study with a larger sigma, or sigma “unknown”; or the model is wrong.'
    >>> plain("Go on: study.fork(NAME, model='bending'), or finalist fork --model bending.")
    'Go on: “Start anew with the model”, bending, further down.'
    >>> plain("Rename one, or say which: result-column=NAME.")
    'Rename one, or choose it below.'
    >>> plain("Say which column has them (--candidate-column), or allow for it (misspecification).")
    'Say which column has them, or allow for it.'
    """
    for pattern, words in _SAID:
        text = pattern.sub(words, text)
    return text
