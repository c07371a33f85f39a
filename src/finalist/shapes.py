"""The shapes of arrays in annotations, for people and for tests.

Type checkers see an array with a remark. Tests with FINALIST_SHAPES=1 have jaxtyping here, and
compare arrays with what is said of them; elsewhere it would be a dependency, and take a twentieth
of a second, for nobody.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from typing import Annotated as Bool
    from typing import Annotated as Float
    from typing import Annotated as Int
    from typing import Annotated as Int64
    from typing import Annotated as Num
    from typing import Annotated as UInt64
elif os.environ.get("FINALIST_SHAPES"):
    _kinds = import_module("jaxtyping")
    Bool, Float, Int, Int64 = _kinds.Bool, _kinds.Float, _kinds.Int, _kinds.Int64
    Num, UInt64 = _kinds.Num, _kinds.UInt64
else:

    class _Kind:
        def __class_getitem__(cls, described: tuple[Any, str]) -> Any:
            array, shape = described
            return Annotated[array, cls.__name__, shape]

    Bool, Float, Int, Int64, Num, UInt64 = (
        type(name, (_Kind,), {}) for name in ("Bool", "Float", "Int", "Int64", "Num", "UInt64")
    )

__all__ = ["Bool", "Float", "Int", "Int64", "Num", "UInt64", "described"]


def described(annotation: Any) -> tuple[str, list[str]]:
    """Return the kind of numbers of an array and what its sizes are called.

    Examples
    --------
    >>> import numpy as np
    >>> described(Float[np.ndarray, "K d"])
    ('Float', ['K', 'd'])
    """
    if hasattr(annotation, "dim_str"):
        return annotation.dtype.__name__, annotation.dim_str.split()
    kind, shape = annotation.__metadata__
    return kind, shape.split()
