"""Probes of kind *bench*: what they measure on a GPU, on the links between GPUs, or on the processor beside it."""
