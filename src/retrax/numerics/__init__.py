"""Arrays only: small-angle functions, small linear systems, checks; knows no mechanics."""
