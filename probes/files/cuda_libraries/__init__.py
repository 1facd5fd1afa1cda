"""All copies of CUDA libraries: location, version and owner."""
