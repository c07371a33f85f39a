"""A plan simulates what a study does: by ask and tell, the same settings take as many."""

import math
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.simulation import instances
from finalist.simulation.binomial import exact_interval

ARMS = fl.Arms(instances.one_hot_factorial((3, 2, 2))[:, 1:]).with_intercept()
THETA = 2.0 * np.array([0.9, -0.4, 0.1, 0.7, -0.7, 0.6, 0.0, 0.0])[: ARMS.features.shape[1]]


def measured(folder: Any, seed: int, size: int | None, words: dict[str, Any]) -> int:
    """Run a study to its end; return its measurements."""
    rng, count, means = np.random.default_rng([seed, 7]), 0, ARMS.means(THETA)
    with fl.Study.create(folder / "lab.db", f"{seed}", ARMS, seed=seed, **words) as study:
        while len(batch := study.ask(size)) > 0:
            count += len(batch)
            drawn = means[[ARMS.names.index(pull.arm) for pull in batch]]
            values = drawn + rng.standard_normal(len(batch))
            study.tell({p.pull_id: float(v) for p, v in zip(batch, values, strict=True)})
        assert study.status(forecast=False).verdict == "winner"
    return count


@pytest.mark.parametrize(
    ("words", "size"),
    [({"sigma": None, "delta": 0.1}, 24), ({"sigma": 1.0, "epsilon": 0.3, "check": 0.0}, 5)],
    ids=["unknown sigma, plates", "margin, no check"],
)
def test_studies_take_what_their_plan_says(tmp_path, words, size):
    guess = 1.0 if words["sigma"] is None else None
    common: dict[str, Any] = {"theta": THETA, "draws": 80, "against": (), "guess": guess, **words}
    plan = fl.plan(ARMS, size=size, **common).rows[0]
    needed = np.array([measured(tmp_path, seed, size, words) for seed in range(16)])
    error = math.hypot(plan.pulls.std() / math.sqrt(80), needed.std(ddof=1) / math.sqrt(16))
    assert abs(plan.mean - needed.mean()) < 4.0 * error
    assert exact_interval(int((needed <= plan.high).sum()), 16)[1] >= 0.9
    if guess is not None:  # a plan that forgets what the study has comes out shorter
        known = fl.plan(ARMS, **{**common, "sigma": 1.0, "guess": None}).rows[0]
        assert known.mean < needed.mean() - 4.0 * error
