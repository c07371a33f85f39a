"""What a problem can ask for beyond the paper's setting, and who supports it."""

from typing import Literal, get_args

from finalist.errors import NotYetSupportedError, ProblemError

Feature = Literal[
    "unknown sigma",
    "sigma per arm",
    "sub-gaussian",
    "bernoulli",
    "other candidates",
    "epsilon-best",
    "top-m",
    "minimise",
    "cost",
    "batch intercept",
    "misspecification",
    "limited pulls",
    "link",
]

#: Every word that `Problem.needs` can contain.
FEATURES: frozenset[Feature] = frozenset(get_args(Feature))

#: What people read instead of the word.
_SAID = {"sigma per arm": "sigma per candidate", "limited pulls": "limited measurements"}


def refuse_missing(consumer: str, needs: frozenset[Feature], supported: frozenset[Feature]) -> None:
    """Raise `NotYetSupportedError` if more is needed than a consumer supports."""
    unknown = supported - FEATURES
    if unknown:
        raise ProblemError(f"{sorted(unknown)} are not features; known: {sorted(FEATURES)}.")
    missing = sorted(needs - supported)
    if missing:
        words = ", ".join(repr(_SAID.get(word, word)) for word in missing)
        beyond = ", ".join(_SAID.get(word, word) for word in sorted(supported)) or "nothing else"
        remedy = ""
        if "unknown sigma" in missing:
            remedy = " Give sigma=, or use the default strategy, 'gauntlet', which works without."
        raise NotYetSupportedError(
            f"not yet supported by {consumer}: {words}. It takes the best candidate, the largest "
            f"mean, one known sigma, cost 1, and beyond that: {beyond}.{remedy}"
        )
