"""Sets of instances by name. All noise is Gaussian, also on the tables of real experiments.

The standard suite has the paper's problem, arms on a sphere, Gaussian arms, arms without
structure, a hypercube, many arms in the plane, factorial and quadratic models, and the bundled
tables. The quick one is for a first look.
"""

from collections.abc import Callable

import numpy as np

from finalist.errors import ProblemError
from finalist.simulation import instances
from finalist.simulation.instances import Instance, between, fan, given, paper, table, unstructured


def _standard() -> list[Instance]:
    factors = [0.0, 0.5, 0.2, 0.0, 0.4, 0.3, 0.0, 0.6, 0.3, 0.1, 0.0]
    gaps = 0.1 * 1.6 ** np.arange(8) * (np.arange(8) > 0)
    cube, grid = instances.hypercube(6), instances.quadratic_grid(2, 5)
    return [
        paper(2, 0.1),
        paper(5, 0.01),
        paper(10, 0.1),
        between(instances.unit_sphere(50, 10, 3), name="sphere, 50 x 10"),
        instances.random_theta(instances.gaussian(100, 8, 4), 5, "Gaussian, 100 x 8"),
        unstructured([1.0, 0.8, *[0.0] * 8]).called("unstructured, one close"),
        unstructured(1.0 - gaps).called("unstructured, growing gaps"),
        given("cube, 2^6", cube, [0.25, 0.2, 0.15, 0.15, 0.1, 0.1]),
        fan(60, 11),
        fan(1000, 15),
        given("factorial, 3 x 3 x 4", instances.one_hot_factorial((3, 3, 4)), factors),
        given("quadratic, 5 x 5", grid, [0.0, 0.3, 0.2, -0.5, -0.4, 0.1]),
        *map(table, ("oats", "cake", "weaving", "plums")),
    ]


def _quick() -> list[Instance]:
    return [paper(3, 0.5), unstructured([1.0, 0.5, 0.0]), fan(10, 1), table("plums")]


#: Instances of the standard suite that the settings of the gauntlet were tuned on
#: (`benchmarks/gauntlet.py`); the others were not looked at for that.
TUNED_ON = frozenset(
    {
        "paper, d = 5, omega = 0.01",
        "sphere, 50 x 10",
        "Gaussian, 100 x 8",
        "unstructured, one close",
        "cube, 2^6",
        "plane, 60 arms",
    }
)
#: The suites by their names.
SUITES: dict[str, Callable[[], list[Instance]]] = {"standard": _standard, "quick": _quick}


def suite(name: str) -> list[Instance]:
    """Return the instances of a suite.

    Examples
    --------
    >>> [instance.name for instance in suite("quick")]
    ['paper, d = 3, omega = 0.5', 'unstructured, 3 arms', 'plane, 10 arms', 'plums']
    """
    if name not in SUITES:
        raise ProblemError(f"suite is {name!r}; it is one of {', '.join(SUITES)}.")
    return SUITES[name]()
