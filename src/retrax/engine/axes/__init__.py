"""Axes of many alike things, kept as loops over memory."""
