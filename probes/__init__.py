"""Programs that look: one file per thing looked at (docs/decisions/005-probes-are-children.md)."""
