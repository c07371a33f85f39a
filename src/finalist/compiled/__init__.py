"""Functions compiled by numba: how they are compiled, and where they are kept."""
