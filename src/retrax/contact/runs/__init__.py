"""What contacts do along a run, found by taking its steps again."""
