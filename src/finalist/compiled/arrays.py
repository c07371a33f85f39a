"""Arrays for compiled functions: each kind of argument is compiled once more."""

import numpy as np

from finalist.shapes import Num


def read_only(array: Num[np.ndarray, "..."]) -> Num[np.ndarray, "..."]:
    """Return an array row after row in memory, as one that cannot be written.

    Whoever owns the array may write to it or not, as before.

    Examples
    --------
    >>> found = read_only(np.eye(2))
    >>> found.flags.writeable
    False
    """
    if array.flags.c_contiguous and not array.flags.writeable:
        return array
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
