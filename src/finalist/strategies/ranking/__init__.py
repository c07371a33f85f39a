"""Ranking and selection with an indifference zone: one procedure a file."""
