"""cuDNN by the path of its library: convolutions, layers and attention, run, verified and timed."""
