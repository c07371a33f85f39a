"""Words for people: numbers with their nouns, and names, a few of many."""

from collections.abc import Sequence


def counted(count: int, word: str, words: str | None = None) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "arm"), counted(2000, "batch", "batches")
    ('1 arm', '2,000 batches')
    """
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def first_few(names: Sequence[str], most: int = 5) -> str:
    """Return names with commas between them, the first few of many.

    Examples
    --------
    >>> first_few(["a", "b"]), first_few(["a", "b", "c", "d"], most=2)
    ('a, b', 'a, b and 2 more')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")
