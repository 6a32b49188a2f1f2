"""Taylor series of what a function computes, along the solution of a differential equation."""
