"""`finalist plan --models`: what each model of a table would cost."""

from typing import TYPE_CHECKING, Any

from finalist.cli import output
from finalist.cli.options import Format
from finalist.errors import ProblemError

if TYPE_CHECKING:
    from finalist.arms import Arms
    from finalist.planning import ModelPrices


def prices(arms: "Arms", form: Format, *, gap: float | None, other: bool, **words: Any) -> str:
    """Simulate, and return what to print; `other` says whether options are given that clash."""
    import finalist as fl

    if gap is None or other:
        raise ProblemError(
            "--models draws the truth from each model, so it needs --gap, how far the best "
            "candidate leads, and takes neither a theta nor --against."
        )
    found = fl.model_prices(arms, gap=gap, **words)
    if form is Format.json:
        return output.to_json(found.to_dict())
    figures = [row.figures() for row in found.rows]
    if form is Format.csv:
        return output.to_csv(list(figures[0]), [list(row.values()) for row in figures])
    return _table(found)


def _table(found: "ModelPrices") -> str:
    header = ["Model", "Features", "Median", "90 % within", "Mean", "Undecided"]
    rows = [
        [
            row.name,
            str(row.features),
            *map(found.shown, (row.median, row.high, row.mean)),
            f"{row.undecided} of {found.draws}",
        ]
        for row in found.rows
    ]
    words = found.words()
    return output.to_text(
        words[:1].upper() + words[1:], *output.arms_table(header, rows, everything=True)
    )
