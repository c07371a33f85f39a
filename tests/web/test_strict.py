"""JSON that means one thing."""

import math

import pytest

from finalist.web.strict import read_json


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"NaN", "NaN is not a number"),
        (b"[-Infinity]", "-Infinity is not a number"),
        (b"1e400", "1e400 is too large"),
        (b"-1e400", "too large"),
        (b'{"a": {"b": 1, "b": 1}}', "'b' is there twice"),
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
