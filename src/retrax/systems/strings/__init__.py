"""Elastic strings: with rigid bodies on them, and two in contact at moving points."""
