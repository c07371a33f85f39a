"""Earlier measurements in a CSV file: the columns `arm` and `reward`, other columns are ignored."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path

from finalist.errors import FileFormatError

_DELIMITERS = (",", ";", "\t")


def read_history(path: Path, decimal: str) -> list[tuple[str, float]]:
    """Return pairs of an arm and a reward; a bad cell is reported by line and column."""
    from finalist.arms.files import unescape
    from finalist.study.results.numbers import floats
    from finalist.study.results.tables import check_decimal

    check_decimal(decimal, FileFormatError)
    pairs = []
    for line, arm, reward in _rows(path):
        value = float(floats([reward], decimal)[0])
        if not arm.strip():
            raise FileFormatError(f"{path}, line {line}, column 'arm': the cell is empty.")
        if not math.isfinite(value):
            raise FileFormatError(
                f"{path}, line {line}, column 'reward': {reward!r} is not a finite number with "
                f"the decimal mark {decimal!r}."
            )
        pairs.append((unescape(arm.strip()), value))
    if not pairs:
        raise FileFormatError(f"{path}: there are no measurements below the header.")
    return pairs


def _rows(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the arm and the reward of every row that is not blank."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            delimiter = max(_DELIMITERS, key=header.count)
            names = [
                name.strip().lower() for name in next(csv.reader([header], delimiter=delimiter), [])
            ]
            missing = [name for name in ("arm", "reward") if name not in names]
            if missing:
                raise FileFormatError(
                    f"{path}, line 1: there is no column {missing[0]!r}. Earlier measurements need "
                    "'arm' and 'reward'."
                )
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            for row in reader:
                if any(map(str.strip, row)):
                    cells = [*row, *[""] * len(names)]
                    line = reader.line_num + 1
                    yield line, cells[names.index("arm")], cells[names.index("reward")]
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: this is not UTF-8 text. Save it as 'CSV UTF-8'.") from error
    except csv.Error as error:
        raise FileFormatError(f"{path}: {error}. Check the quotes.") from error
