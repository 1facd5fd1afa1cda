"""What bench probes need: a GPU with a context, kernels, timing, verification."""
