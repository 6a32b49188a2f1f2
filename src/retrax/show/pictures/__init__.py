"""What to draw of a run: the right picture for each system, as things that move in space."""
