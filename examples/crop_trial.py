"""Which variety of oats, with how much nitrogen? Real plots, and last year's trial as a start.

    python examples/crop_trial.py

Twelve treatments, three varieties with four amounts of nitrogen, were grown on six plots each
(Yates, 1935). We go on with that trial as if it were last year's. Every new yield is one of the
plots that were really measured for its treatment, drawn at random: no yield is made up.
"""

import tempfile

import numpy as np

import finalist as fl
from finalist import data

oats = data.load("oats")
arms = oats.arms  # features: variety, nitrogen, nitrogen squared
means = np.array([plots.mean() for plots in oats.rewards])
order = np.argsort(-means)

print(f"{oats.title}, in {oats.unit}.")
print("Last year, means of six plots:")
for arm in order[:4]:
    print(f"  {arms.names[arm]:22s} {means[arm]:6.1f}   plots: {oats.rewards[arm].astype(int)}")
spread = max(np.ptp(plots) for plots in oats.rewards)
print(f"The first leads the second by {means[order[0]] - means[order[1]]:.1f}.")
print(f"Plots of one and the same treatment differ by up to {spread:.0f}.\n")


def harvest(treatment: str, rng: np.random.Generator) -> float:
    """Return the yield of one new plot; in your trial, what the scales say."""
    return float(oats.draw(arms.index(treatment), 1, rng)[0])


rng = np.random.default_rng(3)
folder = tempfile.TemporaryDirectory()  # yours goes into a file that stays, such as "trial.db"
study = fl.Study.create(
    f"{folder.name}/trial.db",
    "oats",
    arms,
    sigma=None,  # how much plots differ is not known in advance
    delta=0.05,
    epsilon=6.0,  # less than 6 quarter pounds (5 %) are not worth another year
    batch_intercept=True,  # a dry year is dry for all plots: years are never compared
    seed=3,
)
# Last year's plots help to choose where to measure. They are never evidence: the question was
# asked after they had been looked at.
study.import_history(
    (arms.names[arm], value) for arm, plots in enumerate(oats.rewards) for value in plots
)

print(" Year   plots   treatments left   leader")
year = 0
while batch := study.ask(size=72):  # the field has 72 plots a year
    year += 1
    # Four plots were lost to hail. Hail does not ask for the yield, so they are just missing.
    hail = {pull.pull_id for pull in batch[:4]} if year == 2 else set()
    for pull_id in sorted(hail):
        study.missing(pull_id, reason="hail")
    study.tell({p.pull_id: harvest(p.arm, rng) for p in batch if p.pull_id not in hail})
    now = study.status(forecast=False)
    print(f"{year:5d} {now.pulls:7d} {len(now.survivors):17d}   {now.leader}")

status = study.status()
print(f"\n{status.sentence}")
print("Assumed:")
for assumption in status.assumptions:
    print(f"  {assumption}")
for warning in status.warnings:
    print("Warning: " + warning)

print("\nWhere the plots were:")
for name, count in study.to_frame()["arm"].value_counts().items():
    print(f"  {name:22s} {count:4d}")
study.close()
folder.cleanup()
