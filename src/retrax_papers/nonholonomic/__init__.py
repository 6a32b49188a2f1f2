"""Retraction maps for nonholonomic systems on Lie groups."""
