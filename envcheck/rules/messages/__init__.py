"""Error lines and the problems that they name."""
