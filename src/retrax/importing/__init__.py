"""Mechanisms from files: URDF, and MJCF as MuJoCo reads it."""
