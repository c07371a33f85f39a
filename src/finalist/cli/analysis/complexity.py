"""`finalist complexity`: how hard a problem is when the parameter is known."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from finalist.cli import inputs, output
from finalist.cli.groups import AnswerOptions, ProblemOptions, ReadingOptions, with_options
from finalist.cli.options import (
    ArmsFile,
    DeltaOption,
    Format,
    InterceptOption,
    ObjectiveOption,
    SigmaOption,
    ThetaFileOption,
    ThetaOption,
)
from finalist.files import printable

if TYPE_CHECKING:
    from finalist.arms import Arms
    from finalist.charts.theme import AnyChart
    from finalist.complexity import Complexity

HELP = """Say how hard a problem is if the truth, theta, is known.

\b
Example:
  finalist complexity candidates.csv --theta 2,0,-0.5 --sigma 0.3

The expected reward of an arm is the sum of its features times theta. --format csv has one
row per arm: name, mean, gap, oracle_weight. --format json has everything under the keys

\b
  best, sigma, delta, bound, objective, alpha, delta_min, h_lb, h_mab,
  t_star, lower_bound, oracle_budget, m_star, bounds (lemma2_lower,
  lemma2_upper, theorem1, theorem2, theorem3), oracle_design (value,
  lower_bound, gap, status), arms (list of name, aliases, mean, gap,
  oracle_weight, in the order of the file)

Infinite values are null.
"""


@with_options
def complexity(
    arms_file: ArmsFile,
    *,
    theta: ThetaOption = None,
    theta_file: ThetaFileOption = None,
    sigma: SigmaOption = None,
    delta: DeltaOption = 0.05,
    intercept: InterceptOption = False,
    reading: ReadingOptions,
    bound: Annotated[
        Literal["sharp", "soare"],
        typer.Option(help="Constants: the tighter valid ones, or the paper's."),
    ] = "sharp",
    objective: ObjectiveOption = "max",
    alpha: Annotated[float, typer.Option(help="Setting of XY-Adaptive, for Theorem 3.")] = 0.4,
    answer: AnswerOptions,
) -> None:
    """Read, compute, print."""
    answer.check()
    import numpy as np

    import finalist as fl

    given = ProblemOptions({}, intercept=intercept, reading=reading)
    arms = inputs.load_arms(arms_file, given).arms
    parameter = np.array(inputs.read_theta(theta, theta_file, arms))
    size = inputs.noise_size(None, sigma, binary="")
    with output.working("Computing complexities..."):
        result: Complexity = fl.complexity(
            arms,
            parameter,
            sigma=size,
            delta=delta,
            bound=bound,
            objective=objective.value,
            alpha=alpha,
        )
        if answer.form is Format.json:
            text = output.to_json(_as_dict(arms, result))
        elif answer.form is Format.csv:
            text = output.to_csv(["name", "mean", "gap", "oracle_weight"], _rows(arms, result))
        else:
            text = _table(arms, result, answer.everything)
    output.deliver(text, answer.out)
    if answer.chart is not None:
        with output.working("Drawing..."):
            output.draw(_picture(arms, result), answer.chart)


def _picture(arms: "Arms", result: "Complexity") -> "AnyChart":
    """Return the plane with the oracle's pulls for two features, otherwise the gaps."""
    from finalist.charts import fits_plane, gaps_chart, plane_chart

    oracle, problem = result.oracle_design, result.problem
    if problem.objective == "min" or not fits_plane(arms, oracle.weights):
        return gaps_chart(arms.names, result.gaps)
    pulls = max(result.oracle_budget, len(oracle.support))
    return plane_chart(
        arms,
        result.theta,
        oracle,
        pulls,
        problem.delta,
        sigma=problem.sigma,
        bound=result.bound,
    )


def _rows(arms: "Arms", result: "Complexity") -> list[list[Any]]:
    """Return name, mean, gap and the oracle's weight, the best arm first."""
    means = result.problem.means(result.theta).tolist()
    gaps, weights = result.gaps.tolist(), result.oracle_design.weights.tolist()
    order = sorted(range(len(gaps)), key=gaps.__getitem__)
    return [[arms.names[i], means[i], gaps[i], weights[i]] for i in order]


def _as_dict(arms: "Arms", result: "Complexity") -> dict[str, Any]:
    oracle, bounds = result.oracle_design, result.bounds
    columns = (result.problem.means(result.theta), result.gaps, oracle.weights)
    per_arm = zip(arms.aliases, *(column.tolist() for column in columns), strict=True)
    return {
        "best": arms.names[result.best],
        "sigma": result.problem.sigma,
        "delta": result.problem.delta,
        "bound": result.bound,
        "objective": result.problem.objective,
        "alpha": result.alpha,
        "delta_min": result.delta_min,
        "h_lb": result.h_lb,
        "h_mab": result.h_mab,
        "t_star": result.t_star,
        "lower_bound": result.lower_bound,
        "oracle_budget": result.oracle_budget,
        "m_star": result.m_star,
        "bounds": {
            "lemma2_lower": bounds.lemma2_lower,
            "lemma2_upper": bounds.lemma2_upper,
            "theorem1": bounds.theorem1,
            "theorem2": bounds.theorem2,
            "theorem3": bounds.theorem3,
        },
        "oracle_design": {
            "value": oracle.value,
            "lower_bound": oracle.lower_bound,
            "gap": oracle.gap,
            "status": oracle.status,
        },
        "arms": [
            {"name": names[0], "aliases": list(names), "mean": mean, "gap": gap, "oracle_weight": w}
            for names, mean, gap, w in per_arm
        ],
    }


def facts(arms: "Arms", result: "Complexity") -> list[tuple[str, str, str]]:
    """Return every quantity with its value and a plain explanation."""
    bounds, delta = result.bounds, result.problem.delta
    number = output.number
    return [
        ("best candidate", printable(arms.names[result.best], 30), "what a study should find"),
        ("smallest gap", number(result.delta_min), "how far the runner-up is behind it"),
        (
            "lower bound",
            number(result.lower_bound),
            f"mean of a method with error {delta:g} or less for every theta",
        ),
        (
            "oracle budget N*",
            number(result.oracle_budget),
            "measurements of an oracle that is told theta and must prove its answer",
        ),
        (
            "H_LB",
            number(result.h_lb),
            "difficulty when candidates share what is learnt about theta",
        ),
        ("H_MAB", number(result.h_mab), "difficulty when every candidate is measured for itself"),
        ("T*", number(result.t_star), "2 sigma^2 H_LB, the scale of the lower bound"),
        (
            "M*",
            number(result.m_star),
            "measurements after which no two losing candidates can tie for the lead",
        ),
        (
            "Lemma 2",
            f"{number(bounds.lemma2_lower)} to {number(bounds.lemma2_upper)}",
            "range in which H_LB must lie",
        ),
        ("Theorem 1", number(bounds.theorem1), "measurements that suffice for the G-allocation"),
        ("Theorem 2", number(bounds.theorem2), "measurements that suffice for the XY-allocation"),
        ("Theorem 3", number(bounds.theorem3), "scale of the measurements of XY-Adaptive"),
    ]


def _table(arms: "Arms", result: "Complexity", everything: bool) -> str:
    rows = [
        [name, output.number(mean), output.number(gap) if gap else "best", f"{weight:.6f}"]
        for name, mean, gap, weight in _rows(arms, result)
    ]
    table = output.arms_table(["Name", "Mean", "Gap", "Oracle weight"], rows, everything)
    merged = f"{len(arms)} distinct candidates; {output.merged(arms.aliases)}"
    return output.to_text(*table, output.facts_table(facts(arms, result)), merged)
