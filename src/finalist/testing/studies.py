"""A small study to try things on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from finalist.arms import Arms
from finalist.study import Study


@contextmanager
def small_study(name: str = "two") -> Iterator[Study]:
    """Give a study of two arms, a and b; its file goes with it.

    Examples
    --------
    >>> with small_study() as study:
    ...     len(study.ask(size=2))
    2
    """
    with TemporaryDirectory() as folder:
        arms = Arms.unstructured(["a", "b"])
        with Study.create(Path(folder, "lab.db"), name, arms, sigma=1.0, seed=1) as study:
            yield study
