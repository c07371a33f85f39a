"""An instrument that fails now and then, and a computer that may lose its power.

    python examples/instrument_loop.py lab.db --power-cut 30   # stops dead after 30 readings
    python examples/instrument_loop.py lab.db                  # goes on where it was
    python examples/instrument_loop.py lab.db                  # nothing left to do: the verdict

A spectrometer on a serial port measures one of eight dyes and answers with a line of text. Lines
come garbled, cut or not at all. Each good reading is told at once: then it is on the disk.
"""

import argparse
import os
import re
from pathlib import Path

import numpy as np

import finalist as fl
from finalist.study import Pull

FEATURES = np.random.default_rng(4).standard_normal((8, 3))  # what is known of each dye
DYES = fl.Arms(FEATURES, [f"dye {letter}" for letter in "ABCDEFGH"])
TRIES = 3


class Spectrometer:
    """Stands for a serial port (`serial.Serial` of pyserial has the same two methods)."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng([7, seed])
        self._truth = dict(zip(DYES.names, DYES.means([0.3, 0.2, -0.25]), strict=True))

    def write(self, command: bytes) -> None:
        """Take a command such as b"MEASURE dye A"."""
        self._asked = command.decode().strip().removeprefix("MEASURE ")

    def readline(self) -> bytes:
        """Return the answer: now and then nothing (a timeout), rubbish, or half a line."""
        line = f"OK {self._truth[self._asked] + self._rng.normal():.6f}\n".encode()
        answers = [line, b"", b"\xff#!OK 1.5\n", line[:6]]
        return answers[self._rng.choice(4, p=[0.76, 0.1, 0.06, 0.08])]


def reading(port: Spectrometer, dye: str) -> float:
    """Measure a dye once. Raise OSError if the answer is not exactly what it should be."""
    port.write(f"MEASURE {dye}\n".encode())
    answer = port.readline()
    # Half a line, b"OK 1.2" of b"OK 1.234567", would pass for a number: so the form is checked.
    good = re.fullmatch(rb"OK (-?\d+\.\d{6})\n", answer)
    if good is None:
        raise OSError(f"odd answer {answer!r}" if answer else "no answer")
    return float(good[1])


def measured(study: fl.Study, pull: Pull, port: Spectrometer) -> bool:
    """Measure and tell one pull. Without a reading it is marked missing."""
    for _ in range(TRIES):
        try:
            value = reading(port, pull.arm)
        except OSError as error:
            problem = str(error)
            continue
        study.tell({pull.pull_id: value})  # outside of `try`: what the study refuses is a bug
        return True
    # The reason is the instrument and not the value, so going on without it is allowed. The study
    # still warns, because no program can know that.
    print(f"  pull {pull.pull_id}, {pull.arm}: given up after {TRIES} tries ({problem})")
    study.missing(pull.pull_id, reason=problem)
    return False


def main() -> None:
    """Open the study, or begin it; measure until there is a winner."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("database", nargs="?", default="instrument.db")
    parser.add_argument("--power-cut", type=int, metavar="N", help="stop dead after N readings")
    chosen = parser.parse_args()
    if Path(chosen.database).exists() and "dyes" in fl.studies(chosen.database):
        study = fl.Study.open(chosen.database, "dyes", arms=DYES)  # refuses other dyes
    else:
        study = fl.Study.create(chosen.database, "dyes", DYES, sigma=1.0, delta=0.05, seed=1)
    told = int(study.to_frame()["reward"].notna().sum())
    print(f"{chosen.database} has {told} readings of earlier.")
    port, readings = Spectrometer(seed=told), 0
    while batch := study.ask(size=1):  # after a crash: the pull that was left open
        readings += measured(study, batch[0], port)
        if readings == chosen.power_cut:
            print(f"Power cut after {readings} readings.", flush=True)
            os._exit(1)  # nothing is closed, nothing is saved: as if the plug were pulled
    print(study.status())
    study.close()


if __name__ == "__main__":
    main()
