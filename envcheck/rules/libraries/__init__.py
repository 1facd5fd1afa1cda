"""Rules about CUDA's libraries: missing, old, mixed, or in the place of others."""
