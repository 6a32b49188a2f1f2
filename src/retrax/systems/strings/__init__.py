"""Elastic strings: with rigid bodies on them, and two that touch at points which move."""
