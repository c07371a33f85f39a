"""The ways in which arms are made: files, tables, formulas, or no features at all."""

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any, TypeVar

from finalist import tables
from finalist.arms import files, reading
from finalist.arms.inputs import read_formula, unstructured
from finalist.arms.parts import Parts, merged
from finalist.arms.recipes import Table
from finalist.tables import Dialect

_Arms = TypeVar("_Arms", bound="Sources")


class Sources:
    """Arms from elsewhere; `finalist.arms.Arms` is what they become."""

    __slots__ = ()

    @classmethod
    def _of(cls: type[_Arms], parts: Parts) -> _Arms:
        raise NotImplementedError

    @classmethod
    def _from_table(cls: type[_Arms], table: Table) -> _Arms:
        return cls._of(merged(table))

    @classmethod
    def from_csv(cls: type[_Arms], path: str | PathLike[str]) -> _Arms:
        """Read a table as given: each column is a feature, but for the names.

        The column `name` names the arms, or else the first column without any number. An
        apostrophe that `to_csv` put before a name is removed. Categories, row numbers and remarks
        are for `from_table`.

        Raises
        ------
        FileFormatError
            With the line, the column and the cell that is wrong.
        """
        return cls._of(reading.as_given(tables.read(path)).parts)

    @classmethod
    def from_table(
        cls: type[_Arms],
        source: Any,
        *,
        columns: Mapping[str, str] | None = None,
        model: str = "straight",
        intercept: bool = True,
        drop_incomplete: bool = False,
        dialect: Dialect | None = None,
    ) -> _Arms:
        r"""Read the table that you have: a spreadsheet, a CSV file, a data frame.

        Each column has a role, guessed from its cells: a number, a category (text with few
        values), yes/no, the name (text that is all different), or nothing (long text, dates).

        Parameters
        ----------
        source : path, bytes or data frame
            .csv, .tsv, .txt, .xlsx, .ods, .parquet; encoding, delimiter and decimal sign of a
            text file are found out from all of it.
        columns : mapping of str to str, optional
            The role of a column if the guess is wrong: name, number, category, yes/no, ignore,
            noise, cost, measurable. Noise and cost stay in `table`: give them to the study.
        model : str
            "straight": the mean is linear in the columns. "bending": with squares, for an optimum
            in between. "surface": with squares and products. "separate": no structure.
        intercept : bool
            Whether results have a level of their own.
        drop_incomplete : bool
            Whether rows with empty cells are left out; otherwise they are an error.
        dialect : finalist.tables.Dialect, optional
            Delimiter, decimal sign, encoding or sheet, if they are not to be found out.

        Raises
        ------
        FileFormatError
            With the place of a cell that cannot be used and the remedies; if a column counts the
            rows, or the file can be read in two ways.

        Examples
        --------
        >>> from finalist import Arms
        >>> text = b"id;Tone;Dose\nA;calm;1,5\nB;calm;2\nC;loud;4\n"
        >>> arms = Arms.from_table(text)
        >>> arms.names, arms.feature_names
        (('A', 'B', 'C'), ('Tone: loud', 'Dose', 'intercept'))
        >>> Arms.from_table(text, columns={"Tone": "ignore"}).feature_names
        ('Dose', 'intercept')
        """
        made = reading.by_model(
            tables.read(source, dialect),
            columns,
            model=model,
            constant=intercept,
            drop_incomplete=drop_incomplete,
        )
        return cls._of(made.parts)

    @classmethod
    def from_parquet(cls: type[_Arms], path: str | PathLike[str]) -> _Arms:
        """Read a Parquet file, as a data frame (needs the extra `[parquet]`)."""
        return cls._from_table(files.read_parquet(path))

    @classmethod
    def from_npy(cls: type[_Arms], path: str | PathLike[str]) -> _Arms:
        """Read a NumPy file (`numpy.save`) with the features, a row per arm: x1, x2, ..."""
        return cls._from_table(files.read_npy(path))

    @classmethod
    def from_formula(
        cls: type[_Arms], formula: str, table: Any, names: Iterable[str] | None = None
    ) -> _Arms:
        """Make the features from the columns of a data frame.

        This evaluates Python: a formula can do all that your program can. Write it yourself, and
        never give it text from somebody else. finalist evaluates no formula that comes from a
        file, a page or the API: there it is the name of a column or a remark, text for people.
        `finalist new --formula` evaluates what is typed there.

        Parameters
        ----------
        formula : str
            The right-hand side of a formulaic formula: `C(material)` for categories, `a:b`
            for interactions, `I(dose**2)` or `poly(dose, 2)` for polynomials. The intercept
            that comes with a formula is a constant feature and does no harm; `0 + ...`
            leaves it out.
        table : data frame
            One row per arm. A missing value in a column of the formula is an error.
        names : sequence of str, optional
            By default the column `name`, or the first text column not in the formula.

        Examples
        --------
        >>> import pandas as pd
        >>> from finalist import Arms
        >>> table = pd.DataFrame({"dose": [1.0, 2.0], "material": ["tin", "zinc"]})
        >>> Arms.from_formula("dose + C(material)", table).feature_names
        ('Intercept', 'dose', 'C(material)[T.zinc]')
        """
        return cls._from_table(read_formula(formula, table, names))

    @classmethod
    def unstructured(cls: type[_Arms], names: Iterable[str] | int) -> _Arms:
        """Make arms that share nothing (the classical problem): one feature for each of them."""
        return cls._from_table(unstructured(names))
