"""Compiled loops of the strategies that look after every pull, one a strategy."""
