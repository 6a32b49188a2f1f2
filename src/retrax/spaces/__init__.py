"""Homogeneous spaces: where a group acts, flows that are not of the group itself."""
