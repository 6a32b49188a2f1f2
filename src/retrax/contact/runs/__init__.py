"""What contacts do along a run: its steps are taken again, and asked."""
