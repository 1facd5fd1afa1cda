"""Which files the dynamic loader would map into a process, and which symbols they would lack."""
