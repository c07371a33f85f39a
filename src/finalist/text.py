"""Text for people: counts with their nouns, a few of many names, values cut to fit a message."""

import re
from collections.abc import Sequence

#: A name that needs no quotes: no space, comma or bracket that could belong to the sentence.
_PLAIN = re.compile(r"[^\s,;:()\[\]]+")


def counted(count: int, word: str, words: str | None = None) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "candidate"), counted(2000, "batch", "batches")
    ('1 candidate', '2,000 batches')
    """
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def quoted(name: str) -> str:
    """Put a name in quotes unless it is one plain word, so that its ends show in a sentence.

    Examples
    --------
    >>> quoted("tin"), quoted("long and hot"), quoted('6" nail, bent')
    ('tin', '"long and hot"', '6" nail, bent')
    """
    return name if _PLAIN.fullmatch(name) or '"' in name else f'"{name}"'


def named(names: Sequence[str], most: int = 5) -> str:
    """Name candidates in a sentence, the first few of many, in quotes where that is needed.

    Examples
    --------
    >>> named(["tin", "lead"]), named(["long and hot", "cold", "mild"], most=2)
    ('tin and lead', '"long and hot", cold and 1 more')
    """
    return first_few([quoted(name) for name in names], most)


def first_few(names: Sequence[str], most: int = 5) -> str:
    """Return names with commas between them, the first few of many.

    Examples
    --------
    >>> first_few(["a", "b"]), first_few(["a", "b", "c", "d"], most=2)
    ('a and b', 'a, b and 2 more')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + f" and {more:,} more" if more > 0 else listed(names)


def shortened(text: str, width: int) -> str:
    """Cut text to a width, in its middle: names that begin alike often differ in how they end.

    Examples
    --------
    >>> shortened("tin", 10), shortened("steel, annealed at 900 degrees", 18)
    ('tin', 'steel, anne…egrees')
    """
    if len(text) <= width:
        return text
    end = (width - 1) * 2 // 5
    return f"{text[: width - 1 - end].rstrip()}…{text[len(text) - end :].lstrip()}"


def telling(names: Sequence[str], width: int) -> list[str]:
    """Return what tells names apart if one is longer than a width: their words in common go.

    Examples
    --------
    >>> telling(["steel at 700 degrees", "steel at 900 degrees"], width=10)
    ['700', '900']
    >>> telling(["tin", "lead"], width=10)
    ['tin', 'lead']
    """
    if max(map(len, names), default=0) <= width or len(set(names)) < 2:
        return list(names)
    split = [name.split() for name in names]
    common = set(split[0]).intersection(*split)
    kept = [" ".join(word for word in words if word not in common) for words in split]
    return kept if all(kept) and len(set(kept)) == len(set(names)) else list(names)


def listed(words: Sequence[object], last: str = "and") -> str:
    """Join words with commas.

    Examples
    --------
    >>> listed([2, 3, 4])
    '2, 3 and 4'
    """
    texts = [str(word) for word in words]
    return f" {last} ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def more(count: int) -> str:
    """Say how many further cells are wrong in the same way."""
    if count == 1:
        return ""
    return f" (and {count - 1} more {'cell' if count == 2 else 'cells'} like it)"


def show(value: object, width: int = 60) -> str:
    """Return the repr of a value, cut to a width that fits in a message.

    Examples
    --------
    >>> show("a long name", 10)
    "'a long..."
    """
    item = getattr(value, "item", None)  # NumPy's scalars read like Python's
    text = repr(item() if callable(item) and getattr(value, "shape", None) == () else value)
    return text if len(text) <= width else text[: width - 3] + "..."
