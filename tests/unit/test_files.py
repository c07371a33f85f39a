import os
import threading

import pytest

from finalist.errors import OutputError
from finalist.files import write_file


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    write_file(link, b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_file(pipe, b"through")
    reader.join(10)
    assert received == [b"through"]
    assert pipe.is_fifo()


def test_nothing_is_left_behind_when_writing_fails(tmp_path):
    with pytest.raises(TypeError):
        write_file(tmp_path / "file.txt", "text, not bytes")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(OutputError, match="nowhere"):
        write_file(tmp_path / "nowhere" / "file.txt", b"")
