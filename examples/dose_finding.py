"""Which dose works best? All doses of an interval, a quadratic curve, and "good enough".

    python examples/dose_finding.py

A drug helps more as the dose grows, until it harms: between 0 and 100 mg the response is a
parabola. Any dose may be chosen. Tablets are made for a few doses only, so few are tried, and the
curve says the rest. Two units of response matter to nobody: that is epsilon.
"""

import tempfile

import numpy as np

import finalist as fl

SIGMA = 8.0  # patients differ by that much; known from earlier trials
EPSILON = 2.0


def response(mg: float) -> float:
    """Return the mean response at a dose, which a real trial does not know."""
    return 30.0 - 24.0 * ((mg - 62.0) / 50.0) ** 2


region = fl.Region.box([0.0], [100.0], names=("mg",))  # the basis is quadratic by default
net = region.net(per_axis=41)  # doses to choose from: every 2.5 mg
doses = [net.point(name)["mg"] for name in net.arms.names]
tried = [f"{mg:g}" for mg, yes in zip(doses, net.arms.measurable, strict=True) if yes]
print(f"{len(doses)} doses to choose from. Tried are {', '.join(tried)} mg: no others tell more of")
print(f"a parabola (certified: their variance is at most {net.design.gap:.0%} above the least).\n")

# Before the first patient: how many will it take, if the curve is as we think?
theta = np.linalg.lstsq(net.arms.features, [response(mg) for mg in doses], rcond=None)[0]
rehearsal = net.rehearse(theta, EPSILON, sigma=SIGMA, seed=5)
print(f"Rehearsed: {rehearsal.pulls} patients.")

rng = np.random.default_rng(2)
folder = tempfile.TemporaryDirectory()  # yours goes into a file that stays, such as "trial.db"
question = net.question(EPSILON, delta=0.05)  # shares epsilon and delta between test and net
with fl.Study.create(
    f"{folder.name}/trial.db", "dose", net.arms, sigma=SIGMA, seed=2, **question
) as study:
    while batch := study.ask(size=30):  # 30 patients at a time
        study.tell(
            {p.pull_id: response(net.point(p.arm)["mg"]) + rng.normal(0, SIGMA) for p in batch}
        )
    found = net.verdict(study, delta=0.05)
    status, per_dose = study.status(), study.to_frame()["arm"].value_counts()

print("Patients at each dose: " + ", ".join(f"{n} {count}" for n, count in per_dose.items()))
print(f"\n{found.sentence}")
print(f"  of this {found.epsilon:.2f} between the doses of the net (tested)")
print(f"  and {found.loss:.2f} for the doses in between (a bound)")

chosen = net.point(status.winner)["mg"]
print(f"In truth {chosen:g} mg is {response(62.0) - response(chosen):.2f} behind the best, 62 mg.")

# What good enough saves. Neighbouring doses differ by little; to find the very best takes long.
print("\nPatients, mean of ten simulated trials:")
for epsilon in (4.0, 2.0, 1.0):
    runs = fl.simulate(
        net.arms, theta, sigma=SIGMA, runs=10, seed=1, **net.question(epsilon, delta=0.05)
    )
    print(f"  epsilon {epsilon:g}: {runs.samples.mean():7,.0f}, wrong {runs.errors} of {len(runs)}")
folder.cleanup()
