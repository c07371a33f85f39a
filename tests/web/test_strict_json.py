"""JSON that means one thing."""

import math

import pytest

from finalist.errors import RewardError
from finalist.web.arms_preview import preview
from finalist.web.pages.fields import read_size
from finalist.web.strict import _once, read_json


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"NaN", "NaN is not a JSON number"),
        (b"[-Infinity]", "-Infinity is not a JSON number"),
        (b"1e400", "1e400 is too large"),
        (b"-1e400", "too large"),
        (b'{"a": {"b": 1, "b": 1}}', "'b' is repeated"),
        (b'"\\ud800"', "not valid Unicode"),
        (b'{"\\udfff": 1}', "not valid Unicode"),
        (b"\xff", "not valid Unicode"),
        (b"[" * 10**6, "nested too deeply"),
        (b"1" * 5000, "digits"),
        (b"", "character 0"),
        (b"{'a': 1}", "character 1"),
    ],
)
def test_what_means_nothing_is_refused(body, words):
    with pytest.raises(ValueError, match=words):
        read_json(body)


def test_what_means_something_is_read():
    assert read_json(b'{"a": [1, 2.5, null, true, "\\ud83d\\udca5"]}') == {
        "a": [1, 2.5, None, True, "\U0001f4a5"]
    }
    assert read_json(b"1e308") == 1e308
    assert math.copysign(1, read_json(b"-0.0")) == -1


def test_many_keys_of_which_the_last_is_there_twice_are_refused_in_one_pass():
    pairs = [(str(i), 0) for i in range(300_000)]
    with pytest.raises(ValueError, match="'299999' is repeated"):
        _once([*pairs, ("299999", 1)])


@pytest.mark.parametrize("text", ["0000000010012345", "9" * 5000, "10001", "0", "-1", "1e3"])
def test_sizes_of_a_batch_are_limited_whatever_they_look_like(text):
    with pytest.raises(RewardError, match="whole number from 1"):
        read_size(text)


def test_a_table_that_is_only_a_mark_of_its_encoding_has_no_names():
    assert preview(b"\xef\xbb\xbf").error == (
        "the table is empty. It needs a line with the names of the columns."
    )
