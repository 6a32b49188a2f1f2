"""The figures and tables of papers, computed again and compared with what they say."""
