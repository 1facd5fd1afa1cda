"""The rules: one file per family, one function per rule. Rules judge and never gather."""
