"""Python environments as files: interpreter, layout, search path, distributions."""
