"""The driver's two interfaces, CUDA and NVML, used without a context."""
