"""Kahan's integrator for the free rigid body."""
