"""Where compiled code is kept between processes.

The files are pickles, so they are read only from folders that are as trusted as the code itself:
the one that `NUMBA_CACHE_DIR` names; or else `__pycache__` of the installed package, then the
user's cache. If none of them can be written, as in a container with a read-only installation and
no home directory, a temporary folder is made that only this user can enter, and removed when the
process ends. Processes that it starts share the folder: they find its name in the environment, and
check that it still exists and still belongs to the user.
"""

import logging
import os
import shutil
import stat
import tempfile
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path

#: The environment variable that names the temporary folder to child processes.
VARIABLE = "FINALIST_COMPILED"
#: How the names of files with compiled code end.
SUFFIX = ".nbc"
_REMEDY = "Set NUMBA_CACHE_DIR to a folder that you can write; later starts are faster."

log = logging.getLogger("finalist")
_removal: Finalize | None = None


def to_read() -> list[Path]:
    """Return the folders that may hold compiled code, the most likely first."""
    shared = _named()
    return _lasting() if shared is None else [*_lasting(), shared]


def to_write() -> Path | None:
    """Return the folder for compiled code, or None if nothing can be written."""
    lasting = _writable()
    if lasting is not None:
        return lasting
    _make_temporary()
    return _named()


def prepare() -> None:
    """Choose the folder before other processes are started, so that they share a temporary one.

    An installation that was compiled before it became read-only needs no temporary folder.
    """
    if _writable() is None and not any(map(_has_code, _lasting())):
        _make_temporary()


def remove() -> None:
    """Remove the temporary folder of this process, if it made one; its end does so too."""
    if _removal is not None:
        _removal()


def _lasting() -> list[Path]:
    """Return the folders that outlive a process, writable or not."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return [Path(given).absolute() / "finalist"]
    folders = [Path(__file__).parent / "__pycache__"]
    name = "LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME"
    user = os.environ.get(name) or os.path.expanduser("~/.cache")
    # Without a home, '~' stays as it is; a folder of that name in the working folder is not ours.
    return [*folders, Path(user, "finalist")] if os.path.isabs(user) else folders


def _has_code(folder: Path) -> bool:
    """Return whether there is compiled code in a folder that can be read."""
    try:
        return any(name.endswith(SUFFIX) for name in os.listdir(folder))
    except OSError:
        return False


@cache
def _writable() -> Path | None:
    """Return the first of the lasting folders in which a file can be made."""
    for folder in _lasting():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    return None


@cache
def _make_temporary() -> None:
    """Make a private folder and name it in the environment, once, unless one is named already."""
    if _named() is not None:
        return
    try:
        made = tempfile.mkdtemp(prefix="finalist-")
    except OSError:
        instead = "so every process compiles it again"
    else:
        # Removed after everything else has ended, and not by forked processes.
        global _removal
        _removal = Finalize(None, shutil.rmtree, (made, True), exitpriority=-100)
        os.environ[VARIABLE] = made
        instead = f"so it is in {made} until this process ends"
    folders = " or ".join(map(str, _lasting()))
    log.warning("Compiled code cannot be kept in %s, %s. %s", folders, instead, _REMEDY)


def _named() -> Path | None:
    """Return the temporary folder that the environment names, if it exists and is private.

    The process that made it may have ended, and another user may have taken its name.
    """
    name = os.environ.get(VARIABLE)
    if not name:
        return None
    try:
        found = os.lstat(name)
    except OSError:
        return None
    private = os.name == "nt" or (found.st_uid == os.geteuid() and not found.st_mode & 0o077)
    return Path(name) if stat.S_ISDIR(found.st_mode) and private else None
