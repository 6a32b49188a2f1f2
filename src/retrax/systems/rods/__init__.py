"""Elastic rods: one alone, and two that roll on each other."""
