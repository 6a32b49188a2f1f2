"""Optimal control on Lie groups: from a plant, a start, an end and a cost to a plan."""
