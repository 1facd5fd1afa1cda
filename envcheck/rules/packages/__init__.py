"""Rules about Python packages and their environment."""
