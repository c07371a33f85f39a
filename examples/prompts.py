"""Find the best prompt, when a judge says only pass or fail.

    python examples/prompts.py

24 prompts for a language model are built of parts: one of two personas or none, 0 to 3 worked
examples, a short or a long instruction. Every answer is judged: 1 or 0. Prompts that share parts
learn from each other.
"""

import tempfile
from itertools import product

import numpy as np
import pandas as pd

import finalist as fl

parts = pd.DataFrame(
    product(["none", "expert", "teacher"], [0, 1, 2, 3], ["short", "long"]),
    columns=["persona", "examples", "length"],
)
names = [f"{p} persona, {n} examples, {size}" for p, n, size in parts.itertuples(index=False)]
# Examples help, but less and less: a straight line and a square. The rest are categories.
arms = fl.Arms.from_formula("C(persona) + examples + I(examples**2) + C(length)", parts, names)

# The truth, which a real evaluation does not know: how often an answer passes.
persona = parts["persona"].map({"none": 0.0, "expert": 0.14, "teacher": 0.04}).to_numpy()
examples = 0.17 * parts["examples"].to_numpy() - 0.03 * parts["examples"].to_numpy() ** 2
passes = 0.36 + persona + examples + np.where(parts["length"] == "long", -0.12, 0.0)
best = int(passes.argmax())
print(f"{len(arms)} prompts pass from {passes.min():.0%} to {passes.max():.0%} of the time.")
print(f"The best, unknown to the study: {names[best]}\n")


def judged(prompt: str, rng: np.random.Generator) -> int:
    """Call the model and the judge; here, toss a coin with the prompt's probability."""
    return int(rng.random() < passes[arms.index(prompt)])


rng = np.random.default_rng(1)
folder = tempfile.TemporaryDirectory()  # yours goes into a file that stays, such as "prompts.db"
words = {"noise": "bernoulli", "delta": 0.05, "epsilon": 0.05}  # within 5 points of the best
with fl.Study.create(f"{folder.name}/prompts.db", "support", arms, seed=1, **words) as study:
    left = len(arms)
    while batch := study.ask(size=100):  # 100 calls in parallel
        study.tell({pull.pull_id: judged(pull.arm, rng) for pull in batch})
        now = study.status(forecast=False)
        if len(now.survivors) < left:
            left = len(now.survivors)
            print(f"after {now.pulls:5d} calls {left:2d} prompts are left, ahead: {now.leader}")
    status = study.status()
folder.cleanup()

print(f"\n{status.sentence}")
behind = passes[best] - passes[arms.index(status.winner)]
print(f"In truth it is {behind:.1%} behind the best.")
for arm in sorted(status.arms, key=lambda arm: -arm.estimate)[:3]:
    print(f"  {arm.name:38s} passes an estimated {arm.estimate:.0%}")

# What the parts are worth: the same question with every prompt on its own. A true figure needs
# more runs; these few show the direction.
alone = fl.Arms.unstructured(names)
print("\nCalls that it takes, mean of five simulated evaluations:")
for title, some, truth in (
    ("prompts described by parts", arms, np.linalg.lstsq(arms.features, passes, rcond=None)[0]),
    ("every prompt on its own", alone, passes),
):
    runs = fl.simulate(some, truth, runs=5, seed=1, **words)
    print(f"  {title:28s} {runs.samples.mean():8,.0f}")
