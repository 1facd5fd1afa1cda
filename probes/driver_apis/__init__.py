"""The driver's two interfaces, CUDA and NVML, asked without a context."""
