"""Rules about CUDA libraries: missing, outdated, mixed, or shadowing others."""
