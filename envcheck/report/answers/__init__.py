"""Pages of what is no report: a comparison, an answer of the matrix, a rule."""
