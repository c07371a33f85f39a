"""Which concrete with little cement is strongest? A real table, and features from a formula.

    python examples/mixtures.py

Cement is what makes concrete costly for the climate. The table (concrete.csv, 151 recipes, where it
is from: README.md) has the strength of concretes with at most 200 kg of cement per cubic metre,
each cast and broken once after 28 days. We want the strongest recipe, and to be sure of it.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import finalist as fl

table = pd.read_csv(Path(__file__).with_name("concrete.csv"))
names = table["mixture"].tolist()

# Bolomey's rule: strength is linear in the ratio of binder to water. There are three binders,
# each with a strength of its own. That is the model: 4 unknown numbers for all 151 recipes.
arms = fl.Arms.from_formula("I(cement / water) + I(slag / water) + I(ash / water)", table, names)
# Recipes with the same three ratios are one arm with several names.
row = [arms.index(name) for name in names]
strength = table["strength"].to_numpy()
theta, *_ = np.linalg.lstsq(arms.features[row], strength, rcond=None)
fitted = arms.means(theta)
rest = strength - fitted[row]
sigma = float(np.sqrt(rest @ rest / (len(rest) - len(theta))))

print(f"{len(names)} recipes, {len(arms)} of which differ in these ratios.")
print("A kilogram of binder per kilogram of water adds, in MPa:")
print(f"  cement {theta[1]:.1f}, slag {theta[2]:.1f}, fly ash {theta[3]:.1f}")
print(f"One casting differs from the next by about {sigma:.1f} MPa.\n")

# The recipe that broke last in the table is not the one to take: it was measured once, and the
# largest of 151 noisy numbers is large by luck too.
lucky = int(strength.argmax())
print(f"Strongest in the table: {names[lucky]} with {strength[lucky]:.1f} MPa, measured once.")
print(f"The model, which has learnt from all recipes, expects {fitted[row[lucky]]:.1f} of it.\n")


def cast(recipe: str, rng: np.random.Generator) -> float:
    """Cast and break one cylinder: the fitted strength, and the rest of some row of the table.

    In your laboratory this is a measurement. Each recipe of the table has one row only, so noise
    is drawn from what the model leaves over, in all rows.
    """
    return float(fitted[arms.index(recipe)] + rng.choice(rest))


# The study: 12 cylinders a day. The size of the noise is not told (sigma=None), the study finds it
# out. A recipe that is less than 2 MPa behind the best is good enough (epsilon).
words = {"sigma": None, "delta": 0.05, "epsilon": 2.0}
rng = np.random.default_rng(1)
folder = tempfile.TemporaryDirectory()  # yours goes into a file that stays, such as "lab.db"
with fl.Study.create(f"{folder.name}/lab.db", "low cement", arms, seed=1, **words) as study:
    while batch := study.ask(size=12):
        study.tell({pull.pull_id: cast(pull.arm, rng) for pull in batch})
    status, frame = study.status(), study.to_frame()
folder.cleanup()

print(status.sentence)
recipe = table.iloc[names.index(status.winner)]
parts = ("cement", "slag", "ash", "water")
print("  " + ", ".join(f"{recipe[part]:g} kg {part}" for part in parts) + " per cubic metre")
print(f"  {len(set(frame['arm']))} of the {len(arms)} recipes were cast to find it:")
for name, count in frame["arm"].value_counts().head(4).items():
    print(f"    {name} {count} times, expected {fitted[arms.index(name)]:.1f} MPa")
behind = fitted.max() - fitted[arms.index(status.winner)]
print(f"  In truth (we made the noise, so we know) it is {behind:.1f} MPa behind the best.")
for warning in status.warnings:
    print("  Warning: " + warning)
