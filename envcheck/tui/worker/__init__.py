"""Work that must not hold up a key: it runs in other processes and threads."""
