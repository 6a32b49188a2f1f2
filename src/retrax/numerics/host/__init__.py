"""Functions written in JAX, evaluated by NumPy: nothing is compiled."""
