"""The evidence against each arm over the pulls of a study, as a chart."""

from typing import TYPE_CHECKING

from finalist.errors import ChartError
from finalist.files import printable

if TYPE_CHECKING:
    from finalist.charts.theme import AnyChart
    from finalist.study import Study


def evidence_picture(
    study: "Study", title: str | None = None, remarks: tuple[str, ...] = ()
) -> "AnyChart":
    """Draw what speaks against each arm after each batch, since the arms last changed."""
    import numpy as np

    from finalist.charts.evidence import evidence_chart

    pulls, evidence = study.evidence()
    grown = np.diff(pulls, prepend=0) > 0  # a batch of which all is missing adds nothing
    if not grown.any():
        raise ChartError(
            f"there is no evidence to draw in study {printable(study.name, 60)!r}: no batch is "
            "complete, or its strategy has none (the gauntlet has), or there are too many arms."
        )
    arms, won = study.arms, study.status(forecast=False).winners
    tested = np.flatnonzero(arms.candidate)
    names = [arms.names[i] for i in tested]
    return evidence_chart(
        pulls[grown],
        evidence[np.ix_(grown, tested)],
        names,
        winner=[names.index(name) for name in won],
        title=title or f"Evidence against each arm: {printable(study.name, 60)}",
        subtitle=("An arm is out when its line reaches 1.", *remarks),
    )
