"""Derivatives of runs at native speed: tangents and cotangents carried along by machine code."""
