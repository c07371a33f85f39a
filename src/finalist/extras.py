"""What finalist needs for some things only: the extras of the installation, by name.

A module that is imported for some things only is asked for by `need` on the line before; nothing
else decides about extras. Whoever lacks one is told which, at that moment and not before.
"""

from importlib.util import find_spec

from finalist.errors import MissingExtraError

#: The modules that each extra installs, as they are imported. "page" brings "charts" too.
EXTRAS = {
    "page": ("fastapi", "uvicorn", "python_multipart"),
    "charts": ("altair", "vl_convert", "jinja2"),
    "tables": ("pandas", "formulaic", "python_calamine", "xlsxwriter"),
    "parquet": ("pyarrow",),
    "postgres": ("psycopg",),
    "cluster": ("distributed",),
}


def need(what: str, *modules: str) -> None:
    """Raise the error that says what to install, unless all of some modules are there.

    Parameters
    ----------
    what : str
        What needs them, as the beginning of a sentence, in the plural: "Charts".
    *modules : str
        As they are imported.

    Raises
    ------
    MissingExtraError

    Examples
    --------
    >>> need("Charts", "altair")
    """
    for module in modules:
        if not _is_there(module):
            extra = next(extra for extra, names in EXTRAS.items() if module in names)
            raise MissingExtraError(
                f"{what} need {module}, which is not installed. Install it with: "
                f"pip install 'finalist[{extra}]'"
            )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:  # it is loaded, and has no specification
        return True
