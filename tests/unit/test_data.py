"""The bundled tables hold what was published, and make sensible problems."""

import pickle
import re
from importlib.resources import files

import numpy as np
import pytest

import finalist as fl
from finalist.data import load, names
from finalist.errors import FinalistError
from finalist.inference.least_squares import estimate

BEST = {
    "oats": "Marvellous, 0.6 cwt",
    "cake": "recipe A, 215 F",
    "weaving": "wool B, high tension",
    "plums": "long, at once",
}


def total(table, word: str) -> float:
    """The sum of all measurements of arms whose name has a word."""
    chosen = [i for i, name in enumerate(table.arms.names) if word in name]
    assert chosen
    return sum(float(table.rewards[i].sum()) for i in chosen)


def fitted(table):
    means = estimate(table.arms, table.statistics()).means()
    return means if table.objective == "max" else -means


@pytest.mark.parametrize(
    ("word", "mean"),
    # Table of means in Venables and Ripley, Modern Applied Statistics with S, Section 10.2.
    [
        ("Golden rain", 104.500),
        ("Marvellous", 109.792),
        ("Victory", 97.625),
        (", 0.0 cwt", 79.389),
        (", 0.2 cwt", 98.889),
        (", 0.4 cwt", 114.222),
        (", 0.6 cwt", 123.389),
    ],
)
def test_oats_have_the_means_of_the_literature(word, mean):
    n = 24 if word[0] != "," else 18
    assert total(load("oats"), word) / n == pytest.approx(mean, abs=5e-4)


def test_oats_have_the_total_sum_of_squares_of_the_literature():
    # Analysis of variance: 15875 blocks, 1786 varieties, 6013, 20020 nitrogen, 322, 7969.
    values = np.concatenate(load("oats").rewards)
    assert values.sum() == 7486
    squares = ((values - values.mean()) ** 2).sum()
    assert squares == pytest.approx(15875 + 1786 + 6013 + 20020 + 322 + 7969, abs=3)


def test_oats_of_one_arm_are_as_printed_block_by_block():
    table = load("oats")
    arm = table.arms.index("Victory, 0.0 cwt")
    assert table.rewards[arm].tolist() == [111, 61, 68, 74, 62, 53]


def test_cakes_have_the_sums_of_recipes_and_temperatures():
    table = load("cake")
    assert [total(table, f"recipe {r}") for r in "ABC"] == [2981, 2848, 2844]
    temperatures = range(175, 226, 10)
    sums = [total(table, f"{t} F") for t in temperatures]
    assert sums == [1259, 1348, 1414, 1448, 1613, 1591]


def test_weaving_has_the_means_of_the_literature():
    table = load("weaving")
    means = {name: v.mean() for name, v in zip(table.arms.names, table.rewards, strict=True)}
    # Cell means of R's warpbreaks, printed in many texts.
    expected = {"A": (44.56, 24.00, 24.56), "B": (28.22, 28.78, 18.78)}
    for wool, row in expected.items():
        for tension, mean in zip(("low", "medium", "high"), row, strict=True):
            name = f"wool {wool}, {tension} tension"
            assert means[name] == pytest.approx(mean, abs=0.005)


def test_plums_have_the_counts_of_bartlett():
    table = load("plums")
    alive = {n: int(v.sum()) for n, v in zip(table.arms.names, table.rewards, strict=True)}
    assert alive == {
        "long, at once": 156,
        "short, at once": 107,
        "long, in spring": 84,
        "short, in spring": 31,
    }
    assert set(np.concatenate(table.rewards)) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("name", "arms", "rank", "replicates"),
    [("oats", 12, 5, 6), ("cake", 18, 8, 15), ("weaving", 6, 6, 9), ("plums", 4, 3, 240)],
)
def test_every_arm_has_its_replicates(name, arms, rank, replicates):
    table = load(name)
    assert (len(table.arms), table.arms.rank) == (arms, rank)
    assert [len(values) for values in table.rewards] == [replicates] * arms
    assert table.statistics().count.tolist() == [replicates] * arms


