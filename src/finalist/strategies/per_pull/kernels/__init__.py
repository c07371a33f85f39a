"""Compiled loops of the strategies that look after every pull, one file for each strategy."""
