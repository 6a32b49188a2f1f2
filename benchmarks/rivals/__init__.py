"""Other libraries on the same problems, each in its own file; what is not installed is skipped."""
