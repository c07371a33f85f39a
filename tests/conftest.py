"""Settings for every test; with FINALIST_SHAPES=1 array shapes in annotations are checked too."""

import os

from hypothesis import settings

settings.register_profile("finalist", deadline=None, derandomize=True)
settings.load_profile("finalist")

if os.environ.get("FINALIST_SHAPES"):
    from jaxtyping import install_import_hook

    import tests.typechecker  # noqa: F401  (the hook looks it up by name)

    # Everything but the command line and the compiled kernels, which the hook would break.
    MODULES = ["arms", "arms_files", "arms_io", "bounds", "complexity", "information"]
    MODULES += ["least_squares", "noise", "problem", "rewards", "rows", "span", "statistics"]
    MODULES += [f"design.{name}" for name in ("farthest", "greedy", "linalg", "minimax")]
    MODULES += [f"design.{name}" for name in ("optimal", "result", "rounding", "smooth", "support")]
    MODULES += [f"strategies.{name}" for name in ("protocol", "registry", "xy_adaptive")]
    install_import_hook([f"finalist.{name}" for name in MODULES], "tests.typechecker.checked")
