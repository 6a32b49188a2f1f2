"""Where things move: Lie groups, and the retractions that step on them."""
