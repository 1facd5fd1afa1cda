"""Many machines at once: what brings their reports, how they differ, and which GPUs are slow."""
