"""Levels of categories: one text for a cell, whatever it was written in, and the contrasts."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from finalist.arms.levels import ANSWERS, answer, contrasts, level_text, levels_of
from finalist.arms.models import MODELS, make
from finalist.arms.table import read_candidates
from finalist.errors import ArmsError

SAME = [1, 1.0, "1", " 1 ", "1.0", np.int64(1), np.float64(1.0), np.float32(1.0)]


@pytest.mark.parametrize("cell", SAME)
def test_a_number_is_one_level_however_it_is_written(cell):
    assert level_text(cell) == "1"


@pytest.mark.parametrize("text", ["007", "1e3", "1_000", "1,5", "SEPT2", "+1", "NA", "1.0.0"])
def test_codes_stay_as_they_are(text):
    assert level_text(text) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.1, "0.10"), (1e-5, "0.00001"), (-2.5, "-2.50"), (-0.0, "-0.0"), (1e21, str(10**21))],
)
def test_numbers_and_their_texts_agree(number, text):
    assert level_text(number) == level_text(text)


@pytest.mark.parametrize("word", ["yes", "Y", "TRUE", "1", "1.0", True, 1, 1.0, np.True_, " Yes "])
def test_yes(word):
    assert answer(word) is True


@pytest.mark.parametrize("word", ["no", "N", "False", "0", "0.0", False, 0, 0.0, np.False_])
def test_no(word):
    assert answer(word) is False


@pytest.mark.parametrize("word", ["", None, "maybe", 2, "ja", float("nan")])
def test_neither(word):
    assert answer(word) is None
    with pytest.raises(ArmsError, match=r"row 2, column 'oven': .* neither yes nor no"):
        contrasts("oven", ANSWERS, ["yes", word])


@pytest.mark.parametrize("empty", [None, "", "  ", float("nan")])
def test_an_empty_cell_is_no_level(empty):
    with pytest.raises(ArmsError, match="row 2, column 'Tone': the cell is empty"):
        levels_of("Tone", ["calm", empty])
    with pytest.raises(ArmsError, match="row 1, column 'Tone': the cell is empty"):
        contrasts("Tone", ("calm", "stern"), [empty])


def columns_of(frame):
    """The columns of a frame, as a reader gives them."""
    if isinstance(frame, pa.Table):
        return {c: tuple(frame[c].to_pylist()) for c in frame.column_names}
    return {c: tuple(frame[c].to_list()) for c in frame.columns}


@pytest.mark.parametrize("model", MODELS)
def test_frames_and_tuples_have_the_same_features(model):
    data: dict[str, Any] = {
        "dose": [1.0, 2.0, 4.0],
        "plate": [2, 1, 10],
        "Tone": ["calm", "stern", "calm"],
        "oven": [True, False, True],
    }
    texts = {
        "dose": (1.0, 2.0, 4.0),
        "plate": ("2", "1.0", "10"),
        "Tone": (" calm", "stern", "calm "),
        "oven": ("yes", "N", "TRUE"),
    }
    ordered = pd.DataFrame(data).assign(
        Tone=pd.Categorical(data["Tone"], categories=["stern", "calm"], ordered=True),
        plate=[2.0, 1.0, 10.0],
    )
    frames = [pd.DataFrame(data), ordered, pl.DataFrame(data), pa.table(data)]
    sources = [*(columns_of(frame) for frame in frames), texts]
    found = [make(model, t, ["dose"], ["plate", "Tone"], ["oven"], constant=True) for t in sources]
    for X, names, recipe in found[1:]:
        assert X.tolist() == found[0][0].tolist()
        assert names == found[0][1]
        assert recipe == found[0][2]


def test_files_and_frames_have_the_same_levels(tmp_path):
    data = {
        "name": list("abcd"),
        "size": [1.5, 2.0, 1500.0, 3.0],
        "plate": [1, 2, 2, 1],
        "x": [0.1, 0.7, 0.5, 0.9],
        "ok": [True, False, True, True],
    }
    frame = pd.DataFrame(data)
    frame.to_csv(tmp_path / "points.csv", index=False)
    frame.to_csv(tmp_path / "commas.csv", index=False, sep=";", decimal=",")
    frame.to_excel(tmp_path / "sheet.xlsx", index=False)
    pl.DataFrame(data).write_parquet(tmp_path / "columns.parquet")
    text = "name;size;plate;x;ok\na;1,50;1;0,1;Y\nb;2;2;0,7;n\nc;1.500;2;0,5;true\nd;3;1;0,9;1\n"
    sources = [frame, pl.DataFrame(data), *sorted(tmp_path.iterdir()), text.encode()]
    roles = {"size": "category", "plate": "category", "ok": "yes/no"}
    found = [read_candidates(source, roles, model="surface").arms for source in sources]
    levels = {"size": ("1.5", "1500", "2", "3"), "plate": ("1", "2"), "ok": ANSWERS}
    for arms in found:
        assert arms.recipe == found[0].recipe
        assert arms.recipe.levels == levels
        assert arms == found[0]
        assert arms.with_model("bending").with_model("surface") == arms
