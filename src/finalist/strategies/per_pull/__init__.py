"""Strategies that look at the data after every pull."""
