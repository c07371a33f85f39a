"""Cells that a spreadsheet might run as a formula."""

#: A spreadsheet may run a cell that starts with one of these.
_EXECUTABLE = ("=", "+", "-", "@", "\t", "\r", "\n")


def escape(text: str) -> str:
    """Keep a spreadsheet from running a cell: a leading apostrophe makes it text."""
    return "'" + text if text.startswith((*_EXECUTABLE, "'")) else text


def unescape(text: str) -> str:
    """Undo `escape`; an apostrophe before an ordinary letter belongs to the text."""
    return text[1:] if text[:1] == "'" and text[1:].startswith((*_EXECUTABLE, "'")) else text
