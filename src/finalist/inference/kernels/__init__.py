"""Compiled loops of inference, cached on disk."""
