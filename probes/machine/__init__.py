"""The system around the GPUs: processor, container, kernel, PCI, virtualization."""
