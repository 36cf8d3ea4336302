"""Skills of an imaginary company."""
