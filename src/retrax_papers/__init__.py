"""Papers computed again, and retrax timed against C: users of retrax that come with it."""
