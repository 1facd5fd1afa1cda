"""Every copy of CUDA's libraries: where it lies, what version it is, and whose."""
