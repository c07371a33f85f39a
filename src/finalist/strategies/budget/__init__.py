"""Strategies for a fixed budget."""
