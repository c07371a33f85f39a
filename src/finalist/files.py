"""Names on one line, values for JSON, and files that are there in full or not at all."""

import math
import os
from os import PathLike
from pathlib import Path
from typing import Any
from uuid import uuid4

from finalist.errors import OutputError


def printable(text: str, width: int | None = None) -> str:
    r"""Return text on one line, control characters spelt out, cut to a width with an ellipsis.

    Examples
    --------
    >>> printable("two\nlines and more", 12)
    'two\\nlines …'
    """
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return plain if width is None or len(plain) <= width else plain[: width - 1] + "…"


def finite(value: Any) -> Any:
    """Return plain values for JSON: what is infinite or undefined becomes None.

    Examples
    --------
    >>> finite({"mean": float("nan"), "pulls": (3, float("inf"))})
    {'mean': None, 'pulls': [3, None]}
    """
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_folder(target: Path) -> Path:
    """Return the path of a file to write, or say that there is no such folder."""
    if not target.parent.is_dir():
        raise OutputError(
            f"cannot write {target}: there is no folder {str(target.parent)!r}. Create it first."
        )
    if target.is_dir():
        raise OutputError(f"cannot write {target}: it is a folder. Give the name of a file.")
    return target


def write_file(path: str | PathLike[str], content: bytes) -> Path:
    """Write a file under a temporary name and rename it: it is there in full or not at all."""
    target = check_folder(Path(path))
    if target.is_symlink():
        target = target.resolve()
    if target.exists() and not target.is_file():  # a device or a pipe cannot be replaced
        target.write_bytes(content)
        return target
    temporary = target.with_name(f".{target.name}.{uuid4().hex[:8]}")
    try:
        with temporary.open("xb") as file:  # with the rights that the umask gives a new file
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(temporary, target.stat().st_mode & 0o777)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return target
