"""Pictures of the documentation, made by the code as it is: `make docs-figures`."""

import sys
from pathlib import Path

import numpy as np

import finalist as fl
from finalist.charts.curves import Curve, curves_chart, margins_chart
from finalist.charts.evidence import evidence_chart
from finalist.charts.plans import leads_chart
from finalist.charts.theme import ACCENT, INK, PALETTE, data, finish, save
from finalist.inference.information import information
from finalist.problem import as_problem
from finalist.region import Record
from finalist.simulation.binomial import exact_interval
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies.gauntlet import GauntletRun

#: Eight alloys, described by three numbers each; what is measured is linear in them.
FEATURES = np.random.default_rng(1).standard_normal((8, 3))
THETA = np.array([0.5, 0.3, 0.15])
SEED = 5


def _twelve(seed: int) -> np.ndarray:
    """Return twelve points of the sphere in three dimensions."""
    rows = np.random.default_rng(seed).standard_normal((12, 3))
    return rows / np.linalg.norm(rows, axis=1)[:, None]


#: The arms of the pages on noise, costs, shifts and misspecification; the best leads by 0.49.
TWELVE, DIRECTION = _twelve(2), np.array([1.0, 0.5, -0.3])


def evidence_picture(folder: Path) -> None:
    names = [f"alloy {letter}" for letter in "ABCDEFGH"]
    arms = fl.Arms(FEATURES, names=names)
    run = fl.Gauntlet().start(fl.Problem(arms, delta=0.05, noise=fl.Gaussian(1.0)), seed=SEED)
    pulls, evidence = _watched(run, arms.means(THETA), 1.0, SEED)
    chart = evidence_chart(
        pulls,
        evidence,
        arms.names,
        run.verdict.winner,
        title="Evidence against “this one is the best”",
        subtitle=[
            "One run, delta = 0.05. A candidate is ruled out at 1; the last one is the winner."
        ],
    )
    save(chart, folder / "evidence.png")


