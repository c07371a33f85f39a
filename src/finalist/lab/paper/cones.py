"""Figure 1 of Soare 2014: cones of three arms in the plane and the confidence sets of the text.

`oracle_set` is S*(x_n) (eq:oracle.conf.set): a one-sided bound for each direction x* - x, so that
the set is the cone of the best arm moved outwards, unbounded on one side. `empirical_set` is
S_hat(x_n) (eq:emp.conf.set): all directions, hence a bounded polygon around the estimate. It is
drawn for an estimate equal to theta, around which estimates fall.

XY-Adaptive is followed through three phases, each on the arms that the one before left possible.
Each phase counts its own pulls only, as in the algorithm, so its sets compare with a G-allocation
of the same length.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from finalist.arms import Arms
from finalist.charts.geometry import ConvexSet
from finalist.charts.plane import Panel, region_chart, regions_chart
from finalist.complexity import complexity
from finalist.design import optimal_design, round_design
from finalist.inference.bounds import static_radius
from finalist.inference.information import information
from finalist.lab.page import Finding, Part, Picture
from finalist.lab.paper.experiment import DELTA, instance
from finalist.lab.tables import Table
from finalist.shapes import Float, Int
from finalist.text import listed

#: A larger angle than in the experiment, to be visible in the plane; noise that suits 1000 pulls.
ANGLE, NOISE = 0.4, 1.5
PULLS = (100, 500, 1000)
#: After this many pulls of the oracle, x2 is ruled out and x3 is not.
FIGURE_PULLS = 400
#: The runner-up and the third arm, whose border the set has to leave.
RUNNER_UP, THIRD = 2, 1
#: The pictures show parameters up to this size.
_SIDE = 4.6


@dataclass(frozen=True, eq=False)
class ConfidenceSet:
    """A confidence set after some pulls.

    Attributes
    ----------
    allocation : str
        Whose allocation it is.
    possible : tuple of str
        Arms that are best for some parameter in the set.
    borders : bool
        Whether it meets the border between the cones of the two suboptimal arms.
    """

    allocation: str
    pulls: int
    counts: Int[np.ndarray, " K"]
    region: ConvexSet
    possible: tuple[str, ...]
    borders: bool


def oracle_set(
    arms: Arms, theta: Float[np.ndarray, " 2"], counts: Int[np.ndarray, " K"]
) -> ConvexSet:
    """Return S*(x_n) = {t : y'(theta - t) <= radius ||y||_{A^-1} for y in Y*}."""
    best = int(arms.means(theta).argmax())
    pairs = [(best, other) for other in range(len(arms)) if other != best]
    return _set(arms, theta, counts, pairs)


def empirical_set(
    arms: Arms, centre: Float[np.ndarray, " 2"], counts: Int[np.ndarray, " K"]
) -> ConvexSet:
    """Return S_hat(x_n) = {t : y'(centre - t) <= radius ||y||_{A^-1} for y in Y}."""
    return _set(arms, centre, counts, permutations(range(len(arms)), 2))


def _set(
    arms: Arms,
    centre: Float[np.ndarray, " 2"],
    counts: Int[np.ndarray, " K"],
    pairs: Iterable[tuple[int, int]],
) -> ConvexSet:
    a, b = np.array(list(pairs)).T
    Y, Z = arms.features[a] - arms.features[b], arms.coordinates
    norms = np.sqrt(information(Z, counts.astype(float)).variances(Z[a] - Z[b]))
    radius = static_radius(float(counts.sum()), len(arms), DELTA, NOISE)
    return ConvexSet(-Y, radius * norms - Y @ centre)


def figure() -> ConfidenceSet:
    """Return the set S* of the paper's figure, under the oracle's allocation."""
    return oracle_sets((FIGURE_PULLS,))[0]


def oracle_sets(pulls: tuple[int, ...] = PULLS) -> list[ConfidenceSet]:
    """Return S* under the oracle's allocation."""
    arms, theta = instance(2, ANGLE)
    design = complexity(arms, theta, NOISE, DELTA).oracle_design
    found = []
    for n in pulls:
        counts = round_design(design, n)
        found.append(_confidence_set("Oracle", arms, counts, oracle_set(arms, theta, counts)))
    return found


def g_sets() -> list[ConfidenceSet]:
    """Return S_hat under the G-allocation."""
    arms, theta = instance(2, ANGLE)
    design = optimal_design(arms, "g")
    return [_empirical("G", arms, theta, round_design(design, n)) for n in PULLS]


def adaptive_sets() -> list[ConfidenceSet]:
    """Return S_hat of three phases of XY-Adaptive, each on the survivors of the one before."""
    arms, theta = instance(2, ANGLE)
    survivors, found = np.arange(len(arms)), []
    for n in PULLS:
        if len(survivors) > 1:
            design = optimal_design(arms, "xy", among=survivors)
        current = _empirical("XY-Adaptive", arms, theta, round_design(design, n))
        possible = [arms.index(name) for name in current.possible]
        survivors = np.intersect1d(survivors, possible)
        found.append(current)
    return found


def _empirical(
    label: str, arms: Arms, theta: Float[np.ndarray, " 2"], counts: Int[np.ndarray, " K"]
) -> ConfidenceSet:
    return _confidence_set(label, arms, counts, empirical_set(arms, theta, counts))


def _confidence_set(
    label: str, arms: Arms, counts: Int[np.ndarray, " K"], region: ConvexSet
) -> ConfidenceSet:
    possible = tuple(arms.names[i] for i in sorted(region.possible(arms.features)))
    borders = region.meets_border(arms.features, THIRD, RUNNER_UP)
    return ConfidenceSet(label, int(counts.sum()), counts, region, possible, borders)


def cones_part() -> Part:
    """Assemble the figure, its sequel, a table and the findings."""
    first, rows = figure(), [g_sets(), adaptive_sets(), oracle_sets()]
    text = (
        "Every arm is best for the parameters in its cone. A confidence set that lies in one cone "
        "settles the matter; one that does not leaves the arms of all the cones it meets "
        f"possible. Here are three arms in the plane, x3 at the angle {ANGLE:g} from x1, "
        f"and noise of size {NOISE:g}.",
        "S* is one-sided as printed: it is the cone of x1, moved outwards by what the pulls leave "
        "open. Its two edges are parallel to the borders of that cone, which is why an allocation "
        "that shrinks exactly x1 - x2 and x1 - x3 is the best one. A commented-out figure of the "
        "paper's source compares allocations after 100, 500 and 1000 pulls; it is redrawn below.",
    )
    findings = (_figure_finding(first), _shapes_finding(rows[0], rows[1]))
    sets = [first, *(s for row in rows for s in row)]
    pictures = (_first_picture(first), _second_picture(rows))
    title = "Cones and confidence sets in the plane"
    return Part("cones", title, text, findings, (cones_table(sets),), pictures)


def _figure_finding(first: ConfidenceSet) -> Finding:
    left = "" if first.borders else "no longer "
    return Finding(
        "In Figure 1 both x1 and x3 may be optimal, and x2 - x3 can be discarded",
        first.possible == ("x1", "x3") and not first.borders,
        f"after {first.pulls} pulls of the oracle {listed(first.possible)} are possible, and S* "
        f"{left}meets the border between the cones of x2 and x3",
    )


def _shapes_finding(static: list[ConfidenceSet], adaptive: list[ConfidenceSet]) -> Finding:
    """Compare how much of the pulls goes to x2, and what is left possible at the end."""
    share = [s[-1].counts[THIRD] / s[-1].pulls for s in (static, adaptive)]
    return Finding(
        "XY-Adaptive samples the directions that matter, and its set takes the shape of S*",
        bool(share[1] > share[0] and set(adaptive[-1].possible) < set(static[-1].possible)),
        f"x2 gets {share[1]:.0%} of the last phase and {share[0]:.0%} under G; after "
        f"{PULLS[-1]} pulls {listed(adaptive[-1].possible)} is left, under G "
        f"{listed(static[-1].possible)}",
    )


def _first_picture(first: ConfidenceSet) -> Picture:
    arms, theta = instance(2, ANGLE)
    title = f"After {first.pulls} pulls of the oracle, {listed(first.possible)} may be best"
    subtitle = [
        "Dashed: S*(x_n), the cone of x1 moved outwards; it has no end on the lower right.",
        "Solid: where the same bounds hold on both sides of θ*. Colours: the best arm there.",
    ]
    chart = region_chart(arms, theta, first.region, _SIDE, title, subtitle)
    return Picture("cones", chart, "Figure 1 of the paper, from its formulas.")


def _second_picture(rows: list[list[ConfidenceSet]]) -> Picture:
    arms, theta = instance(2, ANGLE)
    panels = [
        [Panel(f"{s.allocation}, {s.pulls:,}: {listed(s.possible)}", s.region) for s in row]
        for row in rows
    ]
    subtitle = [
        "Above each panel: who shared the pulls, how many, and which arms may be best.",
        "G and XY-Adaptive: the set around an estimate that hits θ* (the cross). Oracle: S*.",
    ]
    chart = regions_chart(arms, theta, panels, _SIDE, "How confidence sets shrink", subtitle)
    return Picture("cones-pulls", chart, "Confidence sets after 100, 500 and 1000 pulls.")


def cones_table(sets: Iterable[ConfidenceSet]) -> Table:
    """Return how the pulls were shared and which arms each set leaves possible."""
    columns = ("allocation", "pulls", "x1", "x2", "x3", "may be best", "meets border of x2 and x3")
    rows = tuple(
        (s.allocation, s.pulls, *s.counts.tolist(), listed(s.possible), s.borders) for s in sets
    )
    title = f"Confidence sets in the plane (noise {NOISE:g}, angle {ANGLE:g})"
    return Table("cones", title, columns, rows)
