"""Evidence over pulls and the capped factor: what the charts hold and refuse."""

from typing import Any

import numpy as np
import pytest
from docs.figure_cap import cap_chart

from finalist.charts.evidence import MAX_NAMES, evidence_chart
from finalist.charts.theme import ACCENT, save
from finalist.errors import ChartError

PULLS = np.array([10, 20, 40, 80])
EVIDENCE = np.array(
    [[0.0, 0.0, 0.0], [0.3, -0.2, 1.0], [0.6, 0.1, 1.0], [1.0, 0.0, 1.0]],
)
NAMES = ["a", "b", "c"]


def layers(chart: Any, mark: str) -> list[dict[str, Any]]:
    return [part for part in chart.to_dict()["layer"] if part["mark"]["type"] == mark]


def rows(part: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = part["data"]["values"]
    return found


def labelled(chart: Any) -> list[str]:
    return [row["arm"] for part in layers(chart, "text") for row in rows(part)]


def test_a_line_ends_where_the_arm_is_out() -> None:
    chart = evidence_chart(PULLS, EVIDENCE, NAMES, winner=1)
    lines: dict[int, list[tuple[int, float]]] = {}
    for row in [row for part in layers(chart, "line") for row in rows(part)]:
        lines.setdefault(row["id"], []).append((row["pulls"], row["evidence"]))
    assert lines[2] == [(10, 0.0), (20, 1.0)]
    assert lines[0] == [(10, 0.0), (20, 0.3), (40, 0.6), (80, 1.0)]
    assert lines[1] == [(10, 0.0), (20, 0.0), (40, 0.1), (80, 0.0)]  # never below 0


def test_the_line_of_rejection_is_at_one() -> None:
    dashed = [
        p
        for p in layers(evidence_chart(PULLS, EVIDENCE, NAMES), "rule")
        if "y2" not in p["encoding"]
    ]
    assert [row["evidence"] for row in rows(dashed[0])] == [1.0]


def test_several_winners_are_drawn_alike() -> None:
    chart = evidence_chart(PULLS, EVIDENCE, NAMES, winner=[0, 1])
    strong = layers(chart, "line")[-1]
    assert {row["id"] for row in strong["data"]["values"]} == {0, 1}
    with pytest.raises(ChartError, match="winner is 7"):
        evidence_chart(PULLS, EVIDENCE, NAMES, winner=[0, 7])


def test_the_winner_is_drawn_last_and_strongest() -> None:
    lines = layers(evidence_chart(PULLS, EVIDENCE, NAMES, winner=1), "line")
    assert {row["colour"] for row in rows(lines[-1])} == {ACCENT}
    assert {row["id"] for row in rows(lines[-1])} == {1}
    assert lines[-1]["mark"]["strokeWidth"] > lines[-2]["mark"]["strokeWidth"]
    plain = layers(evidence_chart(PULLS, EVIDENCE, NAMES), "line")
    assert ACCENT not in {row["colour"] for part in plain for row in rows(part)}


def test_every_arm_is_named_where_there_are_few() -> None:
    assert sorted(labelled(evidence_chart(PULLS, EVIDENCE, NAMES, winner=1))) == NAMES


def test_of_many_arms_those_that_held_out_are_named() -> None:
    K = 40
    evidence = np.zeros((K + 1, K))
    for i in range(1, K):  # arm i is out in batch i; arm 0 is left
        evidence[i:, i] = 1.0
    names = [f"arm {i}" for i in range(K)]
    chart = evidence_chart(np.arange(1, K + 2), evidence, names, winner=0)
    assert set(labelled(chart)) == {"arm 0"} | {f"arm {i}" for i in range(K - MAX_NAMES + 1, K)}
    assert f"{K - MAX_NAMES} more" in chart.to_dict()["title"]["subtitle"][-1]


def test_names_of_arms_that_go_together_stand_apart() -> None:
    evidence = np.vstack([np.zeros((2, 6)), np.ones((1, 6))])
    chart = evidence_chart(np.array([10, 100, 1000]), evidence, list("abcdef"))
    places = [row["place"] for part in layers(chart, "text") for row in rows(part)]
    assert np.diff(np.sort(np.log(places))).min() > 0.01


@pytest.mark.parametrize("batches", [1, 4])
def test_it_can_be_drawn(batches: int, tmp_path: Any) -> None:
    chart = evidence_chart(PULLS[:batches], EVIDENCE[:batches], NAMES)
    assert save(chart, tmp_path / "evidence.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("pulls", "evidence", "winner", "message"),
    [
        (PULLS[:3], EVIDENCE, None, "one row per batch"),
        (PULLS, EVIDENCE[:, :2], None, "one column per arm"),
        (PULLS[:0], EVIDENCE[:0], None, "shape"),
        (PULLS[::-1], EVIDENCE, None, "increase"),
        (PULLS - 10, EVIDENCE, None, "positive"),
        (PULLS, EVIDENCE * np.nan, None, "finite"),
        (PULLS, EVIDENCE, 3, "winner is 3"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    pulls: Any, evidence: Any, winner: Any, message: str
) -> None:
    with pytest.raises(ChartError, match=message):
        evidence_chart(pulls, evidence, NAMES, winner)


class TestCap:
    z = np.linspace(-1.0, 2.0, 7)

    def test_it_has_both_factors_and_where_the_cap_is(self) -> None:
        chart = cap_chart(
            self.z, np.exp(self.z), np.minimum(1.2 * np.exp(self.z), 3.0), 0.9, "T", []
        )
        curves = rows(layers(chart, "line")[0])
        assert {row["curve"] for row in curves} == {"likelihood ratio", "capped"}
        assert len(curves) == 14
        assert rows(layers(chart, "rule")[0])[0]["z"] == 0.9
        ticks = layers(chart, "line")[0]["encoding"]["y"]["axis"]["values"]
        assert ticks == pytest.approx([0.5, 1.0, 2.0, 5.0, 10.0])

    def test_what_cannot_be_drawn_is_refused(self) -> None:
        with pytest.raises(ChartError, match="the same length"):
            cap_chart(self.z, np.exp(self.z), np.ones(3), 0.9, "T", [])
        with pytest.raises(ChartError, match="positive"):
            cap_chart(self.z, self.z, np.ones(7), 0.9, "T", [])