def _watched(
    run: GauntletRun, means: np.ndarray, sigma: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Run to the end; return pulls and evidence at the end of each batch."""
    rewards = DrawnRewards(means, sigma, "gaussian", np.random.default_rng(seed))
    pulls, evidence = [], []
    while not run.verdict.decided:
        batch = run.next()
        run.record(batch, rewards.batch(batch.counts))
        pulls.append(run.verdict.pulls)
        evidence.append(run.evidence().share)
    return np.array(pulls), np.array(evidence)


def average_picture(folder: Path) -> None:
    t = np.linspace(-1.0, 1.0, 21)
    arms = fl.Arms(np.column_stack([t**0, t, t**2]))
    celsius = tuple((200 + 50 * t).tolist())
    curves = []
    for label, criterion in (("G-optimal", "g"), ("V-optimal", "v")):
        design = fl.optimal_design(arms, criterion)
        variances = information(arms.coordinates, design.weights).variances(arms.coordinates)
        curves.append(Curve(f"{label}, mean {variances.mean():.2f}", celsius, tuple(variances)))
    _save_curves(
        folder / "v-optimality.png",
        curves,
        "Temperature, C",
        "Variance of the estimated mean, in sigma² / n",
        "Best in the worst case, or best on average",
        [
            "Yield is quadratic in temperature; both designs measure at 150, 200 and 250 C,",
            "G a third each, V about half at 200.",
        ],
    )


def region_picture(folder: Path) -> None:
    import altair as alt

    oven = fl.Region.box([150, 10], [250, 60], names=("celsius", "minutes"))
    net, best, scale = oven.net(11), np.array([207.0, 33.0]), np.array([50.0, 25.0])
    problem = fl.Problem(net.arms, noise=fl.Gaussian(1.0))
    rng = np.random.default_rng(SEED)
    points = np.array([list(net.point(name).values()) for name in net.arms.names])
    means = -8.0 * (((points - best) / scale) ** 2).sum(axis=1)
    counts = np.ceil(400 * net.weights).astype(int)
    batches = [DrawnRewards(means, 1.0, "gaussian", rng).batch(counts)]
    fine = net.refined(Record.of(problem, batches), delta=0.01)
    groups = {
        "a point of the net": net.points,
        "of the refined net": fine.points,
        "measured": net.design.points,
        "the best point": best[None],
    }
    looks = zip(("circle", "circle", "square", "cross"), (16, 12, 110, 160), strict=True)
    colours = alt.Scale(domain=list(groups), range=["#B8C0C8", PALETTE[0], INK, ACCENT])
    legend = alt.Legend(title=None, orient="right", symbolSize=90)
    axes = {
        name: axis(
            f"{word}:Q",
            scale=alt.Scale(domain=domain, nice=False),
            axis=alt.Axis(title=word.capitalize(), grid=False),
        )
        for name, axis, word, domain in (
            ("x", alt.X, "celsius", [145, 255]),
            ("y", alt.Y, "minutes", [6, 64]),
        )
    }
    layers = [
        alt.Chart(data([{"celsius": float(x), "minutes": float(y), "what": what} for x, y in some]))
        .mark_point(filled=True, opacity=1.0, shape=shape, size=size)
        .encode(**axes, color=alt.Color("what:N", scale=colours, legend=legend))
        for (what, some), (shape, size) in zip(groups.items(), looks, strict=True)
    ]
    chart = alt.layer(*layers).properties(width=420, height=320)
    share = 100.0 * len(fine.points) / np.prod([31, 31])
    subtitle = [
        f"After {counts.sum()} measurements at 9 points. {share:.0f} % of a net three times",
        "as fine hold all points that may still be best.",
    ]
    save(finish(chart, "Measured at the edge, found inside", subtitle), folder / "regions.png")


def noise_picture(folder: Path) -> None:
    import altair as alt

    sigma, own = np.arange(1, 13) / 4, np.eye(12)
    order = np.random.default_rng(0).permutation(12)  # the noise of arm i is sigma[order[i]]
    problems = {"three features": (TWELVE, DIRECTION), "no features": (own, own[0])}
    rows = []
    for label, (features, theta) in problems.items():
        result = fl.simulate(fl.Arms(features), theta, sigma=sigma[order], runs=100, seed=1)
        shares = result.pulls_per_arm.mean(axis=0) / result.samples.mean()
        rows += [
            {"sigma": f"{sigma[place]:g}", "share": float(share), "what": label}
            for place, share in zip(order, shares, strict=True)
        ]
    legend = alt.Legend(title=None, orient="top")
    scale = alt.Scale(domain=list(problems), range=list(PALETTE[:2]))
    x = alt.X("sigma:O", sort=[f"{s:g}" for s in sigma], title="Noise of the candidate, sigma")
    chart = (
        alt.Chart(data(rows))
        .mark_bar()
        .encode(
            x=x.axis(labelAngle=0),
            xOffset=alt.XOffset("what:N", sort=list(problems)),
            y=alt.Y(
                "share:Q",
                title="Share of the measurements",
                axis=alt.Axis(format="%", tickCount=5),
            ),
            color=alt.Color("what:N", scale=scale, legend=legend),
        )
        .properties(width=520, height=300)
    )
    subtitle = [
        "Twelve candidates, 100 runs. With features in common, quiet ones show how good all are.",
        f"Without, noise has to be paid for; there the best has sigma = {sigma[order[0]]:g}.",
    ]
    title = "Quiet candidates speak for noisy ones"
    save(finish(chart, title, subtitle), folder / "unequal-noise.png")


def cost_picture(folder: Path) -> None:
    arms, ratios = fl.Arms(TWELVE), (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
    order = np.random.default_rng(3).permutation(12)
    blind = fl.simulate(arms, DIRECTION, runs=100, seed=1, sigma=1.0).pulls_per_arm
    spent: dict[str, list[np.ndarray]] = {"not told": [], "told what they cost": []}
    for ratio in ratios:
        cost = np.geomspace(1.0, ratio, 12)[order]
        spent["not told"].append(blind @ cost)
        told = fl.simulate(arms, DIRECTION, cost=cost, runs=100, seed=1, sigma=1.0)
        spent["told what they cost"].append(told.cost)
    curves = []
    for label, parts in spent.items():
        mean, error = np.mean(parts, axis=1), np.std(parts, axis=1, ddof=1) / 10.0
        low, high = tuple(mean - 2 * error), tuple(mean + 2 * error)
        curves.append(Curve(label, ratios, tuple(mean), low, high))
    _save_curves(
        folder / "costs.png",
        curves,
        "Cost of the most expensive candidate (the cheapest costs 1)",
        "Cost of all measurements, mean",
        "The same answer from cheaper measurements",
        [
            "Twelve candidates, three features, 100 runs for each point, ± two standard errors.",
            "Costs are spread geometrically over the candidates, in random order.",
        ],
    )


def decide_picture(folder: Path) -> None:
    import altair as alt

    rng = np.random.default_rng(8)
    radius, angle = np.sqrt(rng.uniform(0.0, 1.0, 60)), rng.uniform(0.0, 2.0 * np.pi, 60)
    features = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    arms = fl.Arms(features, measurable=radius < 0.5)
    theta = np.array([1.0, 0.6])
    result = fl.simulate(arms, theta, runs=1, seed=SEED, sigma=1.0)
    pulls, winner = result.pulls_per_arm[0], result.winner[0]
    kinds = ("can be measured", "cannot be measured", "the winner")
    rows = [
        {"x": float(x), "y": float(y), "what": kinds[2 if i == winner else int(not able)]}
        | {"pulls": int(pulls[i])}
        for i, ((x, y), able) in enumerate(zip(features, arms.measurable, strict=True))
    ]
    axes = {
        "x": alt.X("x:Q", scale=alt.Scale(domain=[-1.05, 1.05]), title="First feature"),
        "y": alt.Y("y:Q", scale=alt.Scale(domain=[-1.05, 1.05]), title="Second feature"),
    }
    legend = alt.Legend(title=None, orient="right")
    colour = alt.Color(
        "what:N",
        scale=alt.Scale(domain=list(kinds), range=[PALETTE[0], "#B8C0C8", ACCENT]),
        legend=legend,
    )
    shape = alt.Shape(
        "what:N",
        scale=alt.Scale(domain=list(kinds), range=["circle", "circle", "cross"]),
        legend=legend,
    )
    size = alt.condition(
        "datum.pulls > 0",
        alt.Size("pulls:Q", scale=alt.Scale(range=[60, 700]), legend=None),
        alt.value(70),
    )
    base = alt.Chart(data(rows)).encode(**axes)
    points = base.mark_point(filled=True, opacity=0.9).encode(color=colour, shape=shape, size=size)
    counts = (
        base.transform_filter("datum.pulls > 9")
        .mark_text(dy=-22, fontSize=12, color=INK)
        .encode(text="pulls:Q")
    )
    chart = (points + counts).properties(width=420, height=420)
    subtitle = [
        f"Numbers: {int(pulls.sum())} measurements, all in the middle; sigma = 1, delta = 0.05.",
        f"The winner is one of {int((~arms.measurable).sum())} that are never measured.",
    ]
    save(finish(chart, "Measured inside, decided outside", subtitle), folder / "decide.png")


def top_picture(folder: Path) -> None:
    arms = fl.Arms(_twelve(2313), names=list("ABCDEFGHIJKL"))
    run = fl.Gauntlet().start(as_problem(arms, sigma=2.0, top=3), seed=23)
    pulls, evidence = _watched(run, arms.means(DIRECTION), 2.0, 23)
    chart = evidence_chart(
        pulls,
        evidence,
        arms.names,
        title="Evidence against “this is one of the 3 best”",
        subtitle=["One run, delta = 0.05. The three that are left are the answer."],
    )
    save(chart, folder / "top-m.png")


def shift_picture(folder: Path) -> None:
    arms, shifts = fl.Arms(TWELVE), (0.0, 0.5, 1.0, 2.0, 3.0, 4.0)
    curves = []
    for label, allowed in (("ignored", False), ("batch_intercept=True", True)):
        results = [
            fl.simulate(
                arms,
                DIRECTION,
                shift=shift,
                batch_intercept=allowed,
                runs=100,
                seed=1,
                max_pulls=20_000,
                sigma=1.0,
            )
            for shift in shifts
        ]
        curves.append(_wrong_curve(label, shifts, [(r.errors, len(r)) for r in results]))
    _save_wrong_curves(
        folder / "batch-effects.png",
        curves,
        "Standard deviation of the shift of a batch, in sigma",
        "A shift of each batch, ignored and allowed for",
        ["Twelve candidates, three features, 100 runs for each point, exact 95 % intervals."],
    )


def bent_picture(folder: Path) -> None:
    arms, sizes, most = fl.Arms(TWELVE), (0.0, 0.1, 0.2, 0.3, 0.4, 0.5), 5_000
    wrong: dict[bool, list[int]] = {False: [], True: []}
    for c in sizes:
        for allowed, counts in wrong.items():
            results = [
                fl.simulate(
                    arms,
                    DIRECTION,
                    fl.Gauntlet(growth=0.3),
                    deviations=c * np.random.default_rng(i).choice([-1.0, 1.0], 12),
                    misspecification=c if allowed else 0.0,
                    runs=1,
                    seed=i,
                    max_pulls=most,
                    sigma=1.0,
                )
                for i in range(100)
            ]
            counts.append(sum(result.errors for result in results))
    curves = [
        _wrong_curve(label, sizes, [(errors, 100) for errors in wrong[allowed]])
        for label, allowed in (("ignored", False), ("misspecification=c", True))
    ]
    _save_wrong_curves(
        folder / "misspecification.png",
        curves,
        "c: every mean is c above or below the linear model",
        "Means that are not linear, ignored and allowed for",
        [
            "Twelve candidates, three features, signs drawn for each run; exact 95 % intervals.",
            f"Runs end at {most:,} measurements, without a winner if need be.",
        ],
    )


def margin_picture(folder: Path) -> None:
    # finalist plan cakes.csv --sigma 1 --gap 0.5 --margins
    cakes = fl.Arms.unstructured(["plain", "honey", "nut", "lemon", "plum"])
    prices = fl.margin_prices(cakes, sigma=1.0, gap=0.5, draws=50)
    save(margins_chart(prices), folder / "margins.png")


def leads_picture(folder: Path) -> None:
    # finalist plan arms.csv --sigma 1 --gap 0.5 --chart leads.png, with the arms of docs/start.md
    columns = [[-1, -1], [-1, 1], [0, 0], [1, -1], [1, 1], [1, 0]]
    recipes = fl.Arms(np.array(columns, dtype=float)).with_intercept()
    save(leads_chart(fl.plan(recipes, sigma=1.0, gap=0.5, leads=True)), folder / "leads.png")


def _wrong_curve(label: str, x: tuple[float, ...], counts: list[tuple[int, int]]) -> Curve:
    """Return the share of wrong runs in percent, with exact intervals."""
    bounds = 100.0 * np.array([exact_interval(errors, runs) for errors, runs in counts])
    share = tuple(100.0 * errors / runs for errors, runs in counts)
    return Curve(label, x, share, tuple(bounds[:, 0]), tuple(bounds[:, 1]))


def _save_curves(
    path: Path, curves: list[Curve], x_title: str, y_title: str, title: str, subtitle: list[str]
) -> None:
    """Save curves over linear axes."""
    save(curves_chart(curves, x_title, y_title, title, subtitle, log=False), path)


def _save_wrong_curves(
    path: Path, curves: list[Curve], x_title: str, title: str, subtitle: list[str]
) -> None:
    """Save shares of wrong runs beside delta, 5 %."""
    x = curves[0].x
    delta = Curve("delta", x, (5.0,) * len(x), reference=True)
    _save_curves(path, [*curves, delta], x_title, "Runs with a wrong winner, %", title, subtitle)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "images"
    evidence_picture(target)
    average_picture(target)
    region_picture(target)
    noise_picture(target)
    decide_picture(target)
    cost_picture(target)
    top_picture(target)
    shift_picture(target)
    bent_picture(target)
    margin_picture(target)
    leads_picture(target)
