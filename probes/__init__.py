"""Programs that look: one file per thing looked at (docs/design.md, "Probe protocol")."""
