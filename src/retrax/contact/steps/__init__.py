"""Steps of bodies and nodes that touch: RATTLE with unilateral constraints and friction."""
