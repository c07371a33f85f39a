"""Strategies whose pulls are fixed in advance; only the number is not."""
