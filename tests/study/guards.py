"""Take guards away, one at a time, and see that a test notices: python -m tests.study.guards.

A guard is a line that looks again when the lock is held, or that refuses what cannot be. Without
it most lives go well, so that only a test which was written for it can miss it. Each entry names a
file, the text of the guard, what stands there when it is gone, and the tests that must fail then.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.mutation import copy_source, replace_in, run_tests


@dataclass(frozen=True)
class Guard:
    """A guard, and the tests that miss it."""

    file: str
    text: str
    gone: str
    tests: str
    module: str = "tests/study/test_guards.py"


SHARING = "tests/study/test_sharing.py"
GUARDS = (
    Guard("study/measure.py", "if now.last == last:", "if True:", "issued_once or meanwhile"),
    Guard(
        "study/measure.py",
        "if now.open is None or len(of_worker(now, worker)) > 0:",
        "if now.open is None:",
        "two_handles_gets",
    ),
    Guard(
        "study/measure.py",
        "if now.open is None or len(of_worker(now, worker)) > 0:",
        "if now.open is not None and len(of_worker(now, worker)) > 0:",
        "no_pulls_to_give_out",
    ),
    Guard(
        "study/measure.py",
        "        new = check_told(now, told)\n",
        "        new = np.ones(len(told), dtype=bool)\n",
        "told_once or told_meanwhile",
    ),
    Guard(
        "study/measure.py",
        "if client_id is not None:\n            earlier",
        "if False:\n            earlier",
        "repeated_by_another_handle",
    ),
    Guard(
        "study/measure.py",
        "if now.pulls.fate[row] != Fate.OPEN:\n            raise ConflictError(\n"
        '                f"measurement {pull_id} is {Fate(now.pulls.fate[row]).name.lower()}, so '
        'it is not "\n                "lost.',
        "if False:\n            raise ConflictError(\n"
        '                f"measurement {pull_id} is {Fate(now.pulls.fate[row]).name.lower()}, so '
        'it is not "\n                "lost.',
        "not_void_nor_missing",
    ),
    Guard(
        "study/measure.py",
        "if now.pulls.fate[row] == Fate.MISSING:\n            return",
        "if False:\n            return",
        "missing_once",
    ),
    Guard(
        "study/measure.py",
        '_require_open(now, pull_id, "amend")\n',
        "pass\n",
        "is_not_amended",
    ),
    Guard(
        "study/measure.py",
        "if last is None or last.correction or event not in (None, last.event):",
        "if last is None or last.correction:",
        "somebody_else_saved",
        "tests/web/test_undo.py",
    ),
    Guard("study/measure.py", "if now.issued:", "if False:", "do_not_come_after_a_batch"),
    Guard("study/measure.py", "if now.history_pulls:", "if False:", "first_batch_and_once"),
    Guard("study/change.py", "if now.open is not None:", "if False:", "while_a_batch_is_open"),
    Guard(
        "study/change.py",
        "        if now.verdict.decided:",
        "        if False:",
        "is_not_stopped",
    ),
    Guard(
        "study/change.py",
        "if stopped is None and now.stopped is None:",
        "if False:",
        "resumed_once",
    ),
    Guard(
        "study/log.py",
        "        except BaseException:\n            self._state = None\n            raise",
        "        except BaseException:\n            raise",
        "failed_half_way",
    ),
    Guard(
        "study/storage/upgrade.py",
        "    with _alembic:\n",
        "    if True:\n",
        "threads_run_scripts",
    ),
    Guard(
        "study/storage/upgrade.py",
        "        if found == SCHEMA:\n            return f",
        "        if False:\n            return f",
        "upgraded_by_one",
    ),
    Guard(
        "study/events.py",
        "    if wrong is not None:\n",
        "    if False:\n",
        "no_writer_could_have_written",
    ),
    Guard(
        "study/storage/connections.py",
        "self.dialect.check_place()  # while",
        "pass  # while",
        "waited_for_a_restore",
        SHARING,
    ),
    Guard(
        "study/storage/lineage.py",
        "if changes is None or _may_follow(page, *changes):",
        "if True:",
        "copied_over_a_file",
        SHARING,
    ),
    Guard(
        "study/storage/lineage.py",
        "    if page.cookie > first.cookie:\n",
        "    if False:\n",
        "copy_by_vacuum",
        SHARING,
    ),
    Guard(
        "study/storage/lineage.py",
        "if not round_ or page in round_:",
        "if not round_:",
        "went_on_with",
        SHARING,
    ),
    Guard(
        "study/storage/lineage.py",
        "for checked in (False, True)",
        "for checked in (False,)",
        "first_frame_was_cut",
        SHARING,
    ),
    Guard(
        "study/storage/sqlite.py",
        "        refuse_remains(self.place)\n        if not wanted",
        "        if not wanted",
        "killed_restore_leaves",
        SHARING,
    ),
    Guard("study/replay.py", "kept.add(winner)", "pass", "ruled_out_before"),
    Guard("study/replay.py", "if several else ()", "if False else ()", "followed_all_of_them"),
    Guard(
        "study/storage/forks.py",
        "        if not any(thread == me",
        "        if True or any(thread == me",
        "nested_transaction",
        SHARING,
    ),
    Guard(
        "study/storage/files.py",
        "        with forks.using():\n            page",
        "        if True:\n            page",
        "threads_that_open",
        SHARING,
    ),
    Guard(
        "study/storage/sqlite.py",
        "if tuple(by_index) != tuple(by_events):",
        "if False:",
        "index_that_is_not",
        SHARING,
    ),
    Guard(
        "study/storage/forks.py",
        "    if file in _lost_files:",
        "    if False:",
        "long_transaction_is_refused",
        SHARING,
    ),
    Guard(
        "study/storage/forks.py",
        "while _others() and",
        "while False and",
        "fork_waits_for_transactions",
        SHARING,
    ),
)


def is_missed(guard: Guard) -> bool:
    """Return whether a test fails without a guard."""
    with tempfile.TemporaryDirectory() as folder:
        copy_source(Path(folder))
        replace_in(Path(folder), guard.file, guard.text, guard.gone)
        run = run_tests(Path(folder), "-q", "-x", guard.module, "-k", guard.tests)
    assert run.returncode in (0, 1, -11, 139), run.stdout  # no tests would be 5
    return run.returncode != 0


def main() -> int:
    """Take all away; say which nobody misses."""
    words, unmissed = sys.argv[1:], []
    chosen = [guard for guard in GUARDS if not words or guard.tests in words]
    for guard in chosen:
        missed = is_missed(guard)
        line = " ".join(guard.text.split())[:60]
        print(f"{'missed' if missed else 'NOT MISSED'}: {guard.file}: {line}", flush=True)
        unmissed += [] if missed else [guard]
    print(f"{len(chosen) - len(unmissed)} of {len(chosen)} guards are missed by a test.")
    return 1 if unmissed else 0


if __name__ == "__main__":
    sys.exit(main())
