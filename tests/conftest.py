"""Settings for every test; with FINALIST_SHAPES=1 array shapes in annotations are checked too."""

import os
import signal
from pathlib import Path

from hypothesis import settings

settings.register_profile("finalist", deadline=None, derandomize=True)
settings.load_profile("finalist")

# A shell starts `make test &` with Ctrl-C switched off, for all processes that tests start too.
signal.signal(signal.SIGINT, signal.default_int_handler)

if os.environ.get("FINALIST_SHAPES"):
    from jaxtyping import install_import_hook

    import tests.typechecker  # noqa: F401  (the hook looks it up by name)

    # Everything but the command line and the compiled kernels, which the hook would break.
    SOURCE = Path(__file__).parents[1] / "src"
    FILES = [path.relative_to(SOURCE).with_suffix("") for path in SOURCE.rglob("*.py")]
    MODULES = [
        ".".join(file.parts)
        for file in sorted(FILES)
        if not {"cli", "kernels"} & set(file.parts) and not file.name.startswith("__")
    ]
    install_import_hook(MODULES, "tests.typechecker.checked")


#: How reasons begin for which tests are left out that should not be.
LOUD = ("NO BROWSER", "NO READ-ONLY MOUNT", "NO OTHER USER")


def pytest_terminal_summary(terminalreporter):
    """Say loudly, once, that tests were left out because the machine lacks something."""
    reasons = {
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple) and any(word in report.longrepr[2] for word in LOUD)
    }
    for reason in sorted(reasons):
        terminalreporter.write_sep("!", "tests left out", yellow=True, bold=True)
        terminalreporter.write_line(reason, yellow=True)
