"""One scalar program for a step, and the back ends that run it."""
