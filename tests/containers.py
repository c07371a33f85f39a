"""A finalist as in a good container: a read-only installation, and a user who has no home.

`Installed` copies the package to a folder of its own and runs Python on it as another user. As
root that is `nobody`, who may read everything and write nothing of others (`setpriv` leaves that
one right to root's users, because the Python of a machine may lie in root's home); with `mounted`
the copy is also mounted read-only, in a mount namespace of its own. Where a machine does not
permit that, the test is skipped and says so.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "finalist"
NOBODY = 65534
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
AS_NOBODY = [
    "setpriv",
    f"--reuid={NOBODY}",
    f"--regid={NOBODY}",
    "--clear-groups",
    "--inh-caps=-all,+dac_read_search",
    "--ambient-caps=-all,+dac_read_search",
]


class Installed:
    """A copy of the package that cannot be written, and a folder for studies that can.

    It is not among the folders of pytest, which every run of pytest closes to other users.

    Parameters
    ----------
    mounted : bool
        Mount the copy read-only; else only its permissions say so.
    """

    def __init__(self, mounted: bool = False) -> None:
        self._place = tempfile.TemporaryDirectory()
        place = Path(self._place.name)
        self.package = place / "app" / "finalist"
        self.data, self.temporary = place / "data", place / "tmp"
        # With Python's bytecode, as an installation has it, but nothing that numba compiled.
        shutil.copytree(SOURCE, self.package, ignore=shutil.ignore_patterns("*.nbc", "*.lock"))
        for folder in (self.data, self.temporary):
            folder.mkdir()
            folder.chmod(0o1777)
        place.chmod(0o755)
        self.read_only()
        try:
            self._wrapper = [*self._mounting(mounted), *self._user()]
        except BaseException:
            self.remove()
            raise

    def _mounting(self, mounted: bool) -> list[str]:
        if not mounted:
            return []
        wrapper = ["unshare", "--mount", "sh", "-c", READ_ONLY, str(self.package)]
        if shutil.which("unshare") is None or subprocess.run([*wrapper, "true"]).returncode != 0:
            pytest.skip("NO READ-ONLY MOUNT: this needs root and unshare; run the tests as root.")
        return wrapper

    def _user(self) -> list[str]:
        if not IS_ROOT:
            return []
        if shutil.which("setpriv") is None:
            pytest.skip("NO OTHER USER: setpriv (of util-linux) is not installed.")
        return AS_NOBODY

    def read_only(self) -> None:
        """Take away the permission to write, which for root is no obstacle."""
        for path in (self.package, *self.package.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)

    def writable(self) -> None:
        """Give it back."""
        for path in (self.package, *(p for p in self.package.rglob("*") if p.is_dir())):
            path.chmod(0o755)

    def remove(self) -> None:
        """Remove all of it."""
        self.writable()
        self._place.cleanup()

    def command(self, *words: str) -> list[str]:
        """Return the command that runs Python with these words."""
        return [*self._wrapper, sys.executable, *words]

    def environment(self, **more: str) -> dict[str, str]:
        """Return an environment without a home, and with little else.

        Nobody has none by the table of users either; others have one there.
        """
        return {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "PYTHONPATH": str(self.package.parent),
            "TMPDIR": str(self.temporary),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            **({} if IS_ROOT else {"HOME": "/nonexistent"}),
            **more,
        }

    def python(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the folder for studies."""
        return subprocess.run(
            self.command(*words),
            cwd=self.data,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            timeout=300,
        )

    def finalist(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Type in a command."""
        return self.python("-m", "finalist", *words, **more)
