"""Compiled loops of the design solvers. They import nothing of ours but the cache."""
