"""Bodies that touch: shapes on bodies, and which of them may meet."""