@pytest.mark.parametrize("name", names())
def test_the_best_arm_is_the_same_by_the_fit_and_as_measured(name):
    table = load(name)
    sign = 1 if table.objective == "max" else -1
    measured = [sign * values.mean() for values in table.rewards]
    assert table.arms.names[int(np.argmax(measured))] == BEST[name]
    assert table.arms.names[int(np.argmax(fitted(table)))] == BEST[name]


@pytest.mark.parametrize(("name", "p"), [("oats", 0.999), ("cake", 0.972), ("plums", 0.775)])
def test_the_measurements_do_not_contradict_the_linear_model(name, p):
    table = load(name)
    test = estimate(table.arms, table.statistics()).lack_of_fit()
    assert test is not None
    assert test.p_value == pytest.approx(p, abs=5e-4)


def test_weaving_contradicts_the_additive_model():
    table = load("weaving")
    additive = [j for j, f in enumerate(table.arms.feature_names) if ":" not in f]
    arms = fl.Arms(table.arms.features[:, additive], table.arms.names)
    test = estimate(arms, table.statistics()).lack_of_fit()
    assert test is not None
    # Interaction of the analysis of variance of R's warpbreaks: F = 4.189, p = 0.021.
    assert (test.f, test.p_value) == pytest.approx((4.189, 0.0210), abs=5e-4)


@pytest.mark.parametrize("name", names())
def test_draws_are_measured_values_of_the_arm_and_of_all_of_them(name):
    table, rng = load(name), np.random.default_rng(0)
    for arm, values in enumerate(table.rewards):
        drawn = table.draw(arm, 2000, rng)
        assert drawn.shape == (2000,)
        assert set(drawn) == set(values)
        assert drawn.mean() == pytest.approx(values.mean(), abs=5 * values.std() / 2000**0.5)


def test_draws_depend_on_the_generator_alone():
    table = load("cake")
    a, b = (table.draw(3, 50, np.random.default_rng(7)) for _ in range(2))
    assert a.tolist() == b.tolist()
    assert table.draw(3, 0, np.random.default_rng(7)).shape == (0,)


@pytest.mark.parametrize("name", names())
def test_the_gauntlet_finds_the_best_arm(name):
    table = load(name)
    sigma = estimate(table.arms, table.statistics()).residual_variance ** 0.5
    theta = np.linalg.lstsq(
        table.arms.features, estimate(table.arms, table.statistics()).means(), rcond=None
    )[0]
    r = fl.simulate(
        table.arms,
        theta,
        "gauntlet",
        sigma=sigma,
        rewards=table.draw,
        objective=table.objective,
        runs=10,
        max_pulls=10**5,
    )
    # 0.05 is allowed; two or more of ten have probability 0.09 then, and the runs are fixed.
    assert r.decided.all()
    assert (r.winner == table.arms.index(BEST[name])).sum() >= 9


def test_measured_values_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        load("oats").rewards[0][0] = 1.0


def test_a_table_survives_pickling():
    table = load("oats")
    copy = pickle.loads(pickle.dumps(table))
    assert copy.arms == table.arms
    assert [v.tolist() for v in copy.rewards] == [v.tolist() for v in table.rewards]


def test_an_unknown_table_is_refused_with_the_names():
    with pytest.raises(FinalistError, match="'wheat'; load one of oats, cake, weaving, plums"):
        load("wheat")


@pytest.mark.parametrize("name", names())
def test_every_table_says_where_it_comes_from(name):
    table = load(name)
    assert all((table.title, table.unit))
    sources = (files("finalist.data") / "SOURCES.md").read_text(encoding="utf-8")
    section = sources.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    author, year = re.findall(r"(\w+)[^()]*\((19\d\d)\)", table.source)[0]
    assert author in section
    assert year in section


def test_every_file_is_a_table():
    stored = {p.name.removesuffix(".csv") for p in files("finalist.data").iterdir()}
    assert set(names()) <= stored
    assert stored - set(names()) <= {"__init__.py", "__pycache__", "SOURCES.md"}
