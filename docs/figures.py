"""The pictures of gauntlet.md, made by the code as it is: `make docs-figures`."""

import sys
from pathlib import Path

import numpy as np

import finalist as fl
from finalist.charts.evidence import cap_chart, evidence_chart
from finalist.charts.theme import save
from finalist.rewards import DrawnRewards
from finalist.strategies.betting_kernels import find_cap, log_likelihood_ratio

#: Eight alloys, described by three numbers each; what is measured is linear in them.
FEATURES = np.random.default_rng(1).standard_normal((8, 3))
THETA = np.array([0.5, 0.3, 0.15])
SEED = 5
#: What is missing to 1/delta in the picture of the cap.
FACTOR = 3.0


def evidence_picture(folder: Path) -> None:
    names = [f"alloy {letter}" for letter in "ABCDEFGH"]
    arms = fl.Arms(FEATURES, names=names)
    run = fl.Gauntlet().start(fl.Problem(arms, delta=0.05), seed=SEED)
    rng = np.random.default_rng(SEED)
    rewards = DrawnRewards(arms.means(THETA), 1.0, "gaussian", rng)
    pulls, evidence = [], []
    while not run.verdict.decided:
        batch = run.next()
        run.record(batch, rewards.batch(batch.counts))
        pulls.append(run.verdict.pulls)
        evidence.append(run.evidence().share)
    chart = evidence_chart(
        np.array(pulls),
        np.array(evidence),
        arms.names,
        run.verdict.winner,
        title="Evidence against “this one is the best”",
        subtitle=[
            "One run, delta = 0.05. An arm is out at 1; the last one standing is the winner."
        ],
    )
    save(chart, folder / "evidence.png")


def cap_picture(folder: Path) -> None:
    drifts, log_weights = np.array([0.5, 1.0, 2.0]), np.log(np.full(3, 1 / 3))
    room = np.log(FACTOR)
    cap = find_cap(room, drifts, log_weights)
    z = np.linspace(-2.0, 3.0, 301)
    ratio = np.array([log_likelihood_ratio(x, drifts, log_weights) for x in z])
    at_cap = log_likelihood_ratio(cap, drifts, log_weights)
    capped = np.minimum(room + ratio - at_cap, room)
    raised = np.exp(room - at_cap)
    chart = cap_chart(
        z,
        np.exp(ratio),
        np.exp(capped),
        cap,
        title="A bet that stops where it has won",
        subtitle=[
            f"Drifts 1/2, 1 and 2, equal weights; evidence has to grow by a factor of {FACTOR:g}.",
            f"Both have mean 1 under N(0, 1). Below the cap it pays {raised:.2f} times as much.",
        ],
    )
    save(chart, folder / "cap.png")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "images"
    evidence_picture(target)
    cap_picture(target)
