"""From a JAX function to a scalar program: a jaxpr is evaluated on arrays of operands."""
