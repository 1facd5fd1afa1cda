"""The driver's libraries in this process: NVML and the CUDA driver API, without a context."""
