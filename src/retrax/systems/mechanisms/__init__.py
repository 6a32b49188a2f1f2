"""Ready mechanisms: linkages, chains, a bicycle, an arm."""
