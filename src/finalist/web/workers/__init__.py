"""Processes for long work, which can be killed."""
