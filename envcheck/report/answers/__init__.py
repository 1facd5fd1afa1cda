"""Pages of what is not a report: a comparison, an answer of the matrix, a rule."""
