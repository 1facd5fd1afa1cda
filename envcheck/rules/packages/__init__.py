"""Rules about Python packages and the environment that holds them."""
