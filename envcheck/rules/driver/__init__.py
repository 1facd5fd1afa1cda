"""Rules about the driver: its libraries, its kernel module, and whether it starts CUDA."""
