"""A preview of an uploaded table of arms: what was found in it, with errors marked in place."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from finalist.arms import Arms
from finalist.arms.files import Cells, read_cells, unescape
from finalist.arms.inputs import is_name
from finalist.arms.table import ArmsTable, is_readable
from finalist.errors import ArmsError, FinalistError
from finalist.files import printable
from finalist.web.uploads import as_file, check_arms, read_arms_table

#: Bytes of a table of arms that the page accepts; larger ones are for the command line.
MAX_BYTES = 700_000
#: Arms without features that the page accepts, and rows of a table that it shows.
MAX_UNRELATED, MAX_ROWS = 2_000, 12
#: Rows with bad cells that are shown.
MAX_BAD = 20


@dataclass(frozen=True)
class PreviewCell:
    """A cell of the preview."""

    text: str
    bad: bool = False


@dataclass(frozen=True)
class PreviewRow:
    """A row of the preview, with the line of the file on which it starts."""

    line: int
    cells: tuple[PreviewCell, ...]


@dataclass(frozen=True, eq=False)
class Preview:
    """What was found in a table.

    Attributes
    ----------
    arms : Arms or None
        None if something is wrong.
    error : str or None
        What is wrong, with line and column.
    columns : tuple of str
    label : str or None
        The column with the names.
    features : tuple of str
    rows : tuple of PreviewRow
        The first ones, and those with a bad cell.
    count : int
        Rows in all.
    packed : str
        The table as text, to be sent back by the form.
    roles : mapping of str to str
        Columns that are not features: measurable, sigma, cost.
    sigma, cost : (K,) array or None
        What those columns hold.
    """

    arms: Arms | None
    error: str | None
    columns: tuple[str, ...]
    label: str | None
    features: tuple[str, ...]
    rows: tuple[PreviewRow, ...]
    count: int
    packed: str
    roles: Mapping[str, str] = field(default_factory=dict)
    sigma: Float[np.ndarray, " K"] | None = None
    cost: Float[np.ndarray, " K"] | None = None

    @property
    def unrelated(self) -> bool:
        """Whether the arms have names only."""
        return self.arms is not None and not self.features

    @property
    def merged(self) -> list[tuple[str, ...]]:
        """Groups of names with the same features: each is one arm."""
        return [] if self.arms is None else [names for names in self.arms.aliases if len(names) > 1]


def pack(content: bytes) -> str:
    """Return a table as text that a form can send back unchanged."""
    return base64.b64encode(content).decode()


def unpack(packed: str) -> bytes:
    """Return the table that was packed.

    Examples
    --------
    >>> unpack(pack(b"name,x"))
    b'name,x'
    """
    try:
        return base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError):
        raise ArmsError(
            "the table of arms did not come back as it was sent. Choose the file again."
        ) from None


def preview(
    content: bytes, name: str = "the table", roles: Mapping[str, str] | None = None
) -> Preview:
    r"""Preview a table of arms; `roles` maps what is not a feature to its column.

    Examples
    --------
    >>> found = preview(b"name,dose\na,1\nb,x\n")
    >>> found.label, found.features, [[cell.bad for cell in row.cells] for row in found.rows]
    ('name', ('dose',), [[False, False], [False, True]])
    >>> preview(b"oak\nash\n").arms.names
    ('oak', 'ash')
    >>> preview(b"name,dose,price\na,1,5\nb,2,7\n", roles={"cost": "price"}).features
    ('dose',)
    """
    roles = roles or {}
    if len(content) > MAX_BYTES:
        raise ArmsError(
            f"the table has {len(content):,} bytes; the page accepts {MAX_BYTES:,}. Create larger "
            "studies with the command 'finalist new'; the page shows them like all others."
        )
    check_arms(content, name)
    if not content.strip():
        raise ArmsError("there is no table. Choose a file, or paste the rows.")
    alone = None if roles else _names_alone(content)
    if alone is not None:
        return _of_names(alone, content, name)
    try:
        with as_file(content, name) as path:
            cells = read_cells(path, list(roles.values()))
    except FinalistError as error:
        return Preview(None, str(error), (), None, (), (), 0, "")
    table, error = None, None
    try:
        table = read_arms_table(content, name, roles)
    except FinalistError as problem:
        error = str(problem)
    return _found(cells, content, roles, table, error)


def _found(
    cells: Cells,
    content: bytes,
    roles: Mapping[str, str],
    table: ArmsTable | None,
    error: str | None,
) -> Preview:
    bad = _bad_cells(cells, roles)
    wrong = np.flatnonzero(np.logical_or.reduce([*bad.values()])) if bad else np.array([], int)
    rows = sorted({*range(min(MAX_ROWS, len(cells.lines))), *wrong[:MAX_BAD].tolist()})
    columns = tuple(cells.columns)
    return Preview(
        None if table is None else table.arms,
        error,
        columns,
        cells.label,
        tuple(cells.numbers),
        tuple(
            PreviewRow(
                cells.lines[i],
                tuple(
                    PreviewCell(
                        printable(unescape(cells.columns[c][i]), 60),
                        c in bad and bool(bad[c][i]),
                    )
                    for c in columns
                ),
            )
            for i in rows
        ),
        len(cells.lines),
        pack(content),
        roles,
        None if table is None else table.sigma,
        None if table is None else table.cost,
    )


def _bad_cells(cells: Cells, roles: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Return for each column with numbers or roles which of its cells cannot be read."""
    bad = {column: ~np.isfinite(values) for column, values in cells.numbers.items()}
    for role, column in roles.items():
        if column in cells.columns:
            bad[column] = np.array([not is_readable(role, c) for c in cells.columns[column]])
    return bad


def _names_alone(content: bytes) -> list[str] | None:
    """Return names, if the table is only a list of names."""
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        return None
    names = [line.strip() for line in lines if line.strip()]
    if not names or any(mark in line for line in names for mark in ',;\t"'):
        return None
    return names[1:] if is_name(names[0]) else names


def _of_names(names: list[str], content: bytes, name: str) -> Preview:
    rows = tuple(
        PreviewRow(i + 1, (PreviewCell(printable(n, 60)),)) for i, n in enumerate(names[:MAX_ROWS])
    )
    try:
        if len(names) > MAX_UNRELATED:
            raise ArmsError(
                f"{name} has {len(names):,} arms without features; the page accepts "
                f"{MAX_UNRELATED:,}. Describe them by features."
            )
        arms, error = Arms.unstructured([unescape(text) for text in names]), None
    except FinalistError as problem:
        arms, error = None, f"{name}: {problem}"
    return Preview(arms, error, ("name",), "name", (), rows, len(names), pack(content))
