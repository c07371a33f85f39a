"""`finalist demo --paper`: the example of Soare 2014, Sect. 6, explained to a newcomer."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from finalist.cli import output
from finalist.cli.analysis.complexity import facts
from finalist.cli.research import reproduce

if TYPE_CHECKING:
    from rich.table import Table

    from finalist.arms import Arms
    from finalist.complexity import Complexity
    from finalist.design import Design

#: An angle between the best arm and the runner-up that is visible; the paper's is 0.01.
_WIDE_OMEGA = 0.5
_PLANE_PULLS = 300

_STORY = """\
Six candidates ("arms"). x1 to x5 have one feature each; x6 is almost x1 (an angle of 0.01).
A measurement ("pull") of an arm gives its features times an unknown theta, plus noise.
Here theta = (2, 0, 0, 0, 0) and the noise has size 1, so x1 is best, and x6 is hardly worse.
Which arms should be measured, and how often, to name x1 with at most 5% risk of error?
"""
_LESSON = """\
Measuring x1 and x6, the two in question, would be a waste: their rewards differ by 0.0001.
They differ in the second feature, and x2 measures just that: hence the oracle's design.
The oracle knows theta. finalist does not, and an adaptive strategy learns where to measure:
"""
_RACE = """\
Below, the paper's strategies with rewards drawn 10 times, beside the paper's own table. XY-Adaptive
(in brackets its setting alpha) finds x2 by itself; G and XY treat all directions alike. The oracle
looks once, after pulls fixed in advance; N* above is for a rule that may look at any time.
"""


def demo_paper(out: Path) -> None:
    """Compute, explain, draw."""
    import finalist as fl
    from finalist.lab import paper
    from finalist.lab.paper.experiment import SIGMA

    out.mkdir(parents=True, exist_ok=True)
    with output.working("Solving three designs..."):
        arms, theta = paper.instance()
        result = fl.complexity(arms, theta, sigma=SIGMA)
        designs = {
            "G-optimal": fl.optimal_design(arms, "g"),
            "XY-optimal": fl.optimal_design(arms, "xy"),
            "Oracle": result.oracle_design,
        }
        hardness = ["How hard the problem is, in the paper's terms:", ""]
        text = output.to_text(
            _STORY,
            *_weights(arms, result, designs),
            *_costs(result, designs),
            *hardness,
            output.facts_table(facts(arms, result)),
        )
    typer.echo(text)
    typer.echo(_LESSON)
    with reproduce.progress(["table"], paper.Extent.quick()) as announce:
        race = paper.quick(out, jobs=-1, announce=announce)
    shares = race.parts[0].tables[0]
    typer.echo(output.to_text(_RACE, f"{shares.title}:", reproduce.table_of(shares)))
    with output.working("Drawing..."):
        arms.to_csv(out / "candidates.csv")
        files = [out / "candidates.csv", *_charts(arms, designs, out), *paper.write(race, out)]
    output.list_files(files)
    typer.echo("\nNext, plan 1000 pulls of these arms, or of your own file:")
    typer.echo(f"  finalist design {out / 'candidates.csv'} --criterion xy --pulls 1000")


def _weights(
    arms: "Arms", result: "Complexity", designs: "dict[str, Design]"
) -> "list[Table | str]":
    means = result.problem.means(result.theta)
    rows = [
        [
            name,
            f"{means[i]:.4f}",
            f"{result.gaps[i]:.4f}" if i != result.best else "best",
            *(_percent(design.weights[i]) for design in designs.values()),
        ]
        for i, name in enumerate(arms.names)
    ]
    header = ["Arm", "Expected reward", "Behind the best", *designs]
    return [
        "Share of the measurements that each design gives to each arm:",
        *output.arms_table(header, rows, True),
    ]


def _percent(weight: float) -> str:
    if weight == 0:
        return "-"
    return "<0.1%" if weight < 0.0005 else f"{weight:.1%}"


def _costs(result: "Complexity", designs: "dict[str, Design]") -> "list[Table | str]":
    meaning = {
        "G-optimal": "learns every arm equally well",
        "XY-optimal": "learns every difference of two arms equally well",
        "Oracle": "learns what separates the best arm from the others, knowing theta",
    }
    rows = [
        (label, output.number(result.budget(design)), meaning[label])
        for label, design in designs.items()
    ]
    rows.append(
        (
            "Lower bound",
            output.number(math.ceil(result.lower_bound)),
            "for the mean of a method that is right whatever theta is",
        )
    )
    return [
        "Measurements until x1 is proven best, when they are shared like this:",
        "",
        output.facts_table(rows),
        "",
    ]


def _charts(arms: "Arms", designs: "dict[str, Design]", out: Path) -> list[Path]:
    import finalist as fl
    from finalist.charts import designs_chart, plane_chart, save
    from finalist.lab.paper.experiment import SIGMA, instance

    flat, theta = instance(2, _WIDE_OMEGA)
    plane = plane_chart(flat, theta, fl.optimal_design(flat, "xy"), _PLANE_PULLS, sigma=SIGMA)
    weights = {label: design.weights for label, design in designs.items()}
    sides = designs_chart(weights, arms.names, title="Three ways to share the measurements")
    return [
        save(chart, out / f"{stem}.{suffix}")
        for stem, chart in (("designs", sides), ("plane", plane))
        for suffix in ("png", "svg")
    ]
