"""Processes for work that may take long, which can be ended."""
