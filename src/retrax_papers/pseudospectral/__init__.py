"""A geometric pseudospectral method, with a 3D pendulum."""
