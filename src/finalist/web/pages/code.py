"""Commands and lines of Python that do what the page of a study does, to copy."""

import shlex

from finalist.files import printable


def commands(study: str, place: str, batch_size: int | None) -> str:
    """Return the commands that do what the page does, to copy to a shell."""
    size = [] if batch_size is None else ["--size", str(batch_size)]
    lines = [
        ["ask", study, *size, "-o", "batch.csv", "--db", place],
        ["tell", study, "batch.csv", "--db", place],
        ["status", study, "--chart", "evidence.png", "--db", place],
        ["note", study, "plate 3 was changed", "--db", place],
        ["export", study, "-o", "everything.json", "--db", place],
        ["report", study, "-o", "report.html", "--db", place],
    ]
    return "\n".join(printable(shlex.join(["finalist", *line])) for line in lines)


def python(study: str, place: str, batch_size: int | None) -> str:
    """Return the lines of Python that do what the page does."""
    size = "" if batch_size is None else f"size={batch_size}"
    return (
        "import finalist as fl\n\n"
        f"study = fl.Study.open({place!r}, {study!r})\n"
        f"batch = study.ask({size})\n"
        "study.tell({pull.pull_id: measure(pull.arm) for pull in batch})\n"
        "print(study.status())"
    )
