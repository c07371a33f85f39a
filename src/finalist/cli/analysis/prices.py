"""`finalist plan --models` and `--margins`: what each model, and each margin, would cost."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finalist.cli import output
from finalist.cli.options import Format
from finalist.errors import ProblemError

if TYPE_CHECKING:
    from finalist.arms import Arms
    from finalist.planning import MarginPrices, ModelPrices
    from finalist.planning.prices import Prices


def prices(
    arms: "Arms", form: Format, out: Path | None, *, gap: float | None, other: bool, **words: Any
) -> None:
    """Compare models and print; `other` says whether options are given that clash."""
    import finalist as fl

    found = fl.model_prices(arms, gap=_lead("--models", gap, other), **words)
    output.deliver(_printed(found, form, _models), out)


def margins(
    arms: "Arms",
    form: Format,
    out: Path | None,
    chart: Path | None,
    *,
    gap: float | None,
    other: bool,
    **words: Any,
) -> None:
    """Compare margins, print and draw; `other` says whether options are given that clash."""
    import finalist as fl

    found = fl.margin_prices(arms, gap=_lead("--margins", gap, other), **words)
    output.deliver(_printed(found, form, _margins), out)
    if chart is not None:
        from finalist.charts.curves import margins_chart

        with output.working("Drawing..."):
            output.draw(margins_chart(found), chart)


def _lead(option: str, gap: float | None, other: bool) -> float:
    """Return the lead; refuse options that clash."""
    if gap is None or other:
        raise ProblemError(
            f"{option} draws the truth for every row, so it needs --gap, how far the best "
            "candidate leads, and takes neither a theta nor --against."
        )
    return gap


def _printed(found: "Prices", form: Format, table: Callable[[Any], Iterable[Any]]) -> str:
    if form is Format.json:
        return output.to_json(found.to_dict())
    if form is Format.csv:
        figures = [row.figures() for row in found.rows]
        return output.to_csv(list(figures[0]), [list(row.values()) for row in figures])
    words = found.words()
    return output.to_text(words[:1].upper() + words[1:], *table(found))


def _models(found: "ModelPrices") -> Iterable[Any]:
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
    return output.arms_table(header, rows, everything=True)


def _margins(found: "MarginPrices") -> Iterable[Any]:
    header = ["Margin"]
    for lead in found.leads:
        header += [f"Lead {lead:g}: median", "90 % within"]
    rows = [
        [f"{margin:g}" if margin else "none"]
        + [
            found.shown(value)
            for lead in found.leads
            for value in (found.row(margin, lead).median, found.row(margin, lead).high)
        ]
        for margin in found.margins
    ]
    return output.arms_table(header, rows, everything=True)
