"""Elastic rods in perfect friction contact."""
