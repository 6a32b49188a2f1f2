"""A 3D elastic string pendulum."""
