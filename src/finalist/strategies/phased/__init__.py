"""Strategies that choose a new allocation for each phase."""
