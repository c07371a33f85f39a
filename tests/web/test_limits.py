"""WorkLimit: first come, first served, also for those who wait long."""

import threading
import time

import pytest

from finalist.errors import BusyError, DeadlineError
from finalist.web.lifetime import Life, living
from finalist.web.limits import WorkLimit

WORDS = "others work. Try again."


def test_whoever_waits_longest_is_next():
    turns, done, threads = WorkLimit(WORDS, 1, 20, 30.0), [], []

    def work(number):
        with turns.take():
            done.append(number)

    with turns.take():
        for number in range(12):
            threads.append(threading.Thread(target=work, args=(number,)))
            threads[-1].start()
            while turns.inside < number + 2:
                time.sleep(0.001)
            time.sleep(0.03)  # together longer than anybody would wait without losing its place
    for thread in threads:
        thread.join(30)
    assert done == list(range(12))
    assert turns.inside == 0


def test_a_place_is_given_back_by_who_waits_in_vain():
    turns = WorkLimit(WORDS, 1, 1, 0.05)
    with turns.take():
        with pytest.raises(BusyError), turns.take():
            pass
        assert turns.inside == 1
    with turns.take():
        pass


@pytest.mark.parametrize("late", [0.0, 0.05])
def test_the_wait_ends_with_the_request(late):
    turns, life = WorkLimit(WORDS, 1, 1, 30.0), Life(1.0)
    timer = threading.Timer(late, life.end, ("late",))
    with turns.take():
        timer.start()
        time.sleep(0.02 if late == 0.0 else 0.0)
        begin = time.monotonic()
        with living(life), pytest.raises(DeadlineError), turns.take("Ask for less."):
            pass
        assert time.monotonic() - begin < 5.0
    assert turns.inside == 0
    with turns.take():  # nobody has taken its place along
        pass
