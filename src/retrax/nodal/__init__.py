"""Many small rigid bodies, free but for supports: nodes of rods, and balls."""
