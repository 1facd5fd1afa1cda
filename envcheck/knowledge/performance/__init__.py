"""What a GPU should reach: peaks, the share of them that healthy GPUs reach, and whether a GPU is in use."""
